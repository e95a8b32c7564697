// The kernel: what an input means in a state, as decisions.
//
//   K1. No I/O, clock, randomness or promise. What the world knows arrives in an input, the time included.
//   K2. Total: any input in any state is accepted; a late or repeated one decides nothing.
//   K3. Ids are derived (`step#attempt`), so that a replay names the same effects.
//   K4. Effects are described, never performed.
//   K5. The state holds decisions; explanations are for a view to derive.
//   K6. The cost of an input depends on what it touches, not on the size of the run.
//
// Each decision is applied as it is made, so that the next one sees it: after `decide` the state is what a replay of
// the journal would give. Consequences that touch other steps are not chased here but read from the agenda, in one loop.

import { Bug, present, unreachable } from '../base/assert.ts';
import type { Json } from '../base/json.ts';
import { own } from '../base/json.ts';
import { ok } from '../base/result.ts';
import { formatDuration } from '../base/time.ts';
import { OUTCOME_OF } from '../ir/conducted.ts';
import type { Outcome, Success } from '../ir/effect.ts';
import { success } from '../ir/effect.ts';
import type { Failure, FailureKind } from '../ir/failure.ts';
import { failure } from '../ir/failure.ts';
import type { Outputs, ValueType } from '../ir/output.ts';
import { coerce } from '../ir/output.ts';
import { admission, hearAgent, noteAnswer, noteLost } from './agents.ts';
import { noteAgentProgress, noteProgress } from './progress.ts';
import type { Decision } from './decision.ts';
import { apply } from './apply.ts';
import {
  childFailure,
  concludeEnding,
  endRun,
  failsWithItsBlocks,
  finishCleanup,
  hastenCleanup,
  stopSteps,
} from './ending.ts';
import { allowanceSpent } from './allowance.ts';
import { approversOf, askGate, askingOf, expiredAt, outputsOf, verdictFor } from './gates.ts';
import { advanceEach, follow, openBody, openEntry, openRecovery, returnToCaller } from './grow.ts';
import type { Input } from './input.ts';
import type { FrameState, RunState, StepState } from './state.ts';
import { CLEANUP_STEP, effectId, isOver, stepOf } from './state.ts';
import { judgeReport } from './report.ts';
import { asList, prepare } from './start.ts';
import type { Turn } from './deciding.ts';

const RETRY_DELAY_MAX_MS = 365 * 24 * 3_600_000;
/** Sure to fail again in the same way; or, for what failed below a step, already tried again there. */
const NEVER_RETRIED: ReadonlySet<FailureKind> = new Set([
  'unresolved',
  'expansion-limit',
  'invalid-items',
  'template-not-found',
  'need-unmet',
  'unrouted',
  'child-failed',
]);

export function decide(state: RunState, input: Input, at: number): readonly Decision[] {
  const decisions: Decision[] = [];
  const turn: Turn = {
    state,
    at,
    emit(decision) {
      decisions.push(decision);
      apply(state, decision, at);
    },
  };
  take(turn, input);
  if (decisions.length > 0) settle(turn);
  return decisions;
}

