// Ends a run: nothing new starts, running steps finish or are stopped, agents are killed, the cleanup script runs. Each
// function emits the next decisions; `runAgenda` decides when to call it.

import { present } from '../base/errors.ts';
import { own } from '../base/json.ts';
import type { CommandSpec, Outcome } from '../ir/effect.ts';
import { failure, type Failure } from '../ir/failure.ts';
import type { Text } from '../ir/text.ts';
import type { RunEnd } from './decision.ts';
import { fillCommand } from './prepare-step.ts';
import { lookupFrom } from './scope.ts';
import type { PauseCause } from './spending.ts';
import {
  type AgentState,
  agentsWith,
  type DecideContext,
  ENTRY_LANE,
  failsOwner,
  NO_COST,
  presentTime,
  type RunState,
  type StepState,
} from './state.ts';

const CLEANUP_TIMEOUT_MS = 60_000;

export function endRun(ctx: DecideContext, end: RunEnd, reason: string | null, pause: PauseCause | null = null): void {
  const { state } = ctx;
  const drains = end === 'failed' && state.inFlight.size > 0;
  const drainUntil = drains ? ctx.at + state.program.drainMs : null;
  ctx.emit({ kind: 'run-ending', end, reason, drainUntil, ...(pause === null ? {} : { pause }) });
  if (drains && state.program.drainMs === 0) stopSteps(ctx, [...state.inFlight.values()], false);
}

/** Stops steps in flight, except those whose agent has already reported. */
export function stopSteps(ctx: DecideContext, steps: readonly StepState[], force: boolean): void {
  const running = steps.filter(
    (step) => step.effect?.kind !== 'gate' && step.status !== 'completing' && (force || step.stopping === null),
  );
  if (running.length > 0) {
    ctx.emit({ kind: 'steps-stopping', steps: running.map(({ id }) => id), why: 'run-ending', force });
  }
  forceAgents(ctx, 'opening');
}

/** Cleans up and ends the run, once nothing is in flight. */
export function finishEnding(ctx: DecideContext): void {
  const { state } = ctx;
  for (const { effect } of state.inFlight.values()) if (effect?.kind !== 'gate') return;
  if (agentsWith(state, 'opening').length > 0) return;
  if (state.end !== 'paused') {
    failOwners(ctx);
    // A step in recovery has already failed; only its recovery is left.
    const left = [...state.steps.values()].filter((step) => step.settlement === 'open' && step.status !== 'failed');
    if (left.length > 0) ctx.emit({ kind: 'steps-skipped', steps: left.map(({ id }) => id), why: 'run-ending' });
  }
  // Without a cleanup script, agents keep running for inspection or a resume.
  if (cleanupScript(state) === null) return finishRun(ctx);
  const agents = agentsWith(state, 'active');
  if (agents.length === 0) return startCleanup(ctx);
  ctx.emit({ kind: 'agents-closing', agents: agents.map(({ name }) => name), force: state.endForced });
}

/** Fails steps with a failed child frame. Their other children did not finish before the end. */
function failOwners(ctx: DecideContext): void {
  const owners = [...ctx.state.steps.values()].filter(
    (step) =>
      step.settlement === 'open' &&
      step.status === 'running' &&
      failsWithChildren(step) &&
      step.children.some((child) => failsOwner(child) && child.failing && !child.abandoned),
  );
  for (const step of owners.toReversed()) {
    ctx.emit({ kind: 'step-failed', step: step.id, failure: childFailure(step), handling: 'fails' });
  }
}

/** Neither `on_error` nor a route handles a failed child frame. */
export function failsWithChildren({ definition: { onError, routes } }: StepState): boolean {
  return onError.kind === 'fail' && own(routes, 'child-failed') === undefined;
}

export function childFailure(step: StepState): Failure {
  const failed = step.children
    .flatMap(({ steps }) => steps)
    .find(({ settlement, status }) => settlement === 'broken' && status === 'failed');
  const message = failed === undefined ? 'a step below it failed' : `step ${failed.id} failed`;
  return failure('child-failed', message, { outputs: step.outputs });
}

/** Called once all agents are gone. */
export function startCleanup(ctx: DecideContext): void {
  const { state } = ctx;
  const script = present(cleanupScript(state), 'no cleanup script');
  const frame = present(state.frames.values().next().value, 'a run without a frame');
  const filled = fillCommand(script, lookupFrom(state, frame, null, ctx.at));
  if (filled.ok) {
    const timeoutAt = ctx.at + CLEANUP_TIMEOUT_MS;
    return ctx.emit({ kind: 'cleanup-started', attempt: state.cleanups + 1, effect: filled.value, timeoutAt });
  }
  ctx.emit({ kind: 'warned', message: `the cleanup script did not run: ${filled.error}` });
  finishRun(ctx);
}

export function finishCleanup(ctx: DecideContext, outcome: Outcome): void {
  const { state } = ctx;
  if (state.phase !== 'cleaning' || state.cleanup === null) return;
  if (outcome.kind === 'failure' && outcome.failure.kind === 'lost' && !state.cleanup.stopping) {
    // The script died with the engine, so it has to run again.
    ctx.emit({ kind: 'warned', message: 'the cleanup script died with an earlier engine and runs again' });
    ctx.emit({ kind: 'cleanup-finished' });
    return startCleanup(ctx);
  }
  if (outcome.kind === 'failure' && outcome.failure.kind !== 'stopped') {
    ctx.emit({ kind: 'warned', message: `the cleanup script failed: ${outcome.failure.message}` });
  }
  ctx.emit({ kind: 'cleanup-finished' });
  finishRun(ctx);
}

/** The user asked to stop again: cut the cleanup short. */
export function forceCleanup(ctx: DecideContext): void {
  const { state } = ctx;
  forceAgents(ctx, 'closing');
  if (state.cleanup !== null) ctx.emit({ kind: 'cleanup-stopping', force: true });
}

/** Cancels agents that are starting, or kills agents that are stopping. */
function forceAgents(ctx: DecideContext, wanted: AgentState['status']): void {
  const agents = agentsWith(ctx.state, wanted);
  if (agents.length > 0) ctx.emit({ kind: 'agents-hastened', agents: agents.map(({ name }) => name) });
}

function cleanupScript({ end, program: { cleanup } }: RunState): CommandSpec<Text> | null {
  const scripts = { done: cleanup.success, failed: cleanup.failure, stopped: cleanup.stop, paused: null };
  return end === null ? null : scripts[end];
}

function finishRun(ctx: DecideContext): void {
  const { state } = ctx;
  const end = present(state.end, 'a run ends without a status');
  // The last frame of the first lane.
  const last = [...state.frames.values()].findLast(
    ({ owner, caller, lane, closed }) => owner === null && caller === null && lane === ENTRY_LANE && closed,
  );
  const { absences, cost, startedAt } = state;
  ctx.emit({
    kind: 'run-ended',
    end,
    reason: state.reason,
    result: last?.value ?? null,
    ...(absences.length === 0 ? {} : { lasted: presentTime(absences, startedAt ?? ctx.at, ctx.at) }),
    ...(cost === NO_COST ? {} : { cost }),
  });
}
