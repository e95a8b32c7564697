// The status of a run or a step as page and terminal show it: more than `meow status` says, because people look for what
// waits for them (`waiting`) and for what only waits until an agent's usage limit is over (`parked`).

import { gateRequestOf } from '../kernel/gates.ts';
import { retryTimer, type RunState, type StepState, type StepStatus } from '../kernel/state.ts';
import { runStatus, type RunStatus } from './status.ts';

export type ShownRunStatus = RunStatus | 'parked' | 'interrupted' | 'unreadable';
export type ShownStepStatus = Exclude<StepStatus, 'completing'> | 'waiting' | 'parked';

export function shownRunStatus(state: RunState, interrupted: boolean): ShownRunStatus {
  if (interrupted) return 'interrupted';
  const status = runStatus(state);
  return status === 'running' && isParkedRun(state) ? 'parked' : status;
}

export function shownStepStatus(state: RunState, step: StepState): ShownStepStatus {
  if (isWaitingStep(state, step)) return 'waiting';
  if (isParkedStep(state, step)) return 'parked';
  return step.status === 'completing' ? 'running' : step.status;
}

/** Whether a person must decide before it continues. */
export function isWaitingStep(state: RunState, step: StepState): boolean {
  const request = gateRequestOf(state, step, step.gate);
  if (request === null || request.verdict !== null || request.expired) return false;
  return step.status === 'running' || (step.status === 'pending' && state.end === 'paused');
}

/** Whether its next attempt waits until a usage limit is over. */
export function isParkedStep(state: RunState, step: StepState): boolean {
  if (step.status !== 'pending' || step.failure?.kind !== 'limit-reached') return false;
  return state.timers.has(retryTimer(step.id)) || state.parked.has(step);
}

/** Nothing is in flight, and something waits for a usage limit. Costs what waits, not the size of the run. */
function isParkedRun(state: RunState): boolean {
  return state.inFlight.size === 0 && parkedSteps(state).length > 0;
}

export function parkedSteps(state: RunState): readonly StepState[] {
  const retrying = [...state.timers.values()].flatMap((timer) =>
    timer.kind === 'retry' ? (state.steps.get(timer.step) ?? []) : [],
  );
  return [...new Set([...retrying, ...state.parked])].filter((step) => isParkedStep(state, step));
}
