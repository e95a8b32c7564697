// How a run has ended: status, the step that is to blame, and the reason.

import { errorType } from '../ir/failure.ts';
import { frameAround, frameOf, type FrameState, type RunState, type StepState } from '../kernel/state.ts';
import { runError } from '../view/status.ts';
import { outcomeOf, visitKind } from '../view/visits.ts';
import type { Names } from './names.ts';

export interface Ending {
  readonly status: 'done' | 'failed' | 'paused';
  /** Name of the step to blame; null if there is none. For Conductor the step that ended the run. */
  readonly step: string | null;
  /** Type of the error, or the reason that the workflow gives. */
  readonly reason: string | null;
}

export function endingOf(state: RunState, names: Names): Ending {
  const status = state.end === 'failed' || state.end === 'paused' ? state.end : 'done';
  if (status === 'paused') return { status, step: null, reason: errorType('limit-reached') };
  const last = lastVisit(state);
  if (last !== null) return { status, step: stopOf(state, last), reason: failureOf(last) ?? state.reason };
  const error = runError(state);
  const blamed = state.steps.get(error?.step ?? '');
  const step = blamed === undefined ? null : names.of(state, blamed);
  const reason = error === null ? (status === 'done' ? null : state.reason) : (error.type ?? error.message);
  return { status, step, reason };
}

/**
 * Steps that failed by themselves, oldest first. The first is to blame if the run fails now: a failure counts as handled
 * only once the step that handles it has ended.
 */
export function openFailures(state: RunState): readonly StepState[] {
  const failed: StepState[] = [];
  for (const step of state.steps.values()) {
    if (step.status !== 'failed' || step.settlement === 'met' || step.frame.isInner) continue;
    if (step.failure?.kind !== 'child-failed' && !isSettledAbove(state, step)) failed.push(step);
  }
  return failed.toSorted((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0));
}

/**
 * Who is to blame if the run fails now or later, and why: names of failures, oldest first. Those after one that nothing
 * can handle make no difference.
 */
export function blamedFailures(state: RunState, names: Names): readonly string[] {
  const open = openFailures(state);
  const last = open.findIndex((step) => isFinal(state, step));
  const blamed = last < 0 ? open : open.slice(0, last + 1);
  return blamed.map((step) => `${names.of(state, step)} ${step.failure?.kind ?? ''}`);
}

/** Whether nothing can handle the failure: no step waits for the frame of the step, nor for those that called it. */
function isFinal(state: RunState, step: StepState): boolean {
  if (step.settlement === 'open') return false;
  for (let frame: FrameState | null = step.frame; frame !== null; frame = frameAround(state, frame))
    if (frame.caller === null) return frame.join === 'loose';
  return false;
}

function isSettledAbove(state: RunState, step: StepState): boolean {
  for (let frame: FrameState | null = step.frame; frame !== null; frame = frameAround(state, frame)) {
    if (frame.abandoned) return true;
    // Nobody handles what fails in a lane that no step waits for.
    if (frame.caller === null && frame.join === 'loose') return false;
    const owner = frame.caller === null && frame.owner !== null ? state.steps.get(frame.owner) : undefined;
    if (owner?.settlement === 'met' && frame.join !== 'inline' && frame.join !== 'recover') return true;
  }
  return false;
}

/** The visit of a Conductor workflow that ended the run; null if another language did. */
function lastVisit(state: RunState): StepState | null {
  if (state.program.source.language !== 'conductor') return null;
  return [...state.steps.values()].findLast((step) => visitKind(step.definition) !== null && step.attempt > 0) ?? null;
}

/** A bare STOP is not a step of the workflow: the step whose route led there is meant. */
function stopOf(state: RunState, { definition, frame }: StepState): string {
  if (definition.id !== BARE_STOP || frame.replaces === null) return definition.id;
  return frameOf(state, frame.replaces).steps[0]?.definition.id ?? definition.id;
}

const BARE_STOP = 'STOP';

/** A failure is named without its visit, which differs from loop to loop. */
function failureOf(step: StepState): string | null {
  return step.status === 'failed' ? outcomeOf(step) : null;
}