function take(turn: Turn, input: Input): void {
  const { state } = turn;
  switch (input.kind) {
    case 'run-requested':
      if (state.phase !== 'new') return;
      turn.emit({ kind: 'run-started', request: input.request, programHash: input.programHash });
      return openEntry(turn);
    case 'run-resumed':
      return resume(turn, input);
    case 'effect-finished': {
      if (state.cleanup !== null && input.effect === effectId(CLEANUP_STEP, state.cleanups))
        return finishCleanup(turn, input.outcome);
      const step = state.asked.get(input.effect);
      if (step !== undefined) return hear(turn, step, input.outcome);
      // Of a run that has ended whoever resumes it finds out.
      const agent = state.phase === 'ended' ? undefined : state.agentEffects.get(input.effect);
      if (agent !== undefined) hearAgent(turn, agent, input.outcome, fail);
      return;
    }
    case 'effect-progressed': {
      const step = state.asked.get(input.effect);
      if (step !== undefined) return noteProgress(turn, step, input.progress);
      const agent = state.phase === 'ended' ? undefined : state.agentEffects.get(input.effect);
      if (agent !== undefined) noteAgentProgress(turn, agent, input.progress);
      return;
    }
    case 'step-reported': {
      const { step, outputs, notes, message } = input;
      const verdict = judgeReport(state, { agent: null, step, outputs, message });
      if (verdict.kind !== 'accepted') return;
      for (const name of verdict.unknown)
        turn.emit({ kind: 'warned', message: `step ${step}: nobody asked for the output ${name}; it is kept` });
      return turn.emit({ kind: 'step-completing', step, outputs: verdict.outputs, notes, message });
    }
    case 'event-emitted':
      if (state.phase === 'new' || state.phase === 'ended' || state.events.ids.has(input.event.id)) return;
      return turn.emit({ kind: 'event-emitted', event: input.event });
    case 'event-received': {
      const step = state.steps.get(input.step);
      if (step === undefined || isOver(step) || (input.attempt ?? step.attempt) !== step.attempt) return;
      if (input.event <= step.eventsSeen && (input.asking === null || step.eventAskings.has(input.asking))) return;
      return turn.emit({ kind: input.kind, step: input.step, event: input.event, asking: input.asking });
    }
    case 'gate-asked': {
      const step = state.steps.get(input.step);
      // A step that is a gate itself asks for that one alone.
      if (step?.status !== 'running' || state.end !== null || step.effect?.kind === 'gate') return;
      return askGate(turn, input.gate, step, input.prompt);
    }
    case 'gate-expired': {
      const step = state.steps.get(input.step);
      const asking = step === undefined ? null : askingOf(state, step, input.gate);
      if (step?.status !== 'running' || asking === null || asking.verdict !== null || asking.expired) return;
      return turn.emit({ kind: 'gate-expired', gate: input.gate, step: input.step });
    }
    case 'wait-released': {
      const step = state.steps.get(input.step);
      if (step?.status !== 'running' || state.end === null || step.interrupted) return;
      return turn.emit({ kind: 'wait-released', step: input.step });
    }
    case 'deadline-passed':
      return passDeadline(turn, input.timer);
    case 'gate-decided': {
      const gate = state.gates.get(input.gate);
      if (state.phase === 'new' || state.phase === 'ended' || (gate !== undefined && gate.verdict !== null)) return;
      if (input.message !== null && state.heard.has(input.message)) return;
      if (approversOf(state, input.gate)?.includes(input.verdict.by) === false) return;
      turn.emit({ ...input });
      for (const asker of gate?.askers.keys() ?? []) {
        const step = state.asked.get(asker);
        if (step !== undefined) hearGate(turn, step);
      }
      return;
    }
    case 'stop-requested':
      if (state.phase === 'cleaning') {
        if (input.force) hastenCleanup(turn);
        return;
      }
      if (state.phase !== 'running' && state.phase !== 'ending') return;
      if (state.end === null || state.end === 'paused') endRun(turn, 'stopped', `stopped by ${input.by}`);
      return stopSteps(turn, [...state.asked.values()], input.force);
    case 'pause-requested':
      if (state.phase === 'running') endRun(turn, 'paused', input.reason);
      // Whose agent asks something would wait for a person. The agent is left as it is.
      return stopSteps(
        turn,
        [...state.asked.values()].filter((step) => step.dialog !== null && verdictFor(state, step) === null),
        false,
      );
    default:
      return unreachable(input);
  }
}

