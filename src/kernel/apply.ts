// The state of a run is the fold of its records: in the engine, in every view, and on the page. Folds decisions and maintains indexes and agenda. `decide` and replay both use it, so a resumed run
// continues from exactly the same state. It decides nothing and never fails on a journal written by this kernel.

import { assert, present, unreachable } from '../base/errors.ts';
import { isTurn } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import { priceOf, type Usage } from '../ir/output.ts';
import { type Program, withPart } from '../ir/program.ts';
import { applyToAgents, assignAgent, releaseAgent } from './agents.ts';
import { charge, reserve, sumOf } from './spending.ts';
import type { AppliedRecord, Cost, Decision, FrameSpec, StepProgress } from './decision.ts';
import { addEvent, gateRequestOf } from './gates.ts';
import { currentFrame, hasItems, keep } from './apply-fork.ts';
import { becomeReady, markGrown, registerNeeds, resolveNeeds, settleStep } from './needs.ts';
import { reopen } from './reopen.ts';
import { descend, dropOldest, getOrAdd, type IdTree } from './collections.ts';
import type { FrameState, GateState, LaneState, RunState } from './state.ts';
import {
  effectId,
  failsOwner,
  frameAround,
  frameOf,
  holderOf,
  initialState,
  isAwaited,
  NO_COST,
  outlivesEngine,
  requesterOf,
  retryTimer,
  roundTimer,
  sessionAfter,
  shortened,
  stepOf,
  StepState,
  timeoutTimer,
  withAbsence,
} from './state.ts';

export function fold(program: Program, records: readonly AppliedRecord[]): RunState {
  const state = initialState(program);
  for (const record of records) applyRecord(state, record);
  return state;
}

/** Changes the state in place. */
export function applyRecord(state: RunState, { decisions, at }: AppliedRecord): void {
  for (const decision of decisions) apply(state, decision, at);
}

