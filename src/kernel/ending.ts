// How a run ends: nothing new starts, what is running finishes or is stopped, agents and scripts clean up, and then it is
// over. Each function says in decisions what comes next; when, is the business of `settle`.

import { present } from '../base/assert.ts';
import { own } from '../base/json.ts';
import type { CommandSpec, Outcome } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { Failure } from '../ir/failure.ts';
import type { Text } from '../ir/text.ts';
import type { RunEnd } from './decision.ts';
import { fillCommand } from './fill.ts';
import { lookupFrom } from './scope.ts';
import type { AgentState, RunState, StepState } from './state.ts';
import { ENTRY_LANE } from './state.ts';
import type { Turn } from './deciding.ts';

const CLEANUP_TIMEOUT_MS = 60_000;

export function endRun(turn: Turn, end: RunEnd, reason: string | null): void {
  const { state } = turn;
  const drains = end === 'failed' && state.asked.size > 0;
  turn.emit({ kind: 'run-ending', end, reason, drainUntil: drains ? turn.at + state.program.drainMs : null });
  if (drains && state.program.drainMs === 0) stopSteps(turn, [...state.asked.values()], false);
}

/** Those that the world works on, save those that are as good as done. */
export function stopSteps(turn: Turn, steps: readonly StepState[], force: boolean): void {
  const running = steps.filter(
    (step) => step.effect?.kind !== 'gate' && step.status !== 'completing' && (force || step.stopping === null),
  );
  if (running.length > 0) {
    turn.emit({ kind: 'steps-stopping', steps: running.map(({ id }) => id), why: 'run-ending', force });
  }
  hurryAgents(turn, 'opening');
}

/** Nothing new starts any more; when the world owes nothing either, the run cleans up and is over. */
export function concludeEnding(turn: Turn): void {
  const { state } = turn;
  for (const { effect } of state.asked.values()) if (effect?.kind !== 'gate') return;
  for (const { status } of state.agents.values()) if (status === 'opening') return;
  if (state.end !== 'paused') {
    failOwners(turn);
    // One that is being recovered has failed already; its recovery is what is left.
    const left = [...state.steps.values()].filter((step) => step.settlement === 'open' && step.status !== 'failed');
    if (left.length > 0) turn.emit({ kind: 'steps-skipped', steps: left.map(({ id }) => id), why: 'run-ending' });
  }
  // Without a script for this end agents stay where they are, for whoever looks into it or goes on.
  if (cleanupScript(state) === null) return conclude(turn);
  const agents = [...state.agents.values()].filter(({ status }) => status === 'active');
  if (agents.length === 0) return startCleanup(turn);
  turn.emit({ kind: 'agents-closing', agents: agents.map(({ name }) => name), force: state.endForced });
}

/** Whoever waits for blocks of which one has failed has failed with it, though the end has overtaken what else there is. */
function failOwners(turn: Turn): void {
  const owners = [...turn.state.steps.values()].filter(
    (step) =>
      step.settlement === 'open' &&
      step.status === 'running' &&
      failsWithItsBlocks(step) &&
      step.children.some(({ join, failing, abandoned }) => join === 'wait' && failing && !abandoned),
  );
  for (const step of owners.toReversed()) {
    turn.emit({ kind: 'step-failed', step: step.id, failure: childFailure(step), handling: 'fails' });
  }
}

/** Whether nothing makes good for a failure in the blocks that it waits for. */
export function failsWithItsBlocks({ definition: { onError, routes } }: StepState): boolean {
  return onError.kind === 'fail' && own(routes, 'child-failed') === undefined;
}

export function childFailure(step: StepState): Failure {
  const failed = step.children
    .flatMap(({ steps }) => steps)
    .find(({ settlement, status }) => settlement === 'broken' && status === 'failed');
  return failure('child-failed', failed === undefined ? 'a step below it failed' : `step ${failed.id} failed`, {
    outputs: step.outputs,
  });
}

/** The agents are gone, and the script has the field to itself. */
export function startCleanup(turn: Turn): void {
  const { state } = turn;
  const script = present(cleanupScript(state), 'nothing to clean up with');
  const frame = present(state.frames.values().next().value, 'a run without a frame');
  const filled = fillCommand(script, lookupFrom(state, frame, null, turn.at));
  if (filled.ok) {
    const timeoutAt = turn.at + CLEANUP_TIMEOUT_MS;
    return turn.emit({ kind: 'cleanup-started', attempt: state.cleanups + 1, effect: filled.value, timeoutAt });
  }
  turn.emit({ kind: 'warned', message: `the cleanup script did not run: ${filled.error}` });
  conclude(turn);
}

export function finishCleanup(turn: Turn, outcome: Outcome): void {
  const { state } = turn;
  if (state.phase !== 'cleaning' || state.cleanup === null) return;
  if (outcome.kind === 'failure' && outcome.failure.kind === 'lost' && !state.cleanup.stopping) {
    // Whatever took the engine took it too: it is still to be done.
    turn.emit({ kind: 'warned', message: 'the cleanup script is gone with an earlier engine, and runs again' });
    turn.emit({ kind: 'cleanup-finished' });
    return startCleanup(turn);
  }
  if (outcome.kind === 'failure' && outcome.failure.kind !== 'stopped') {
    turn.emit({ kind: 'warned', message: `the cleanup script failed: ${outcome.failure.message}` });
  }
  turn.emit({ kind: 'cleanup-finished' });
  conclude(turn);
}

/** Somebody has no patience with the cleanup. */
export function hastenCleanup(turn: Turn): void {
  const { state } = turn;
  hurryAgents(turn, 'closing');
  if (state.cleanup !== null) turn.emit({ kind: 'cleanup-stopping', force: true });
}

/** One that is being started is told to leave it, one that is being ended to be quick. */
function hurryAgents(turn: Turn, wanted: AgentState['status']): void {
  const agents = [...turn.state.agents.values()].filter(({ status }) => status === wanted);
  if (agents.length > 0) turn.emit({ kind: 'agents-hastened', agents: agents.map(({ name }) => name) });
}

function cleanupScript({ end, program: { cleanup } }: RunState): CommandSpec<Text> | null {
  switch (end) {
    case 'done':
      return cleanup.success;
    case 'failed':
      return cleanup.failure;
    case 'stopped':
      return cleanup.stop;
    case 'paused':
    case null:
      return null;
  }
}

function conclude(turn: Turn): void {
  const { state } = turn;
  const end = present(state.end, 'a run that ends as nothing');
  // Where the first line of control has come to its end.
  const last = [...state.frames.values()].findLast(
    ({ owner, caller, lane, closed }) => owner === null && caller === null && lane === ENTRY_LANE && closed,
  );
  turn.emit({ kind: 'run-ended', end, reason: state.reason, result: last?.value ?? null });
}