/** Draws every consequence that the agenda lists, until there is none or the run has ended. */
function settle(turn: Turn): void {
  const { state } = turn;
  const { agenda } = state;
  for (;;) {
    if (state.phase === 'new' || state.phase === 'cleaning' || state.phase === 'ended') return;
    const joinable = first(agenda.joinable);
    if (joinable !== undefined) {
      agenda.joinable.delete(joinable);
      joinBlocks(turn, joinable);
      continue;
    }
    // What is left when the run ends is skipped for that reason alone, and so can be taken up again.
    if (state.end !== null) return concludeEnding(turn);
    if (agenda.doomed.size > 0) {
      turn.emit({ kind: 'steps-skipped', steps: [...agenda.doomed].map(({ id }) => id), why: 'need' });
      continue;
    }
    const hopeless = first(agenda.hopeless);
    if (hopeless !== undefined) {
      fail(turn, hopeless, unmeetable(hopeless));
      continue;
    }
    const closable = first(agenda.closable);
    if (closable !== undefined) {
      closeFrame(turn, closable);
      continue;
    }
    const ready = first(agenda.ready) ?? (state.turns < turnsMax(state) ? agenda.readyForAgent.first() : undefined);
    if (ready !== undefined) {
      const spent = allowanceSpent(state);
      if (spent === null) startStep(turn, ready);
      else endRun(turn, 'paused', spent.message);
      continue;
    }
    if (state.openFrames === 0) {
      endRun(turn, state.looseFailure ? 'failed' : 'done', null);
      continue;
    }
    if (state.asked.size === 0 && state.timers.size === 0 && !agentOnItsWay(state)) {
      failStuck(turn);
      continue;
    }
    return;
  }
}

/** The step that wants it will go on. */
function agentOnItsWay({ agents }: RunState): boolean {
  for (const { status } of agents.values()) if (status === 'opening') return true;
  return false;
}

function first<T>(set: ReadonlySet<T>): T | undefined {
  return set.values().next().value;
}

function startStep(turn: Turn, step: StepState): void {
  const { state } = turn;
  const prepared = prepare(turn, step);
  if (!prepared.ok) return fail(turn, step, prepared.error);
  const { agent, effect } = prepared.value;
  const admitted = admission(turn, step, effect, agent);
  if (admitted === 'wait') return queue(state, step, agent);
  if (admitted !== 'go') return fail(turn, step, admitted);
  turn.emit({ kind: 'step-started', step: step.id, attempt: step.attempt + 1, ...prepared.value });
  if (step.effect?.kind === 'gate' && typeof step.effect.gate === 'string') {
    askGate(turn, step.effect.gate, step, typeof step.effect.prompt === 'string' ? step.effect.prompt : null);
    if (!step.effect.blocks) return complete(turn, step, success({}, { route: 'completed' }));
    return hearGate(turn, step);
  }
  const { act } = step.definition;
  if (act.kind === 'pass') return complete(turn, step, success());
  if (act.kind === 'block') return openBody(turn, step, act.target, fail);
  if (step.items !== null) return iterate(turn, step);
}

/** It stands in its agent's queue until that one is free. */
function queue(state: RunState, step: StepState, agent: string | null): void {
  state.agenda.ready.delete(step);
  state.agenda.readyForAgent.delete(step);
  step.queuedFor = agent;
  state.agents.get(agent ?? '')?.queue.add(step);
}

function turnsMax({ allowance }: RunState): number {
  return allowance.agents ?? Infinity;
}