export function apply(state: RunState, decision: Decision, at: number): void {
  const before = state.recordedAt ?? at;
  state.recordedAt = at;
  if ('machine' in decision) state.machine = decision.machine?.id ?? state.machine;
  switch (decision.kind) {
    case 'run-started':
      state.phase = 'running';
      state.request = decision.request;
      state.fork = decision.fork ?? null;
      state.allowance = decision.request.allowance;
      state.budgets = decision.request.budgets ?? null;
      state.startedAt = at;
      return;
    case 'frame-opened':
      return openFrame(state, decision.frame);
    case 'steps-added':
      return addSteps(state, decision);
    case 'step-printed':
      stepOf(state, decision.step).printed += 1;
      return;
    case 'steps-stopping':
      for (const id of decision.steps) {
        const step = stepOf(state, id);
        step.stopping = decision.why;
        step.stoppingForced = decision.force;
        state.timers.delete(timeoutTimer(step.id, step.attempt));
      }
      if (decision.why === 'run-ending') state.timers.delete('drain');
      if (decision.why === 'run-ending' && decision.force) state.endForced = true;
      return;
    case 'steps-skipped':
      for (const id of decision.steps) {
        const step = stepOf(state, id);
        leaveAgenda(state, step);
        restoreSession(step);
        if (step.effectEndedAt !== null) countPresence(state, step, at);
        clearEffect(state, step, null);
        state.timers.delete(retryTimer(step.id));
        state.timers.delete(roundTimer(step.id));
        state.parked.delete(step);
        step.skipped = decision.why;
        finish(state, step, 'skipped', 'broken', at);
      }
      return;
    case 'frame-failing': {
      const frame = frameOf(state, decision.frame);
      frame.failing = true;
      for (const step of frame.steps) if (step.status === 'pending') state.agenda.blocked.add(step);
      return;
    }
    case 'value-returned':
      frameOf(state, decision.frame).value = decision.value;
      return;
    case 'frames-dropped':
      for (const id of decision.frames) {
        frameOf(state, id).closed = true;
        state.openFrames -= 1;
      }
      return;
    case 'frame-closed':
      return closeFrame(state, frameOf(state, decision.frame), decision.ok, decision.value);
    case 'gate-decided': {
      const gate = gateNamed(state, decision.gate);
      gate.verdict = decision.verdict;
      for (const request of gate.requests.values()) request.verdict ??= decision.verdict;
      return rememberMessage(state, decision.message);
    }
    case 'event-emitted':
      return addEvent(state, decision.event, at);
    case 'agent-opened':
    case 'agent-kept':
    case 'agent-reviving':
    case 'agent-session':
    case 'agents-closing':
    case 'agents-hastened':
    case 'agent-closed':
      return applyToAgents(state, decision);
    case 'usage-counted': {
      const step = state.steps.get(decision.step);
      if (step !== undefined) {
        step.usage = decision.usage;
        step.cost = withUsage(step.cost ?? NO_COST, decision.usage);
      }
      state.cost = withUsage(state.cost, decision.usage);
      charge(state.spending, decision.step, decision.usage, at);
      return;
    }
    case 'run-ending':
      state.phase = 'ending';
      state.end = decision.end;
      state.reason = decision.reason;
      state.pause = decision.pause ?? null;
      if (decision.drainUntil !== null)
        state.timers.set('drain', { id: 'drain', at: decision.drainUntil, kind: 'drain' });
      return;
    case 'cleanup-started':
      state.phase = 'cleaning';
      state.timers.delete('drain');
      state.cleanup = { effect: decision.effect, stopping: false, machine: state.machine };
      state.cleanups = decision.attempt;
      state.timers.set('cleanup', { id: 'cleanup', at: decision.timeoutAt, kind: 'cleanup' });
      return;
    case 'cleanup-stopping':
      present(state.cleanup, 'no cleanup to stop').stopping = true;
      state.timers.delete('cleanup');
      return;
    case 'cleanup-finished':
      state.cleanup = null;
      state.timers.delete('cleanup');
      return;
    case 'program-grown':
      state.program = withPart(state.program, decision.part);
      return;
    case 'engine-replaced':
      state.absences = withAbsence(state.absences, before, at);
      return;
    case 'run-resumed':
      state.absences = withAbsence(state.absences, before, at);
      state.allowance = decision.allowance ?? state.allowance;
      state.limits = decision.limits ?? state.limits;
      if (decision.budgets !== undefined) state.budgets = decision.budgets;
      state.extra = decision.extra ?? state.extra;
      // A resumed run may restart agents that have exited.
      for (const agent of state.agents.values())
        if (agent.status === 'gone' || agent.status === 'ended') agent.status = 'lost';
      for (const step of state.parked) becomeReady(state, step);
      state.parked.clear();
      if (decision.withdrawn || state.phase === 'ended') reopen(state, decision.reopened);
      return;
    case 'warned':
      state.warnings.push(decision.message);
      if (decision.refusal) state.refusals.add(decision.message);
      return;
    case 'run-ended':
      state.phase = 'ended';
      state.end = decision.end;
      state.reason = decision.reason;
      state.result = decision.result;
      state.endedAt = at;
      state.timers.clear();
      return;
    default:
      return applyToStep(state, stepOf(state, decision.step), decision, at);
  }
}

/** Decisions that change one step. */
type StepDecision = Exclude<
  Extract<Decision, { readonly step: string }>,
  { readonly kind: 'step-printed' | 'frame-failing' | 'usage-counted' }
>;

