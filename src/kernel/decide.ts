// The kernel: maps a state and an input to decisions.
//
//   K1. No I/O, clock, randomness or promise. Everything about the outside arrives in an input, including the time.
//   K2. Total: any input in any state is accepted; a late or repeated one decides nothing.
//   K3. Ids are derived (`step#attempt`), so that a replay names the same effects.
//   K4. Effects are described, never performed.
//   K5. The state holds decisions; views derive explanations.
//   K6. The cost of an input depends on what it touches, not on the size of the run.
//
// Each decision is applied at once: the next one sees it, and the state equals a replay. One loop processes the agenda.

import { Bug, present, unreachable } from '../base/errors.ts';
import { own } from '../base/json.ts';
import { formatDuration } from '../base/time.ts';
import { OUTCOME_OF } from '../ir/conductor.ts';
import { type Outcome, success, type Success } from '../ir/effect.ts';
import { failure, type Failure } from '../ir/failure.ts';
import { partOf } from '../ir/program.ts';
import { admitStep, onAgentOutcome, onAgentStepDone, onAgentStepKept, onPromptLost } from './agents.ts';
import { apply } from './apply.ts';
import { ADMITTED, admitTurn, pauseText, postpone } from './budget.ts';
import type { Decision, FailureHandling, PreparedStep } from './decision.ts';
import type { KeptResult } from './fork.ts';
import {
  childFailure,
  endRun,
  failsWithChildren,
  finishCleanup,
  finishEnding,
  forceCleanup,
  stopSteps,
} from './ending.ts';
import {
  canBeDecided,
  gateRequestOf,
  hasExpired,
  isPresentAsking,
  objectors,
  onAgentProgress,
  onProgress,
  requestGate,
  verdictFor,
  verdictOutputs,
} from './gates.ts';
import { becomeReady } from './needs.ts';
import { advanceEach, openBody, openEntry, openRecovery, returnToCaller, takeTransitions } from './grow.ts';
import type { Input } from './input.ts';
import { judgeStep, keptOutcome } from './keep.ts';
import { asList, exhaustedLimit, prepareStep } from './prepare-step.ts';
import { recoveredOutputs } from './recovered-outputs.ts';
import { checkReport, recordsRefusal } from './report.ts';
import { advanceLoop } from './rounds.ts';
import { onResume, whyLost } from './resume.ts';
import { retryDelay } from './retry.ts';
import { hasBudget } from './spending.ts';
import type { DecideContext, FrameState, RunState, StepState } from './state.ts';
import { agentsWith, CLEANUP_STEP, effectId, endWithoutEngine, failsOwner, isFinished, stepOf } from './state.ts';

/** Warnings about refused verdicts. Their senders are not trusted. */
const REFUSALS_MAX = 100;

export function decide(state: RunState, input: Input, at: number): readonly Decision[] {
  const decisions: Decision[] = [];
  const ctx: DecideContext = {
    state,
    at,
    others: input.kind === 'budgets-read' ? input.others : null,
    emit(decision) {
      decisions.push(decision);
      apply(state, decision, at);
    },
    fail: (step, problem) => fail(ctx, step, problem),
  };
  handle(ctx, input);
  if (decisions.length > 0 || ctx.others !== null) runAgenda(ctx);
  return decisions;
}