/** The world's answer to a step's effect. */
function hear(turn: Turn, step: StepState, outcome: Outcome): void {
  const usage = outcome.kind === 'success' ? outcome.usage : outcome.failure.usage;
  if (usage !== null) turn.emit({ kind: 'usage-counted', step: step.id, usage });
  // The agent has reported; whatever became of it since, the step is done.
  if (step.status === 'completing') return complete(turn, step, success(step.outputs));
  if (step.interrupted && turn.state.end !== null && !(outcome.kind === 'success' && outcome.route !== 'false')) {
    if (turn.state.end === 'paused') return turn.emit({ kind: 'step-lost', step: step.id, why: 'pause' });
    return turn.emit({ kind: 'steps-skipped', steps: [step.id], why: 'run-ending' });
  }
  if (outcome.kind === 'success') return complete(turn, step, outcome);
  const { kind } = outcome.failure;
  const cutOff = kind === 'stopped' || kind === 'lost' || (kind === 'signal' && step.stopping !== null);
  if (cutOff && step.stopping === 'timeout') {
    const limit = present(step.timeoutAt, 'no time limit has passed') - present(step.startedAt, 'it never started');
    const message = `timed out after ${formatDuration(limit)}`;
    const outputs = { ...outcome.failure.outputs, outcome: 'timeout' };
    return fail(turn, step, { ...outcome.failure, kind: 'timeout', message, outputs });
  }
  if (cutOff && turn.state.end !== null) {
    return turn.emit({ kind: 'steps-skipped', steps: [step.id], why: 'run-ending' });
  }
  if (kind === 'lost') noteLost(turn, step);
  if (kind === 'lost' || step.interrupted) return turn.emit({ kind: 'step-lost', step: step.id, why: 'engine' });
  fail(turn, step, outcome.failure);
}

function hearGate(turn: Turn, step: StepState): void {
  const verdict = verdictFor(turn.state, step);
  if (step.effect?.kind !== 'gate' || verdict === null) return;
  // Whoever decides without answering has said it in the notes, if at all.
  const route = verdict.approved ? 'approved' : 'rejected';
  complete(turn, step, success({ answer: verdict.notes ?? '', ...outputsOf(verdict), outcome: route }, { route }));
}

function complete(turn: Turn, step: StepState, heard: Success): void {
  if (step.effect?.kind === 'read') return takeItems(turn, step, heard);
  if (expiredAt(turn.state, step, heard)) {
    const message = `nobody decided ${step.gate ?? ''} in time`;
    const outputs = { ...heard.outputs, outcome: 'timeout', reason: message, notes: '', decided_by: '' };
    return fail(turn, step, failure('timeout', message, { outputs }));
  }
  // An agent that asked has its own words to report.
  const decided = step.effect?.kind === 'prompt' ? null : verdictFor(turn.state, step);
  const answer = decided === null ? heard : { ...heard, outputs: { ...outputsOf(decided), ...heard.outputs } };
  noteAnswer(turn, step, answer, fail);
  for (const text of answer.printed) turn.emit({ kind: 'step-printed', step: step.id, text });
  const route = answer.route ?? 'done';
  const routed = own(step.definition.routes, route);
  const follows = answer.follows ?? (routed === undefined ? [] : [routed]);
  if (follows.length === 0 && step.definition.unrouted !== 'done') {
    return fail(turn, step, failure('unrouted', `no route for the outcome ${route}`, { outputs: answer.outputs }));
  }
  follow(turn, step, answer, follows, fail);
}

/** What a foreach iterates over has come. */
function takeItems(turn: Turn, step: StepState, { outputs }: Success): void {
  const items = asList(outputs['items'] ?? null);
  if (!items.ok) return fail(turn, step, failure('invalid-items', items.error));
  turn.emit({ kind: 'items-read', step: step.id, items: items.value });
  iterate(turn, step);
}