function applyToStep(state: RunState, step: StepState, decision: StepDecision, at: number): void {
  switch (decision.kind) {
    case 'step-started':
      leaveAgenda(state, step);
      step.status = 'running';
      step.attempt = decision.attempt;
      step.machine = state.machine;
      step.failure = null;
      step.usage = null;
      step.printed = 0;
      step.startedAt = at;
      step.effectEndedAt = null;
      step.initialSession = step.frame.nextSession;
      step.items = decision.items;
      step.width = decision.width;
      step.roundsMax = decision.rounds ?? 0;
      step.roundsAllowed = step.roundsMax;
      step.timeoutAt = decision.timeoutAt;
      step.interrupted = false;
      step.notes = null;
      if (state.fork !== null) keep(state, step, decision.keptFrom ?? null);
      step.eventsSeen = step.eventsBefore;
      step.gate = null;
      step.delivery = null;
      assignAgent(state, step, decision.agent);
      if (decision.effect !== null) {
        step.effect = decision.effect;
        if (isTurn(decision.effect)) state.turns += 1;
        state.inFlight.set(effectId(step.id, step.attempt), step);
      }
      if (decision.timeoutAt !== null) {
        const id = timeoutTimer(step.id, step.attempt);
        state.timers.set(id, { id, at: decision.timeoutAt, kind: 'timeout', step: step.id });
      }
      return;
    case 'usage-reserved':
      return reserve(state.spending, decision, at);
    case 'items-read':
      clearEffect(state, step, null);
      step.items = decision.items;
      if (step.keptFrom !== null && !hasItems(state, step)) step.keptFrom = null;
      return;
    case 'iterations-named':
      step.names = decision.names;
      step.iterationCursor = 0;
      return;
    case 'round-delayed': {
      step.delayedRound = decision.round;
      const id = roundTimer(step.id);
      state.timers.set(id, { id, at: decision.until, kind: 'round', step: step.id });
      return;
    }
    case 'round-due':
      state.timers.delete(roundTimer(step.id));
      state.agenda.joinable.add(step);
      return;
    case 'step-progressed':
      return progress(state, step, decision.progress);
    case 'step-completing':
      step.status = 'completing';
      // An agent that reports has received its prompt.
      if (step.delivery !== null) step.delivery = 'accepted';
      step.outputs = decision.outputs;
      step.notes = decision.notes;
      rememberMessage(state, decision.message);
      state.timers.delete(timeoutTimer(step.id, step.attempt));
      return;
    case 'effect-ended':
      step.effectEndedAt = decision.endedAt;
      return;
    case 'step-answered':
      countPresence(state, step, at);
      // The step itself ends later.
      step.effectEndedAt = null;
      clearEffect(state, step, decision.session);
      step.outputs = decision.outputs;
      step.kept = decision.kept;
      return;
    case 'step-grown':
      markGrown(state, step);
      if (step.openChildren === 0) state.agenda.joinable.add(step);
      return;
    case 'step-failed-once': {
      waitForAttempt(state, step, decision.failure, at);
      if (decision.counts) step.failures += 1;
      if (decision.failure.reprompt !== null) {
        step.reprompt = decision.failure.reprompt;
        step.reprompts += 1;
      }
      const id = retryTimer(step.id);
      state.timers.set(id, { id, at: decision.retryAt, kind: 'retry', step: step.id });
      return;
    }
    case 'step-parked':
      waitForAttempt(state, step, decision.failure, at);
      state.parked.add(step);
      return;
    case 'step-retried':
      state.timers.delete(retryTimer(step.id));
      return becomeReady(state, step);
    case 'step-lost':
      restoreSession(step);
      clearEffect(state, step, null);
      step.status = 'pending';
      return becomeReady(state, step);
    case 'step-done':
      countPresence(state, step, at);
      clearEffect(state, step, decision.session);
      step.outputs = decision.outputs;
      step.kept = decision.kept;
      step.route = decision.route ?? null;
      return finish(state, step, 'done', 'met', at);
    case 'step-failed':
      leaveAgenda(state, step);
      countPresence(state, step, at);
      clearEffect(state, step, decision.failure.session);
      step.failure = decision.failure;
      step.outputs = { ...step.outputs, ...decision.failure.outputs };
      step.kept = [...step.kept, ...decision.failure.kept];
      if (decision.handling === 'recovers') {
        // Failed in views, but still open for dependent steps and for its frame.
        step.status = 'failed';
        step.finishedAt = step.effectEndedAt ?? at;
        step.recoveries += 1;
        return;
      }
      step.failures += 1;
      return finish(state, step, 'failed', decision.handling === 'fails' ? 'broken' : 'met', at);
    case 'step-recovered':
      step.outputs = { ...step.outputs, ...decision.outputs };
      step.kept = [...step.kept.filter((name) => !Object.hasOwn(decision.outputs, name)), ...decision.kept];
      return finish(state, step, 'failed', 'met', step.finishedAt ?? at);
    case 'recovery-failed':
      return finish(state, step, 'failed', 'broken', step.finishedAt ?? at);
    case 'gate-asked': {
      const gate = gateNamed(state, decision.gate);
      const requester = requesterOf(step);
      const approvers = decision.approvers ?? (step.effect?.kind === 'gate' ? step.effect.approvers : null);
      if (decision.anew || gate.requests.size === 0) {
        gate.openedAt = at;
        gate.asked += 1;
      }
      if (decision.anew) {
        gate.verdict = null;
        gate.requests.delete(requester);
      }
      const { prompt } = decision;
      const made = { verdict: gate.verdict, expired: false, prompt, approvers };
      const request = getOrAdd(gate.requests, requester, () => made);
      Object.assign(request, { expired: false, prompt, approvers });
      // Others may wait for a later asking than the one that has answered this step.
      if (request.verdict === gate.verdict) gate.prompt = prompt;
      step.gate = decision.gate;
      return;
    }
    case 'gate-expired': {
      const request = gateNamed(state, decision.gate).requests.get(requesterOf(step));
      if (request !== undefined) request.expired = true;
      return;
    }
    case 'report-refused':
      step.refusedReports += 1;
      return;
    case 'wait-released':
      step.interrupted = true;
      return;
    case 'event-received':
      step.eventsSeen = Math.max(step.eventsSeen, decision.event);
      if (decision.asking !== null) step.eventRequests.set(decision.asking, decision.event);
      return dropOldest(step.eventRequests, EVENT_REQUESTS_MAX);
    default:
      return unreachable(decision);
  }
}