function handle(ctx: DecideContext, input: Input): void {
  const { state } = ctx;
  const step = 'step' in input ? state.steps.get(input.step) : undefined;
  switch (input.kind) {
    case 'run-requested':
      if (state.phase !== 'new') return;
      ctx.emit({ ...input, kind: 'run-started' });
      return openEntry(ctx);
    case 'run-resumed':
      return onResume(ctx, input);
    case 'effect-finished': {
      if (state.cleanup !== null && input.effect === effectId(CLEANUP_STEP, state.cleanups))
        return finishCleanup(ctx, input.outcome);
      const performed = state.inFlight.get(input.effect);
      if (performed !== undefined) return onOutcome(ctx, performed, input.outcome);
      // Ignored after the end; `resume` asks again.
      const agent = state.phase === 'ended' ? undefined : state.agentEffects.get(input.effect);
      if (agent !== undefined) onAgentOutcome(ctx, agent, input.outcome);
      return;
    }
    case 'effect-progressed': {
      const performed = state.inFlight.get(input.effect);
      if (performed !== undefined) return onProgress(ctx, performed, input.progress);
      const agent = state.phase === 'ended' ? undefined : state.agentEffects.get(input.effect);
      if (agent !== undefined) onAgentProgress(ctx, agent, input.progress);
      return;
    }
    case 'step-reported': {
      const { step: id, notes, message } = input;
      const verdict = checkReport(state, { agent: null, step: id, outputs: input.outputs, message });
      if (verdict.kind !== 'accepted') return;
      const { outputs, unknown } = verdict;
      for (const name of unknown)
        ctx.emit({ kind: 'warned', message: `step ${id}: output ${name} is not declared; recorded anyway` });
      return ctx.emit({ kind: 'step-completing', step: id, outputs, notes, message });
    }
    case 'report-refused':
      if (step === undefined || !recordsRefusal(step)) return;
      return ctx.emit({ kind: 'report-refused', step: step.id, reason: input.reason });
    case 'event-emitted':
      if (state.phase === 'new' || state.phase === 'ended' || state.events.ids.has(input.event.id)) return;
      return ctx.emit({ kind: 'event-emitted', event: input.event });
    case 'event-received':
      if (step === undefined || isFinished(step) || (input.attempt ?? step.attempt) !== step.attempt) return;
      if (input.event <= step.eventsSeen && (input.asking === null || step.eventRequests.has(input.asking))) return;
      return ctx.emit({ kind: input.kind, step: input.step, event: input.event, asking: input.asking });
    case 'gate-asked':
      // A gate step waits only for its own gate, and a dialog has its own question.
      if (step?.status !== 'running' || state.end !== null || step.effect?.kind === 'gate') return;
      if (step.dialog?.gate === input.gate) return;
      return requestGate(ctx, input.gate, step, input.prompt, input.approvers);
    case 'gate-expired': {
      const request = step?.status === 'running' ? gateRequestOf(state, step, input.gate) : null;
      if (request === null || request.verdict !== null || request.expired) return;
      return ctx.emit({ kind: 'gate-expired', gate: input.gate, step: input.step });
    }
    case 'wait-released':
      if (step?.status !== 'running' || state.end === null || step.interrupted) return;
      return ctx.emit({ kind: 'wait-released', step: input.step });
    case 'deadline-passed':
      return onDeadline(ctx, input.timer);
    case 'gate-decided': {
      const gate = state.gates.get(input.gate);
      if (state.phase === 'new' || state.phase === 'ended' || (gate !== undefined && gate.verdict !== null)) return;
      if (input.message !== null && state.seenMessages.has(input.message)) return;
      if (input.asking !== undefined && !isPresentAsking(state, input.gate, input.asking)) return;
      if (!canBeDecided(state, input.gate) || objectors(state, input.gate, input.verdict).length > 0) return;
      ctx.emit({ ...input });
      for (const requester of gate?.requests.keys() ?? []) {
        const waiting = state.inFlight.get(requester);
        if (waiting !== undefined) onVerdict(ctx, waiting);
      }
      return;
    }
    case 'verdict-refused':
      if (state.phase === 'new' || state.phase === 'ended') return;
      if (state.refusals.has(input.message) || state.refusals.size >= REFUSALS_MAX) return;
      return ctx.emit({ kind: 'warned', message: input.message, refusal: true });
    case 'stop-requested':
      if (input.replaces === true && state.phase !== 'new' && state.phase !== 'ended')
        ctx.emit({ kind: 'engine-replaced' });
      if (state.phase === 'cleaning') {
        if (input.force) forceCleanup(ctx);
        return;
      }
      if (state.phase !== 'running' && state.phase !== 'ending') return;
      if (state.end === null || state.end === 'paused') endRun(ctx, 'stopped', `stopped by ${input.by}`);
      return stopSteps(ctx, [...state.inFlight.values()], input.force);
    case 'pause-requested':
      if (state.phase === 'running') endRun(ctx, 'paused', input.reason);
      return stopAsking(ctx);
    case 'budgets-read':
      // They count while turns are admitted.
      return;
    default:
      return unreachable(input);
  }
}