function fail(turn: Turn, step: StepState, problem: Failure): void {
  const { definition } = step;
  if (step.settlement !== 'open') {
    // It had failed before; what was to follow from that is impossible too.
    turn.emit({ kind: 'warned', message: `after ${step.id}: ${problem.message}` });
    return failFrame(turn, step.frame, step);
  }
  if (problem.retryAt !== null) {
    const retryAt = Math.max(turn.at, problem.retryAt);
    return turn.emit({ kind: 'step-failed-once', step: step.id, failure: problem, retryAt, counts: false });
  }
  if (problem.reprompt !== null && step.reprompts < definition.repromptsMax)
    return turn.emit({ kind: 'step-failed-once', step: step.id, failure: problem, retryAt: turn.at, counts: false });
  if (!NEVER_RETRIED.has(problem.kind) && step.failures + 1 < definition.retry.attemptsMax) {
    const retryAt = turn.at + retryDelay(step);
    return turn.emit({ kind: 'step-failed-once', step: step.id, failure: problem, retryAt, counts: true });
  }
  const routed = own(definition.routes, problem.kind);
  if (routed?.kind === 'expand') {
    const outputs = { ...problem.outputs, outcome: problem.kind };
    const answer = success(outputs, { kept: problem.kept, route: problem.kind, session: problem.session });
    // A route that cannot be taken is not answered by a route again.
    return follow(turn, step, answer, [routed], failUnrouted);
  }
  if (routed !== undefined) {
    turn.emit({ kind: 'step-failed', step: step.id, failure: problem, handling: 'routed' });
    return follow(turn, step, success(problem.outputs), [routed], fail);
  }
  failUnrouted(turn, step, definition.unrouted === 'tell' ? withoutRoute(problem) : problem);
}

function withoutRoute(problem: Failure): Failure {
  const outcome = own(OUTCOME_OF, problem.kind);
  return outcome === undefined
    ? problem
    : { ...problem, message: `${problem.message}; it has no route for ${outcome}` };
}

function failUnrouted(turn: Turn, step: StepState, problem: Failure): void {
  const { onError } = step.definition;
  switch (onError.kind) {
    case 'continue':
      return turn.emit({ kind: 'step-failed', step: step.id, failure: problem, handling: 'continues' });
    case 'recover':
      if (step.frame.recoveryDepth < turn.state.program.limits.recoveryDepthMax) {
        turn.emit({ kind: 'step-failed', step: step.id, failure: problem, handling: 'recovers' });
        return openRecovery(turn, step, problem, onError.target, fail);
      }
      break;
    case 'fail':
      break;
  }
  turn.emit({ kind: 'step-failed', step: step.id, failure: problem, handling: 'fails' });
  failFrame(turn, step.frame, step);
}

function retryDelay(step: StepState): number {
  const { delayMs, backoff, jitter } = step.definition.retry;
  const factor =
    backoff === 'exponential' ? 2 ** Math.min(step.failures, 40) : backoff === 'linear' ? step.failures + 1 : 1;
  const scatter = 1 + jitter * (2 * scattered(effectId(step.id, step.attempt)) - 1);
  return Math.round(Math.min(delayMs * factor * scatter, RETRY_DELAY_MAX_MS));
}

/** From 0 to 1, as if by chance, and the same whenever it is asked for (K1). */
function scattered(text: string): number {
  let hash = 2_166_136_261;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619);
  return (hash >>> 0) / 2 ** 32;
}

/** Nothing more starts in the frame; what is running there may finish. */
function failFrame(turn: Turn, frame: FrameState, step: StepState): void {
  const { state } = turn;
  if (frame.failing) return;
  if (frame.owner === null && frame.caller === null && state.program.onFailure === 'drain') {
    if (state.end !== null && state.end !== 'paused') return;
    return endRun(turn, 'failed', `step ${step.id} failed: ${step.failure?.message ?? 'a step below it failed'}`);
  }
  turn.emit({ kind: 'frame-failing', frame: frame.id, step: step.id });
  if (frame.owner === null) return;
  const owner = stepOf(state, frame.owner);
  // The iterations of a list finish beside one that has failed (failSoon).
  const isSure = frame.join === 'wait' && owner.definition.act.kind !== 'each' && failsWithItsBlocks(owner);
  if (isSure || frame.join === 'inline') failFrame(turn, owner.frame, step);
}