/** If the effect outlives engines, it ran until now, or until it ended. */
function countPresence(state: RunState, step: StepState, at: number): void {
  if (step.startedAt === null || !outlivesEngine(step.effect)) return;
  state.absences = shortened(state.absences, step.startedAt, step.effectEndedAt ?? at);
}

function withUsage({ usd, tokens, unpriced }: Cost, usage: Usage): Cost {
  const price = priceOf(usage);
  const now = { usd: sumOf(usd, price ?? 0), tokens: tokens + (usage.tokens ?? 0) };
  return { ...now, unpriced: unpriced + (price === null ? 1 : 0) };
}

function openFrame(state: RunState, spec: FrameSpec): void {
  assert(!state.frames.has(spec.id), `frame ${JSON.stringify(spec.id)} is opened twice`);
  const around = spec.scope === null ? {} : frameOf(state, spec.scope).visibleVariables;
  const isMove = spec.replaces !== null || spec.caller !== null || spec.forkedFrom !== null;
  const after = isMove ? currentFrame(state, spec) : null;
  const frame: FrameState = {
    ...spec,
    isInner: spec.join === 'answer' || frameAround(state, spec)?.isInner === true,
    visibleVariables: { ...around, ...spec.variables },
    node: nodeOf(state, spec),
    steps: [],
    after,
    open: 0,
    failing: false,
    closed: false,
    abandoned: false,
    value: null,
    nextSession: spec.session,
  };
  state.frames.set(frame.id, frame);
  state.openFrames += 1;
  // A transition of a kept step costs nothing.
  if (isMove && after?.steps.every(({ keptFrom }) => keptFrom !== null) !== true) state.transitions += 1;
  state.agenda.closable.add(frame);
  if (!state.lanes.has(frame.lane)) {
    const parents = frame.forkedFrom === null ? {} : laneOf(state, frame.forkedFrom).variables;
    const variables = { ...parents, ...frame.variables };
    const nowhere = { visits: 0, visitsOf: new Map(), countById: new Map(), frame: null, latest: new Map(), forks: 0 };
    state.lanes.set(frame.lane, { variables, ...nowhere });
  }
  laneOf(state, frame.lane).frame = frame;
  if (frame.forkedFrom !== null) laneOf(state, frame.forkedFrom).forks += 1;
  if (frame.replaces !== null) {
    const replaced = frameOf(state, frame.replaces);
    replaced.closed = true;
    state.openFrames -= 1;
    state.agenda.closable.delete(replaced);
    if (frame.owner !== null) {
      const { children } = stepOf(state, frame.owner);
      children[children.lastIndexOf(replaced)] = frame;
    }
    return;
  }
  const holder = holderOf(state, frame);
  if (holder !== null) holder.open += 1;
  if (frame.caller !== null || frame.owner === null) return;
  const owner = stepOf(state, frame.owner);
  owner.children.push(frame);
  if (owner.names !== null) owner.startedNames.add(frame.prefix.slice(owner.id.length + 1, -1));
  if (frame.join === 'wait' || frame.join === 'loose') owner.blocks += 1;
  if (isAwaited(frame)) owner.openChildren += 1;
}