/**
 * An agent with an open question would wait for a person: its step is stopped. A dialog is asked again after a resume. The
 * gate of a tool call stays open, and the attempt is repeated: its agent must not continue without an answer.
 */
function stopAsking(ctx: DecideContext): void {
  const { state } = ctx;
  const running = [...state.inFlight.values()].filter(({ status }) => status === 'running');
  const byTool = running.filter((step) => hasOpenQuestion(state, step));
  const byDialog = running.filter((step) => step.dialog !== null && verdictFor(state, step) === null);
  for (const { id, interrupted } of byTool) if (!interrupted) ctx.emit({ kind: 'wait-released', step: id });
  stopSteps(ctx, [...byTool, ...byDialog], false);
}

/** Whether the agent of a step asked by a tool call, and nobody has decided. */
function hasOpenQuestion(state: RunState, step: StepState): boolean {
  const { effect, dialog, gate } = step;
  if (dialog !== null || (effect?.kind !== 'turn' && effect?.kind !== 'prompt')) return false;
  const request = gateRequestOf(state, step, gate);
  return request !== null && request.verdict === null && !request.expired;
}

/** Processes the agenda until it is empty or the run has ended. */
function runAgenda(ctx: DecideContext): void {
  const { state } = ctx;
  const { agenda } = state;
  for (const step of agenda.unadmitted) becomeReady(state, step);
  agenda.unadmitted.clear();
  agenda.askedTurns.clear();
  for (;;) {
    if (state.phase === 'new' || state.phase === 'cleaning' || state.phase === 'ended') return;
    const joinable = first(agenda.joinable);
    const unresolvable = first(agenda.unresolvable);
    const closable = first(agenda.closable);
    const mayUseAgent = state.turns + agenda.unadmitted.size < (state.allowance.agents ?? Infinity);
    const ready = first(agenda.ready) ?? (mayUseAgent ? agenda.readyForAgent.first() : undefined);
    if (joinable !== undefined) {
      agenda.joinable.delete(joinable);
      joinBlocks(ctx, joinable);
    } else if (state.end !== null) {
      // Steps left at the end are skipped for that reason only, so that a resume can reopen them.
      return finishEnding(ctx);
    } else if (agenda.blocked.size > 0) {
      ctx.emit({ kind: 'steps-skipped', steps: [...agenda.blocked].map(({ id }) => id), why: 'need' });
    } else if (unresolvable !== undefined) {
      fail(ctx, unresolvable, needUnmet(unresolvable));
    } else if (closable !== undefined) {
      closeFrame(ctx, closable);
    } else if (ready !== undefined) {
      const limit = exhaustedLimit(state);
      if (limit === null) startStep(ctx, ready);
      else endRun(ctx, 'paused', limit.message, limit.pause);
    } else if (state.openFrames === 0) {
      endRun(ctx, state.looseFailure ? 'failed' : 'done', null);
    } else if (isStuck(state) && state.parked.size > 0) {
      endRun(ctx, 'paused', whyParked(state));
    } else if (isStuck(state)) {
      failStuck(ctx);
    } else {
      return;
    }
  }
}

function whyParked({ parked }: RunState): string {
  const [first] = [...parked].map(({ id, failure: problem }) => `${id}: ${problem?.message ?? 'it is parked'}`);
  return `${first ?? ''}${parked.size === 1 ? '' : `, and ${parked.size - 1} more`}`;
}

/** A starting agent will make the step that needs it ready. */
function isStuck(state: RunState): boolean {
  const waits = state.inFlight.size > 0 || state.timers.size > 0 || state.agenda.unadmitted.size > 0;
  return !waits && agentsWith(state, 'opening').length === 0;
}

function first<T>(set: ReadonlySet<T>): T | undefined {
  return set.values().next().value;
}

