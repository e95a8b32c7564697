// What happens to a run when an engine resumes it, perhaps on another machine.

import { resumedBudgets } from './budget.ts';
import type { Input, Taken } from './input.ts';
import { changesLimits } from './reopen.ts';
import type { DecideContext, FrameState, RunState, StepState } from './state.ts';
import { isElsewhere, stepOf } from './state.ts';

export function onResume(ctx: DecideContext, input: Extract<Input, { kind: 'run-resumed' }>): void {
  const { retryFailed, allowance, limits } = input;
  const { state } = ctx;
  if (state.phase === 'new' || (state.phase === 'ended' && state.end === 'done')) return;
  const again = ({ skipped, status, settlement, frame }: StepState): boolean => {
    if (frame.abandoned) return false;
    if (skipped === 'run-ending') return true;
    const isBroken = settlement === 'broken' && (status === 'skipped' || status === 'failed');
    return retryFailed && isBroken && !isOfSettledStep(state, frame);
  };
  // The engine died while it was ending the run. Resuming cancels that.
  const withdrawn = state.phase === 'ending' && (state.end === 'stopped' || state.end === 'paused');
  const reopened = state.phase === 'ended' || withdrawn ? [...state.steps.values()].filter(again) : [];
  // Nothing can be retried: the run stays failed.
  if (state.phase === 'ended' && state.end === 'failed' && reopened.length === 0) return;
  const allowed = allowance === null ? null : { ...state.allowance, ...allowance };
  const changed = limits !== undefined && changesLimits(state.limits, limits);
  ctx.emit({
    kind: 'run-resumed',
    reopened: reopened.map(({ id }) => id),
    withdrawn,
    allowance: allowed,
    ...(changed ? { limits: { ...state.limits, ...limits } } : {}),
    ...resumedBudgets(state, input),
    ...takenBy(input),
  });
}

/** Why an attempt is lost that left nothing. */
export function whyLost(state: RunState, step: StepState): 'machine' | 'engine' {
  return isElsewhere(state, step.machine) ? 'machine' : 'engine';
}

/** Only what the input has: a run of one machine has neither. */
function takenBy({ machine, take }: Taken): Taken {
  return { ...(machine === undefined ? {} : { machine }), ...(take === undefined ? {} : { take }) };
}

/** Inside a block that performed a step which has ended: only that step is retried. Loose frames do not count. */
function isOfSettledStep(state: RunState, frame: FrameState): boolean {
  for (let now = frame; now.owner !== null && now.join !== 'loose'; ) {
    const owner = stepOf(state, now.owner);
    if (now.join === 'answer' && owner.settlement !== 'open' && owner.skipped !== 'run-ending') return true;
    now = owner.frame;
  }
  return false;
}