function closeFrame(turn: Turn, frame: FrameState): void {
  const { state } = turn;
  const healthy =
    !frame.failing &&
    frame.steps.every(
      ({ settlement, children }) =>
        settlement === 'met' && children.every((child) => child.join !== 'inline' || !child.failing),
    );
  turn.emit({ kind: 'frame-closed', frame: frame.id, ok: healthy, value: frame.value });
  if (frame.caller !== null) {
    const caller = present(state.frames.get(frame.caller), 'a frame without its caller');
    if (healthy) return returnToCaller(turn, frame, caller);
    const [asker] = caller.steps;
    if (asker !== undefined) failFrame(turn, caller, asker);
    return;
  }
  if (frame.join === 'recover') {
    const step = stepOf(state, present(frame.owner, 'a recovery without a step'));
    if (healthy) {
      return turn.emit({ kind: 'step-recovered', step: step.id, ...standIns(step, frame.steps.at(-1)) });
    }
    turn.emit({ kind: 'recovery-failed', step: step.id });
    failFrame(turn, step.frame, step);
  }
}

function iterate(turn: Turn, step: StepState): void {
  advanceEach(turn, step, fail);
  // Iterations of an earlier attempt may have failed before the list was there.
  if (!isOver(step) && step.childFailed) failSoon(turn, step);
}

/** The step is sure to fail when those of its iterations are over that have begun; nothing else begins beside it until then. */
function failSoon(turn: Turn, step: StepState): void {
  const { frame } = step;
  if (frame.failing || !failsWithItsBlocks(step)) return;
  const [culprit] = frame.steps;
  turn.emit({ kind: 'frame-failing', frame: frame.id, step: culprit?.id ?? '' });
  if (frame.owner !== null && frame.join !== 'loose' && frame.join !== 'recover')
    failSoon(turn, stepOf(turn.state, frame.owner));
}

/** What the last step of a recovery hands on in the place of what the failed step was to hand on. */
function standIns(step: StepState, last: StepState | undefined): { outputs: Outputs; kept: readonly string[] } {
  const outputs: [string, Json][] = [];
  for (const [name, type] of declaredOutputs(step)) {
    const value = own(last?.outputs ?? {}, name);
    if (value === undefined || !declaredOutputs(last).has(name)) continue;
    const typed = typeof value === 'string' && last?.kept.includes(name) !== true ? coerce(value, type) : ok(value);
    // What is not of its type stands as it is: whoever uses it says what is wrong.
    outputs.push([name, typed.ok ? typed.value : value]);
  }
  const names = new Set(outputs.map(([name]) => name));
  return { outputs: Object.fromEntries(outputs), kept: (last?.kept ?? []).filter((name) => names.has(name)) };
}

/** What its author says that a step hands on; what every command has beside that is its own. */
function declaredOutputs(step: StepState | undefined): ReadonlyMap<string, ValueType> {
  const act = step?.definition.act;
  if (act?.kind !== 'effect') return new Map();
  if (act.effect.kind === 'command') return new Map(act.effect.captures.map(({ name, type }) => [name, type]));
  if (act.effect.kind !== 'prompt') return new Map();
  return new Map(act.effect.expects.map(({ name, type }) => [name, type === 'file_path' ? 'string' : type]));
}

/** All blocks below a running step are over, or one of them is and the next iteration may begin. */
function joinBlocks(turn: Turn, step: StepState): void {
  if ((step.status !== 'running' && step.status !== 'done') || step.effect !== null) return;
  if (step.definition.act.kind === 'each') {
    iterate(turn, step);
    if (isOver(step) || !step.grown) return;
  }
  if (step.status !== 'running' || step.openChildren > 0 || !step.grown) return;
  const body = step.children.findLast(({ join, abandoned }) => join === 'answer' && !abandoned);
  if (body !== undefined) return answerFrom(turn, step, body);
  if (step.childFailed) return fail(turn, step, childFailure(step));
  const value =
    step.definition.act.kind === 'each' ? null : (step.children.findLast(({ join }) => join === 'wait')?.value ?? null);
  const outputs = value === null ? step.outputs : { ...step.outputs, result: value };
  turn.emit({ kind: 'step-done', step: step.id, outputs, kept: step.kept, session: null });
}