function startStep(ctx: DecideContext, step: StepState): void {
  const prepared = prepareStep(ctx, step);
  if (!prepared.ok) return fail(ctx, step, prepared.error);
  const judgement = ctx.state.fork !== null && step.attempt === 0 ? judgeStep(ctx.state, step) : null;
  if (judgement?.kind === 'kept') return keepStep(ctx, step, prepared.value, judgement.result);
  const admitted = admitStep(ctx, step, prepared.value);
  if (admitted === 'wait') return enqueueForAgent(ctx.state, step, prepared.value.agent);
  if (admitted !== 'go') return fail(ctx, step, admitted);
  const admission = hasBudget(ctx.state) ? admitTurn(ctx.state, step, prepared.value, ctx.others) : ADMITTED;
  if (admission.kind === 'refused') return endRun(ctx, 'paused', pauseText(admission.pause), admission.pause);
  if (admission.kind !== 'go') return postpone(ctx.state, step, admission);
  if (admission.reservation !== null) ctx.emit({ kind: 'usage-reserved', ...admission.reservation });
  ctx.emit({ kind: 'step-started', step: step.id, attempt: step.attempt + 1, ...prepared.value });
  if (step.effect?.kind === 'gate' && typeof step.effect.gate === 'string') {
    requestGate(ctx, step.effect.gate, step, typeof step.effect.prompt === 'string' ? step.effect.prompt : null);
    if (!step.effect.blocks) return complete(ctx, step, success({}, { route: 'completed' }));
    return onVerdict(ctx, step);
  }
  performInside(ctx, step);
}

/** Settles the step with the result of the run that this one comes from. Steps below it are judged on their own. */
function keepStep(ctx: DecideContext, step: StepState, prepared: PreparedStep, result: KeptResult): void {
  const { fork } = ctx.state;
  const isEffect = step.definition.act.kind === 'effect';
  const asked = { ...prepared, ...(isEffect ? { effect: null } : {}), timeoutAt: null };
  const { from: keptFrom } = present(fork, 'nothing is kept without a fork');
  ctx.emit({ kind: 'step-started', step: step.id, attempt: result.attempt, ...asked, keptFrom });
  if (!isEffect) return performInside(ctx, step);
  const { failure: problem } = result;
  if (problem !== undefined) return settleFailure(ctx, step, problem);
  onAgentStepKept(ctx, prepared.effect, result.agent);
  for (const text of result.grown) ctx.emit({ kind: 'program-grown', part: partOf(text) });
  complete(ctx, step, keptOutcome(result));
}

/** Starts what happens below a step. */
function performInside(ctx: DecideContext, step: StepState): void {
  const { act } = step.definition;
  if (act.kind === 'pass') return complete(ctx, step, success());
  if (act.kind === 'block') return failIfAny(ctx, step, openBody(ctx, step, act.target));
  if (act.kind === 'loop') return failIfAny(ctx, step, advanceLoop(ctx, step, act));
  if (step.items !== null) return iterate(ctx, step);
}

function enqueueForAgent(state: RunState, step: StepState, agent: string | null): void {
  state.agenda.ready.delete(step);
  state.agenda.readyForAgent.delete(step);
  step.queuedFor = agent;
  state.agents.get(agent ?? '')?.queue.add(step);
}

function onOutcome(ctx: DecideContext, step: StepState, outcome: Outcome): void {
  const usage = outcome.kind === 'success' ? outcome.usage : outcome.failure.usage;
  if (usage !== null) ctx.emit({ kind: 'usage-counted', step: step.id, usage });
  const endedAt = endWithoutEngine(ctx.state, step, outcome, ctx.at);
  if (endedAt !== null) ctx.emit({ kind: 'effect-ended', step: step.id, endedAt });
  // The agent has reported, so the step is done regardless of the outcome.
  if (step.status === 'completing') return complete(ctx, step, success(step.outputs));
  // An agent that continues without an answer has not done its step.
  const isAnswer = outcome.kind === 'success' && outcome.route !== 'false' && !hasOpenQuestion(ctx.state, step);
  if (step.interrupted && ctx.state.end !== null && !isAnswer) {
    if (ctx.state.end === 'paused') return ctx.emit({ kind: 'step-lost', step: step.id, why: 'pause' });
    return ctx.emit({ kind: 'steps-skipped', steps: [step.id], why: 'run-ending' });
  }
  if (outcome.kind === 'success') {
    for (const text of outcome.grown ?? []) ctx.emit({ kind: 'program-grown', part: partOf(text) });
    return complete(ctx, step, outcome);
  }
  const { kind } = outcome.failure;
  const wasStopped = kind === 'stopped' || kind === 'lost' || (kind === 'signal' && step.stopping !== null);
  if (wasStopped && step.stopping === 'timeout') {
    const limit = present(step.timeoutAt, 'no time limit has passed') - present(step.startedAt, 'it never started');
    const message = `timed out after ${formatDuration(limit)}`;
    const outputs = { ...outcome.failure.outputs, outcome: 'timeout' };
    return fail(ctx, step, { ...outcome.failure, kind: 'timeout', message, outputs });
  }
  if (wasStopped && ctx.state.end !== null) {
    return ctx.emit({ kind: 'steps-skipped', steps: [step.id], why: 'run-ending' });
  }
  if (kind === 'lost' && outcome.failure.unbegun !== true) onPromptLost(ctx, step);
  if (kind === 'lost' || step.interrupted)
    return ctx.emit({ kind: 'step-lost', step: step.id, why: whyLost(ctx.state, step) });
  fail(ctx, step, outcome.failure);
}