/** Descends from the parent step's node: walking long ids from the root would cost the depth of the run. */
function nodeOf(state: RunState, { owner, prefix }: FrameSpec): IdTree<StepState> {
  const step = owner === null ? undefined : stepOf(state, owner);
  if (step === undefined || !prefix.startsWith(`${step.id}.`)) return descend(state.tree, prefix);
  const own = step.id.slice(step.frame.prefix.length);
  return descend(step.frame.node, `${own}${prefix.slice(step.id.length)}`);
}

function closeFrame(state: RunState, frame: FrameState, ok: boolean, value: FrameState['value']): void {
  frame.closed = true;
  frame.value = value;
  if (!ok) frame.failing = true;
  state.openFrames -= 1;
  state.agenda.closable.delete(frame);
  const holder = holderOf(state, frame);
  if (holder !== null) leaveFrame(state, holder);
  if (frame.caller !== null) return;
  if (frame.join === 'loose' && !ok) state.looseFailure = true;
  if (frame.owner === null || !isAwaited(frame)) return;
  const owner = stepOf(state, frame.owner);
  owner.openChildren -= 1;
  if (!ok && failsOwner(frame)) owner.childFailed = true;
  if (owner.status === 'running' || !owner.grown) state.agenda.joinable.add(owner);
}

function addSteps(state: RunState, decision: Extract<Decision, { kind: 'steps-added' }>): void {
  const frame = frameOf(state, decision.frame);
  const block = present(state.program.blocks[decision.block], `no block ${decision.block} in this program`);
  const added = block.steps.map((definition, index): StepState => {
    const id = present(decision.steps[index], `the journal contains no step for ${definition.id} of ${decision.block}`);
    const step = new StepState(id, state.steps.size, frame, definition);
    assert(!state.steps.has(id), `step ${id} is added twice`);
    state.steps.set(id, step);
    descend(frame.node, `${id.slice(frame.prefix.length)}.`).value = step;
    return step;
  });
  const lane = laneOf(state, frame.lane);
  if (block.naming !== 'path') {
    lane.visits += 1;
    for (const step of added) {
      const { definition } = step;
      const { id } = definition;
      lane.visitsOf.set(definition, (lane.visitsOf.get(definition) ?? 0) + 1);
      lane.countById.set(id, (lane.countById.get(id) ?? 0) + 1);
      lane.latest.set(id, step);
    }
  }
  frame.steps.push(...added);
  frame.open += added.length;
  if (frame.open > 0) state.agenda.closable.delete(frame);
  for (const step of added) {
    resolveNeeds(state, step);
    registerNeeds(state, step);
  }
}

