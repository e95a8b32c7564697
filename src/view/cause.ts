// Which steps matter to a person: failures that nobody handled, the step whose outcome ended the run, and the step whose
// output explains another one. Data only.

import { failsWithChildren } from '../kernel/ending.ts';
import { frameOf, type FrameState, isFinished, type RunState, type StepState, stepOf } from '../kernel/state.ts';
import { visitKind } from './visits.ts';

/** All steps, except those that perform another step: these are folded into it. */
export function shownSteps({ steps }: RunState): readonly StepState[] {
  return [...steps.values()].filter(({ frame }) => !frame.isInner);
}

/** Whether the workflow handles the failure of a step: by the step's own `on_error` or route, or by those of a parent. */
export function isHandled(state: RunState, step: StepState): boolean {
  if (step.settlement === 'met') return true;
  for (let frame = step.frame; !frame.abandoned; ) {
    const outer = outerFrame(state, frame);
    if (outer === null) return false;
    if (outer === 'handled') return true;
    frame = outer;
  }
  return true;
}

/** The frame that a failure in this one reaches next; null: the run. */
function outerFrame(state: RunState, { caller, owner: id, join }: FrameState): FrameState | 'handled' | null {
  if (caller !== null) return frameOf(state, caller);
  if (id === null || join === 'loose') return null;
  const owner = stepOf(state, id);
  const handles = owner.settlement === 'met' || (owner.settlement === 'open' && !failsWithChildren(owner));
  return join !== 'inline' && join !== 'recover' && handles ? 'handled' : owner.frame;
}

/**
 * Unhandled failures of steps that failed by themselves, oldest first. If the run failed without any, the step whose
 * outcome led to its end, which may be done.
 */
export function failedSteps(state: RunState): readonly StepState[] {
  const failed = shownSteps(state)
    .filter((step) => step.status === 'failed' && !isHandled(state, step))
    .toSorted((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0));
  const own = failed.filter(({ failure }) => failure?.kind !== 'child-failed');
  if (own.length > 0 || state.end !== 'failed') return own;
  const last = failed[0] ?? lastStep(state);
  return last === null || last.startedAt === null ? [] : [last];
}

/** The step that a person wants to see first: the failed one, else one that runs, else the last; null without steps. */
export function mainStep(state: RunState): StepState | null {
  const [failed] = failedSteps(state);
  if (failed !== undefined) return failed;
  const running = shownSteps(state).filter(({ status }) => status === 'running' || status === 'completing');
  const working = running.find(({ effect, definition }) => effect !== null || definition.act.kind === 'block');
  return working ?? running[0] ?? lastStep(state);
}

/** The step that ended last. A visit that only ends the run stands for the one before it. */
function lastStep(state: RunState): StepState | null {
  const steps = shownSteps(state);
  const isReached = ({ startedAt, status }: StepState): boolean =>
    startedAt !== null && (state.end !== 'failed' || status !== 'skipped');
  const started = steps.filter(isReached);
  const last = started.toSorted((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0)).at(-1) ?? steps[0] ?? null;
  if (last === null || visitKind(last.definition) !== 'halt' || last.status === 'failed') return last;
  const { replaces } = last.frame;
  return (replaces === null ? null : frameOf(state, replaces).steps[0]) ?? last;
}

/** The step whose output explains this one: itself, or one below it, failed ones first; null if none has output. */
export function stepWithOutput(step: StepState): StepState | null {
  if (hasOutput(step)) return step;
  const below = step.children.filter(({ isInner }) => !isInner).flatMap(({ steps }) => steps);
  const ended = below.filter(isFinished).toSorted((a, b) => (b.finishedAt ?? 0) - (a.finishedAt ?? 0));
  const failed = ended.filter(({ settlement }) => settlement === 'broken');
  for (const child of [...failed, ...ended]) {
    const found = stepWithOutput(child);
    if (found !== null) return found;
  }
  return null;
}

/** The step whose output a person wants to see first; null if none has output. */
export function mainOutput(state: RunState): StepState | null {
  const main = mainStep(state);
  const found = main === null ? null : stepWithOutput(main);
  if (found !== null) return found;
  const steps = shownSteps(state).filter(hasOutput);
  return steps.toSorted((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0)).at(-1) ?? null;
}

/** Whether a command, a turn or an agent was started for it. */
function hasOutput({ attempt, failure, definition: { act }, children }: StepState): boolean {
  if (attempt === 0 || (failure?.kind === 'not-started' && failure.output === null)) return false;
  if (act.kind === 'block')
    return children.some(({ join, steps }) => join === 'answer' && steps.some((part) => hasOutput(part)));
  return act.kind === 'effect' && PRINTING.has(act.effect.kind);
}

const PRINTING: ReadonlySet<string> = new Set(['command', 'turn', 'prompt', 'spawn']);