function onVerdict(ctx: DecideContext, step: StepState): void {
  const verdict = verdictFor(ctx.state, step);
  if (step.effect?.kind !== 'gate' || verdict === null) return;
  // Without an explicit answer, the notes are the answer.
  const route = verdict.approved ? 'approved' : 'rejected';
  complete(ctx, step, success({ answer: verdict.notes ?? '', ...verdictOutputs(verdict), outcome: route }, { route }));
}

function complete(ctx: DecideContext, step: StepState, outcome: Success): void {
  if (step.effect?.kind === 'read') return onItems(ctx, step, outcome);
  if (hasExpired(ctx.state, step, outcome)) {
    const message = `gate ${step.gate ?? ''} was not decided in time`;
    const outputs = { ...outcome.outputs, outcome: 'timeout', reason: message, notes: '', decided_by: '' };
    return fail(ctx, step, failure('timeout', message, { outputs }));
  }
  // An agent reports its own outputs; verdicts about its dialogs are not among them.
  const decided = step.effect?.kind === 'prompt' ? null : verdictFor(ctx.state, step);
  const answer =
    decided === null ? outcome : { ...outcome, outputs: { ...verdictOutputs(decided), ...outcome.outputs } };
  onAgentStepDone(ctx, step, answer);
  for (const text of answer.printed.slice(step.printed)) ctx.emit({ kind: 'step-printed', step: step.id, text });
  const route = answer.route ?? 'done';
  const routed = own(step.definition.routes, route);
  if (routed?.kind === 'reject') {
    const by = decided === null ? '' : ` by ${decided.by}${decided.notes === null ? '' : `: ${decided.notes}`}`;
    const { outputs, kept } = answer;
    return fail(ctx, step, failure('gate-rejected', `gate ${step.gate ?? ''} was rejected${by}`, { outputs, kept }));
  }
  const follows = answer.follows ?? (routed === undefined ? [] : [routed]);
  if (follows.length === 0 && step.definition.unrouted !== 'done') {
    return fail(ctx, step, failure('unrouted', `no route for the outcome ${route}`, { outputs: answer.outputs }));
  }
  failIfAny(ctx, step, takeTransitions(ctx, step, answer, follows));
}

function onItems(ctx: DecideContext, step: StepState, { outputs }: Success): void {
  const items = asList(outputs['items'] ?? null);
  if (!items.ok) return fail(ctx, step, failure('invalid-items', items.error));
  ctx.emit({ kind: 'items-read', step: step.id, items: items.value });
  iterate(ctx, step);
}

function failIfAny(ctx: DecideContext, step: StepState, problem: Failure | null): void {
  if (problem !== null) fail(ctx, step, problem);
}

function fail(ctx: DecideContext, step: StepState, problem: Failure): void {
  const { definition } = step;
  if (step.settlement !== 'open') {
    // The step had failed before, and now its transition fails too.
    ctx.emit({ kind: 'warned', message: `after ${step.id}: ${problem.message}` });
    return failFrame(ctx, step.frame, step);
  }
  const retry = (retryAt: number, counts: boolean): void =>
    ctx.emit({ kind: 'step-failed-once', step: step.id, failure: problem, retryAt, counts });
  if (problem.retryAt !== null) return retry(Math.max(ctx.at, problem.retryAt), false);
  if (problem.parks === true) return ctx.emit({ kind: 'step-parked', step: step.id, failure: problem });
  if (problem.reprompt !== null && step.reprompts < definition.repromptsMax) return retry(ctx.at, false);
  const delay = retryDelay(step, problem.kind);
  if (delay !== null) return retry(ctx.at + delay, true);
  settleFailure(ctx, step, problem);
}

