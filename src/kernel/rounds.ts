// Rounds of a loop: frames below one step, one after the other. A round consists of a block and perhaps a check before or
// after it, which share a prefix (`fix.7.`). The last frame says what comes next, so a round costs the same however many
// there were before (K6).

import { err, ok, type Result } from '../base/errors.ts';
import { success } from '../ir/effect.ts';
import { failure, type Failure } from '../ir/failure.ts';
import type { Loop } from '../ir/program.ts';
import type { Target } from '../ir/transition.ts';
import type { StepOutputs } from './decision.ts';
import { childFailure } from './ending.ts';
import { openBelow } from './grow.ts';
import { outputOf } from './scope.ts';
import { type DecideContext, type RunState, roundTimer, type StepState } from './state.ts';

/** Called when no frame of the loop is open: opens the next one, waits until it may begin, or ends the step. */
export function advanceLoop(ctx: DecideContext, step: StepState, loop: Loop): Failure | null {
  if (step.childFailed) return { ...childFailure(step), ...outputsOf(step, null) };
  const last = step.children.findLast(({ join }) => join !== 'recover');
  if (last === undefined) return beginRound(ctx, step, loop, 1);
  const { join, round, steps } = last;
  // The block after the last round has ended.
  if (round === undefined) return endLoop(ctx, step, 'exhausted');
  const { check } = loop;
  const comesFirst = checksFirst(loop);
  if (join === 'check') {
    const isTrue = steps.at(-1)?.route === 'true';
    if (isTrue && comesFirst) return enterRound(ctx, step, loop, round);
    return isTrue || comesFirst ? endLoop(ctx, step, 'true') : beginRound(ctx, step, loop, round + 1);
  }
  if (comesFirst) return beginRound(ctx, step, loop, round + 1);
  if (check.kind === 'block') return openPart(ctx, step, round, check.target, 'check');
  const over = isOver(ctx.state, `${step.id}.${round}.${check.step}`, check.path);
  if (!over.ok) return failure('unresolved', `until_output: ${over.error}`, outputsOf(step, null));
  return over.value ? endLoop(ctx, step, 'true') : beginRound(ctx, step, loop, round + 1);
}

function checksFirst({ check }: Loop): boolean {
  return check.kind === 'block' && check.when === 'before';
}

/** A check before the round may say that the loop is over, even after the last round. */
function beginRound(ctx: DecideContext, step: StepState, loop: Loop, round: number): Failure | null {
  const { check, delayMs } = loop;
  const comesFirst = checksFirst(loop);
  if (round > step.roundsAllowed && !comesFirst) return exhaust(ctx, step, loop);
  if (round > 1 && delayMs > 0 && step.delayedRound !== round && ctx.state.end === null && !isKept(step))
    ctx.emit({ kind: 'round-delayed', step: step.id, round, until: ctx.at + delayMs });
  if (ctx.state.timers.has(roundTimer(step.id))) return null;
  return comesFirst && check.kind === 'block'
    ? openPart(ctx, step, round, check.target, 'check')
    : enterRound(ctx, step, loop, round);
}

/** A round that was kept takes no time. */
function isKept({ children }: StepState): boolean {
  return children.at(-1)?.steps.every(({ keptFrom }) => keptFrom !== null) === true;
}

function enterRound(ctx: DecideContext, step: StepState, loop: Loop, round: number): Failure | null {
  return round > step.roundsAllowed ? exhaust(ctx, step, loop) : openPart(ctx, step, round, loop.target, 'wait');
}

/** If the run is ending, nothing is opened; a resume calls `advanceLoop` again. */
function openPart(
  ctx: DecideContext,
  step: StepState,
  round: number,
  target: Target,
  join: 'wait' | 'check',
): Failure | null {
  if (ctx.state.end !== null) return null;
  return openBelow(ctx, step, { target, join, part: String(round), given: { round }, round });
}

function exhaust(ctx: DecideContext, step: StepState, { exhausted }: Loop): Failure | null {
  if (exhausted.kind === 'end') return endLoop(ctx, step, 'exhausted');
  const result = outputsOf(step, 'exhausted');
  if (exhausted.kind === 'fail') {
    const rounds = step.roundsAllowed === 1 ? '1 round' : `${step.roundsAllowed} rounds`;
    return failure('rounds-exhausted', `the loop is not over after ${rounds}`, result);
  }
  if (ctx.state.end !== null) return null;
  const answer = success(result.outputs, { kept: result.kept });
  const given = { round: step.roundsAllowed };
  return openBelow(ctx, step, { target: exhausted.target, join: 'wait', part: 'exhausted', answer, given });
}

function endLoop(ctx: DecideContext, step: StepState, outcome: 'true' | 'exhausted'): null {
  ctx.emit({ kind: 'step-done', step: step.id, ...outputsOf(step, outcome), session: null });
  return null;
}

function isOver(state: RunState, id: string, path: readonly string[]): Result<boolean, string> {
  const step = state.steps.get(id);
  if (step === undefined) return err(`there is no step ${id}`);
  const found = outputOf(step, path);
  return found.ok ? ok(found.value === true || found.value === 'true') : found;
}

/** Outputs of the last round, by the ids of its steps, and those of the loop itself. `outcome`: null if it failed. */
function outputsOf({ children }: StepState, outcome: 'true' | 'exhausted' | null): StepOutputs {
  const at = children.findLastIndex(({ join, round }) => join === 'wait' && round !== undefined);
  const last = children[at];
  // Its check is beside it.
  const parts = children.slice(Math.max(0, at - 1), at + 2).filter(({ round }) => round === last?.round);
  const steps = parts.flatMap((part) =>
    part.steps.map(({ definition: { id }, outputs, kept }) => ({ id, outputs, kept })),
  );
  const own = {
    ...(last === undefined || last.value === null ? {} : { result: last.value }),
    rounds: last?.round ?? 0,
    ...(outcome === null ? {} : { outcome }),
  };
  return {
    outputs: { ...Object.fromEntries(steps.map(({ id, outputs }) => [id, outputs])), ...own },
    kept: steps.flatMap(({ id, kept }) => kept.map((name) => `${id}.${name}`)),
  };
}
