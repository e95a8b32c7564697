// One sentence about what a run is doing: the steps under way, and those that wait for a person, a usage limit or their
// next attempt. It costs what is under way, not the size of the run.

import { sanitize, shorten } from '../base/sanitize.ts';
import { type RunState, type StepState, stepOf } from '../kernel/state.ts';
import { isParkedStep, isWaitingStep, parkedSteps } from './shown-status.ts';

/** Null if no step is under way. `interrupted`: the run should be running, but has no engine. */
export function nowText(state: RunState, interrupted: boolean): string | null {
  if (state.phase === 'ended' && state.end !== 'paused') return null;
  if (state.phase === 'cleaning') return 'the cleanup is running';
  const shown = shownSteps(state, [...state.inFlight.values()]);
  const waiting = shown.filter((step) => isWaitingStep(state, step));
  const running = shown.filter((step) => !isWaitingStep(state, step));
  const retrying = [...state.timers.values()].flatMap((timer) =>
    timer.kind === 'retry' ? (state.steps.get(timer.step) ?? []) : [],
  );
  const delayed = retrying.filter((step) => !isParkedStep(state, step));
  const parts = [
    named(state, running, interrupted ? ['was running', 'were running'] : ['is running', 'are running']),
    named(state, waiting, ['waits for a person', 'wait for a person']),
    named(state, shownSteps(state, parkedSteps(state)), ['waits for a usage limit', 'wait for a usage limit']),
    named(state, shownSteps(state, delayed), ['waits for its next attempt', 'wait for their next attempts']),
    interrupted ? 'no engine works on the run' : null,
  ].filter((part) => part !== null);
  return parts.length === 0 ? null : parts.join('; ');
}

const NAMED_MAX = 2;

/** `build is running`, `each.*.fix × 8 and test are running`, `a, b and 3 more are running`; null if there are none. */
function named(state: RunState, steps: readonly StepState[], [one, several]: readonly [string, string]): string | null {
  if (steps.length === 0) return null;
  const counts = new Map<string, number>();
  for (const step of steps) {
    const pattern = patternOf(state, step);
    counts.set(pattern, (counts.get(pattern) ?? 0) + 1);
  }
  const groups = [...counts].toSorted(([, a], [, b]) => b - a);
  const [only] = steps;
  const names =
    steps.length === 1 && only !== undefined
      ? [shorten(only.id)]
      : groups.slice(0, NAMED_MAX).map(([name, count]) => `${shorten(name)}${count > 1 ? ` × ${count}` : ''}`);
  const more = groups.slice(NAMED_MAX).reduce((sum, [, count]) => sum + count, 0);
  const text = more > 0 ? `${names.join(', ')} and ${more} more` : names.join(' and ');
  const by = steps.length === 1 && only?.status === 'running' ? only.agent : null;
  const agent = by === null || only?.dialog !== null ? '' : `, by the agent ${sanitize(by)}`;
  return `${text} ${steps.length === 1 ? one : several}${agent}`;
}

/** The id with `*` instead of the numbers or names of iterations: `each.*.fix`. */
function patternOf(state: RunState, { id, frame, definition }: StepState): string {
  if (frame.owner === null) return id;
  const owner = stepOf(state, frame.owner);
  const iterates = owner.definition.act.kind === 'each' || owner.definition.act.kind === 'loop';
  return `${patternOf(state, owner)}.${iterates ? '*.' : ''}${definition.id}`;
}

/** What performs a step stands for that step. */
function shownSteps(state: RunState, steps: readonly StepState[]): readonly StepState[] {
  const outermost = (step: StepState): StepState =>
    step.frame.isInner && step.frame.owner !== null ? outermost(stepOf(state, step.frame.owner)) : step;
  return [...new Set(steps.map(outermost))];
}