/** Routes, recovers or fails a step that is not retried. */
function settleFailure(ctx: DecideContext, step: StepState, problem: Failure): void {
  const { definition } = step;
  const routed = own(definition.routes, problem.kind);
  if (routed?.kind === 'expand') {
    const outputs = { ...problem.outputs, outcome: problem.kind };
    const answer = success(outputs, { kept: problem.kept, route: problem.kind, session: problem.session });
    const routeProblem = takeTransitions(ctx, step, answer, [routed]);
    // If the route fails, do not look for another route.
    if (routeProblem !== null) failUnrouted(ctx, step, routeProblem);
    return;
  }
  if (routed !== undefined) {
    ctx.emit({ kind: 'step-failed', step: step.id, failure: problem, handling: 'routed' });
    return failIfAny(ctx, step, takeTransitions(ctx, step, success(problem.outputs), [routed]));
  }
  failUnrouted(ctx, step, definition.unrouted === 'tell' ? withMissingRoute(problem) : problem);
}

function withMissingRoute(problem: Failure): Failure {
  const outcome = own(OUTCOME_OF, problem.kind);
  return outcome === undefined ? problem : { ...problem, message: `${problem.message}; no route for ${outcome}` };
}

function failUnrouted(ctx: DecideContext, step: StepState, problem: Failure): void {
  const { onError } = step.definition;
  const emitFailed = (handling: FailureHandling): void =>
    ctx.emit({ kind: 'step-failed', step: step.id, failure: problem, handling });
  if (onError.kind === 'continue') return emitFailed('continues');
  if (onError.kind === 'recover' && step.frame.recoveryDepth < ctx.state.limits.recoveryDepthMax) {
    emitFailed('recovers');
    return failIfAny(ctx, step, openRecovery(ctx, step, problem, onError.target));
  }
  emitFailed('fails');
  failFrame(ctx, step.frame, step);
}

/** Starts nothing more in the frame; running steps may finish. */
function failFrame(ctx: DecideContext, frame: FrameState, step: StepState): void {
  const { state } = ctx;
  if (frame.failing) return;
  if (frame.owner === null && frame.caller === null && state.program.onFailure === 'drain') {
    if (state.end !== null && state.end !== 'paused') return;
    return endRun(ctx, 'failed', `step ${step.id} failed: ${step.failure?.message ?? 'a step below it failed'}`);
  }
  ctx.emit({ kind: 'frame-failing', frame: frame.id, step: step.id });
  if (frame.owner === null) return;
  const owner = stepOf(state, frame.owner);
  // Other iterations finish beside a failed one: see `markFailing`.
  const ownerFails = failsOwner(frame) && owner.definition.act.kind !== 'each' && failsWithChildren(owner);
  if (ownerFails || frame.join === 'inline') failFrame(ctx, owner.frame, step);
}

function closeFrame(ctx: DecideContext, frame: FrameState): void {
  const { state } = ctx;
  const succeeded =
    !frame.failing &&
    frame.steps.every(
      ({ settlement, children }) =>
        settlement === 'met' && children.every((child) => child.join !== 'inline' || !child.failing),
    );
  ctx.emit({ kind: 'frame-closed', frame: frame.id, ok: succeeded, value: frame.value });
  if (frame.caller !== null) {
    const caller = present(state.frames.get(frame.caller), 'a frame without its caller');
    if (succeeded) return returnToCaller(ctx, frame, caller);
    const [callingStep] = caller.steps;
    if (callingStep !== undefined) failFrame(ctx, caller, callingStep);
    return;
  }
  if (frame.join === 'recover') {
    const step = stepOf(state, present(frame.owner, 'a recovery without a step'));
    if (succeeded) {
      return ctx.emit({ kind: 'step-recovered', step: step.id, ...recoveredOutputs(step, frame.steps.at(-1)) });
    }
    ctx.emit({ kind: 'recovery-failed', step: step.id });
    failFrame(ctx, step.frame, step);
  }
}