function progress(state: RunState, step: StepState, { session, delivery, dialog }: StepProgress): void {
  if (session !== undefined && isTurn(step.effect)) step.frame.nextSession = { kind: 'resume', id: session };
  if (delivery !== undefined) step.delivery = delivery;
  if (dialog === undefined) return;
  if (dialog === null) {
    // An undecided dialog keeps its gate name if it comes back.
    if ((gateRequestOf(state, step, step.dialog?.gate ?? null)?.verdict ?? null) !== null) step.dialogs += 1;
    step.gate = null;
  }
  step.dialog = dialog;
}

/** The attempt failed, and another one follows. */
function waitForAttempt(state: RunState, step: StepState, failure: Failure, at: number): void {
  leaveAgenda(state, step);
  countPresence(state, step, at);
  clearEffect(state, step, failure.session);
  step.status = 'pending';
  step.failure = failure;
}

/** The next attempt starts in the same session as the interrupted one. */
function restoreSession(step: StepState): void {
  if (isTurn(step.effect)) step.frame.nextSession = step.initialSession;
}

/** The effect of the current attempt is no longer in flight. */
function clearEffect(state: RunState, step: StepState, session: string | null): void {
  state.inFlight.delete(effectId(step.id, step.attempt));
  if (isTurn(step.effect)) state.turns -= 1;
  state.timers.delete(timeoutTimer(step.id, step.attempt));
  state.spending.reservations.delete(step.id);
  step.effect = null;
  step.stopping = null;
  step.dialog = null;
  if (session !== null) step.frame.nextSession = sessionAfter(step, session);
  releaseAgent(state, step);
}

type FinalStatus = 'done' | 'failed' | 'skipped';

function finish(state: RunState, step: StepState, status: FinalStatus, settlement: 'met' | 'broken', at: number): void {
  assert(step.settlement === 'open', `step ${step.id} is finished twice`);
  step.status = status;
  step.finishedAt = step.effectEndedAt ?? at;
  step.reprompt = null;
  step.reprompts = 0;
  state.agenda.joinable.delete(step);
  leaveFrame(state, step.frame);
  settleStep(state, step, settlement);
}

function leaveFrame(state: RunState, frame: FrameState): void {
  frame.open -= 1;
  assert(frame.open >= 0, `frame ${JSON.stringify(frame.id)} was left more often than entered`);
  if (frame.open === 0 && !frame.closed) state.agenda.closable.add(frame);
}

function leaveAgenda(state: RunState, step: StepState): void {
  state.agenda.ready.delete(step);
  state.agenda.readyForAgent.delete(step);
  state.agenda.unadmitted.delete(step);
  state.agenda.blocked.delete(step);
  state.agenda.unresolvable.delete(step);
}

function laneOf(state: RunState, name: string): LaneState {
  return present(state.lanes.get(name), `no lane ${name} in this run`);
}

/** A command has one request at a time; a few commands of a step may run in parallel. */
const EVENT_REQUESTS_MAX = 16;

/** Makes a repeated verdict or report take effect once, even if its sender missed the reply. */
function rememberMessage(state: RunState, message: string | null): void {
  if (message === null) return;
  state.seenMessages.add(message);
  dropOldest(state.seenMessages, SEEN_MESSAGES_MAX);
}

/** More than can be in flight at once. */
const SEEN_MESSAGES_MAX = 1_000;

function gateNamed(state: RunState, name: string): GateState {
  const undecided = { asked: 0, prompt: null, openedAt: null, verdict: null };
  return getOrAdd(state.gates, name, () => ({ name, requests: new Map(), ...undecided }));
}