/** The block that performs the step is over: what it came to is the step's own. */
function answerFrom(turn: Turn, step: StepState, body: FrameState): void {
  const session = body.nextSession.kind === 'resume' ? body.nextSession.id : null;
  const last = body.failing
    ? body.steps.find(({ status, settlement }) => status === 'failed' && settlement === 'broken')
    : body.steps.at(-1);
  // When it may be tried again, and what it cost, was that step's own business.
  if (last?.failure) return fail(turn, step, { ...last.failure, session, retryAt: null, usage: null });
  if (body.failing || last === undefined) return fail(turn, step, childFailure(step));
  complete(turn, step, success(last.outputs, { kept: last.kept, route: last.route, session }));
}

/** Steps wait for each other, or for something that can no longer come into being: said at once instead of hanging. */
function failStuck(turn: Turn): void {
  for (const step of [...turn.state.steps.values()].filter(({ status }) => status === 'pending')) {
    if (step.status !== 'pending') continue;
    return fail(turn, step, unmeetable(step));
  }
  throw new Bug('nothing is running, nothing is waiting, and the run is not over');
}

function unmeetable(step: StepState): Failure {
  return failure('need-unmet', `its needs (${step.definition.needs.join(', ')}) can never be met`);
}

function passDeadline(turn: Turn, id: string): void {
  const { state } = turn;
  const timer = state.timers.get(id);
  if (timer === undefined || timer.at > turn.at) return;
  switch (timer.kind) {
    case 'retry':
      return turn.emit({ kind: 'step-retried', step: timer.step });
    case 'timeout': {
      const step = stepOf(state, timer.step);
      if (step.effect?.kind !== 'gate')
        return turn.emit({ kind: 'steps-stopping', steps: [step.id], why: 'timeout', force: false });
      return fail(turn, step, failure('timeout', 'nobody decided in time'));
    }
    case 'drain':
      return stopSteps(turn, [...state.asked.values()], false);
    case 'cleanup':
      turn.emit({ kind: 'warned', message: 'the cleanup script was stopped: it took longer than 60 seconds' });
      return turn.emit({ kind: 'cleanup-stopping', force: false });
  }
}

function resume(turn: Turn, { retryFailed, allowance }: Extract<Input, { kind: 'run-resumed' }>): void {
  const { state } = turn;
  if (state.phase === 'new' || (state.phase === 'ended' && state.end === 'done')) return;
  const again = ({ skipped, status, settlement, frame }: StepState): boolean => {
    if (frame.abandoned || isOfSettledStep(state, frame)) return false;
    if (skipped === 'run-ending') return true;
    return retryFailed && settlement === 'broken' && (status === 'skipped' || status === 'failed');
  };
  // The engine died while it was ending the run; whoever resumes it wants it to go on.
  const withdrawn = state.phase === 'ending' && (state.end === 'stopped' || state.end === 'paused');
  const reopened = state.phase === 'ended' || withdrawn ? [...state.steps.values()].filter(again) : [];
  // Nothing of it can be tried again: it stays as it ended.
  if (state.phase === 'ended' && state.end === 'failed' && reopened.length === 0) return;
  const allowed = allowance === null ? null : { ...state.allowance, ...allowance };
  turn.emit({ kind: 'run-resumed', reopened: reopened.map(({ id }) => id), withdrawn, allowance: allowed });
}

/** What performed a step that has been answered is history: that step is tried again, or nothing is. */
function isOfSettledStep(state: RunState, frame: FrameState): boolean {
  for (let now = frame; now.owner !== null; ) {
    const owner = stepOf(state, now.owner);
    if (now.join === 'answer' && owner.settlement !== 'open' && owner.skipped !== 'run-ending') return true;
    now = owner.frame;
  }
  return false;
}