function iterate(ctx: DecideContext, step: StepState): void {
  failIfAny(ctx, step, advanceEach(ctx, step));
  // Iterations of an earlier attempt may have failed before the items were read.
  if (!isFinished(step) && step.childFailed) markFailing(ctx, step);
}

/** The step will fail once its running iterations end. Until then nothing else starts in its frame. */
function markFailing(ctx: DecideContext, step: StepState): void {
  const { frame } = step;
  if (frame.failing || !failsWithChildren(step)) return;
  const [culprit] = frame.steps;
  ctx.emit({ kind: 'frame-failing', frame: frame.id, step: culprit?.id ?? '' });
  if (frame.owner !== null && frame.join !== 'loose' && frame.join !== 'recover')
    markFailing(ctx, stepOf(ctx.state, frame.owner));
}

/** Ends a step whose child frames have closed, or starts its next iteration. */
function joinBlocks(ctx: DecideContext, step: StepState): void {
  if ((step.status !== 'running' && step.status !== 'done') || step.effect !== null) return;
  if (step.definition.act.kind === 'each') {
    iterate(ctx, step);
    if (isFinished(step) || !step.grown) return;
  }
  if (step.status !== 'running' || step.openChildren > 0) return;
  if (step.definition.act.kind === 'loop') return failIfAny(ctx, step, advanceLoop(ctx, step, step.definition.act));
  if (!step.grown) return;
  const body = step.children.findLast(({ join, abandoned }) => join === 'answer' && !abandoned);
  if (body !== undefined) return answerFrom(ctx, step, body);
  if (step.childFailed) return fail(ctx, step, childFailure(step));
  const value =
    step.definition.act.kind === 'each' ? null : (step.children.findLast(({ join }) => join === 'wait')?.value ?? null);
  const outputs = value === null ? step.outputs : { ...step.outputs, result: value };
  ctx.emit({ kind: 'step-done', step: step.id, outputs, kept: step.kept, session: null });
}

/** Ends a step with the outcome of the block that performs it. */
function answerFrom(ctx: DecideContext, step: StepState, body: FrameState): void {
  const session = body.nextSession.kind === 'resume' ? body.nextSession.id : null;
  const last = body.failing
    ? body.steps.find(({ status, settlement }) => status === 'failed' && settlement === 'broken')
    : body.steps.at(-1);
  // The inner step has already been retried and charged.
  if (last?.failure) return fail(ctx, step, { ...last.failure, session, retryAt: null, usage: null });
  if (body.failing || last === undefined) return fail(ctx, step, childFailure(step));
  complete(ctx, step, success(last.outputs, { kept: last.kept, route: last.route, session }));
}

/** Fails a step with circular or impossible needs, instead of hanging. */
function failStuck(ctx: DecideContext): void {
  for (const step of ctx.state.steps.values()) {
    if (step.status === 'pending') return fail(ctx, step, needUnmet(step));
  }
  throw new Bug('nothing is running or waiting, but the run has not ended');
}

function needUnmet(step: StepState): Failure {
  return failure('need-unmet', `its needs (${step.definition.needs.join(', ')}) can never be met`);
}

function onDeadline(ctx: DecideContext, id: string): void {
  const { state } = ctx;
  const timer = state.timers.get(id);
  if (timer === undefined || timer.at > ctx.at) return;
  switch (timer.kind) {
    case 'retry':
      return ctx.emit({ kind: 'step-retried', step: timer.step });
    case 'round':
      return ctx.emit({ kind: 'round-due', step: timer.step });
    case 'timeout': {
      const step = stepOf(state, timer.step);
      if (step.effect?.kind !== 'gate')
        return ctx.emit({ kind: 'steps-stopping', steps: [step.id], why: 'timeout', force: false });
      return fail(ctx, step, failure('timeout', 'not decided in time'));
    }
    case 'drain':
      return stopSteps(ctx, [...state.inFlight.values()], false);
    case 'cleanup':
      ctx.emit({ kind: 'warned', message: 'the cleanup script was stopped after 60 seconds' });
      return ctx.emit({ kind: 'cleanup-stopping', force: false });
  }
}
