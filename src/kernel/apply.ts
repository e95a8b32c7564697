// Folds one decision into the state and maintains indexes and agenda. `decide` and replay both use it, so a resumed run
// continues from exactly the same state. It decides nothing and never fails on a journal written by this kernel.

import { assert, present, unreachable } from '../base/assert.ts';
import { isTurn } from '../ir/effect.ts';
import { canGrow } from '../ir/program.ts';
import { applyToAgents, assignAgent, releaseAgent } from './apply-agents.ts';
import { applyMessage, rememberMessage } from './apply-messages.ts';
import { gateRequestOf } from './gates.ts';
import type { Decision, FrameSpec, StepProgress } from './decision.ts';
import type { IdTree } from './id-tree.ts';
import { descend, insert } from './id-tree.ts';
import { registerNeeds, becomeReady, resolveNeeds, markGrown, settleStep } from './needs.ts';
import { reopen } from './reopen.ts';
import type { FrameState, LaneState, RunState, StepState } from './state.ts';
import { effectId, frameOf, isAwaited, retryTimer, stepOf, timeoutTimer } from './state.ts';

export function apply(state: RunState, decision: Decision, at: number): void {
  switch (decision.kind) {
    case 'run-started':
      state.phase = 'running';
      state.request = decision.request;
      state.allowance = decision.request.allowance;
      state.startedAt = at;
      return;
    case 'frame-opened':
      return openFrame(state, decision.frame);
    case 'steps-added':
      return addSteps(state, decision);
    case 'step-started': {
      const step = stepOf(state, decision.step);
      leaveAgenda(state, step);
      step.status = 'running';
      step.attempt = decision.attempt;
      step.failure = null;
      step.usage = null;
      step.startedAt = at;
      step.initialSession = step.frame.nextSession;
      step.items = decision.items;
      step.width = decision.width;
      step.timeoutAt = decision.timeoutAt;
      step.interrupted = false;
      step.notes = null;
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
    }
    case 'items-read': {
      const step = stepOf(state, decision.step);
      clearEffect(state, step, null);
      step.items = decision.items;
      return;
    }
    case 'iterations-named': {
      const step = stepOf(state, decision.step);
      step.names = decision.names;
      step.iterationCursor = 0;
      return;
    }
    case 'step-printed':
      return;
    case 'step-progressed':
      return progress(state, stepOf(state, decision.step), decision.progress);
    case 'step-completing': {
      const step = stepOf(state, decision.step);
      step.status = 'completing';
      // An agent that reports has received its prompt.
      if (step.delivery !== null) step.delivery = 'accepted';
      step.outputs = decision.outputs;
      step.notes = decision.notes;
      rememberMessage(state, decision.message);
      state.timers.delete(timeoutTimer(step.id, step.attempt));
      return;
    }
    case 'step-answered': {
      const step = stepOf(state, decision.step);
      clearEffect(state, step, decision.session);
      step.outputs = decision.outputs;
      step.kept = decision.kept;
      return;
    }
    case 'step-grown': {
      const step = stepOf(state, decision.step);
      markGrown(state, step);
      if (step.openChildren === 0) state.agenda.joinable.add(step);
      return;
    }
    case 'step-failed-once': {
      const step = stepOf(state, decision.step);
      leaveAgenda(state, step);
      clearEffect(state, step, decision.failure.session);
      step.status = 'pending';
      if (decision.counts) step.failures += 1;
      if (decision.failure.reprompt !== null) {
        step.reprompt = decision.failure.reprompt;
        step.reprompts += 1;
      }
      step.failure = decision.failure;
      const id = retryTimer(step.id);
      state.timers.set(id, { id, at: decision.retryAt, kind: 'retry', step: step.id });
      return;
    }
    case 'step-retried': {
      const step = stepOf(state, decision.step);
      state.timers.delete(retryTimer(step.id));
      becomeReady(state, step);
      return;
    }
    case 'step-lost': {
      const step = stepOf(state, decision.step);
      restoreSession(step);
      clearEffect(state, step, null);
      step.status = 'pending';
      becomeReady(state, step);
      return;
    }
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
    case 'step-done': {
      const step = stepOf(state, decision.step);
      clearEffect(state, step, decision.session);
      step.outputs = decision.outputs;
      step.kept = decision.kept;
      step.route = decision.route ?? null;
      finish(state, step, 'done', at);
      settleStep(state, step, 'met');
      return;
    }
    case 'step-failed': {
      const step = stepOf(state, decision.step);
      leaveAgenda(state, step);
      clearEffect(state, step, decision.failure.session);
      step.failure = decision.failure;
      step.outputs = { ...step.outputs, ...decision.failure.outputs };
      step.kept = [...step.kept, ...decision.failure.kept];
      if (decision.handling === 'recovers') {
        // Failed in views, but still open for dependent steps and for its frame.
        step.status = 'failed';
        step.finishedAt = at;
        step.recoveries += 1;
        return;
      }
      step.failures += 1;
      finish(state, step, 'failed', at);
      settleStep(state, step, decision.handling === 'fails' ? 'broken' : 'met');
      return;
    }
    case 'step-recovered': {
      const step = stepOf(state, decision.step);
      step.outputs = { ...step.outputs, ...decision.outputs };
      step.kept = [...step.kept.filter((name) => !Object.hasOwn(decision.outputs, name)), ...decision.kept];
      finish(state, step, 'failed', step.finishedAt ?? at);
      settleStep(state, step, 'met');
      return;
    }
    case 'recovery-failed': {
      const step = stepOf(state, decision.step);
      finish(state, step, 'failed', step.finishedAt ?? at);
      settleStep(state, step, 'broken');
      return;
    }
    case 'steps-skipped':
      for (const id of decision.steps) {
        const step = stepOf(state, id);
        leaveAgenda(state, step);
        restoreSession(step);
        clearEffect(state, step, null);
        state.timers.delete(retryTimer(step.id));
        step.skipped = decision.why;
        finish(state, step, 'skipped', at);
        settleStep(state, step, 'broken');
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
    case 'gate-asked':
    case 'gate-expired':
    case 'gate-decided':
    case 'wait-released':
    case 'event-emitted':
    case 'event-received':
      return applyMessage(state, decision, at);
    case 'agent-opened':
    case 'agent-reviving':
    case 'agent-session':
    case 'agents-closing':
    case 'agents-hastened':
    case 'agent-closed':
      return applyToAgents(state, decision);
    case 'usage-counted': {
      const { usd, tokens } = decision.usage;
      const step = state.steps.get(decision.step);
      if (step !== undefined) step.usage = decision.usage;
      // Rounded, so that ten times $0.20 is exactly $2.
      state.cost.usd = Math.round((state.cost.usd + (usd ?? 0)) * 1e9) / 1e9;
      state.cost.tokens += tokens ?? 0;
      if (usd === null) state.cost.unpriced += 1;
      return;
    }
    case 'run-ending':
      state.phase = 'ending';
      state.end = decision.end;
      state.reason = decision.reason;
      if (decision.drainUntil !== null)
        state.timers.set('drain', { id: 'drain', at: decision.drainUntil, kind: 'drain' });
      return;
    case 'cleanup-started':
      state.phase = 'cleaning';
      state.timers.delete('drain');
      state.cleanup = { effect: decision.effect, stopping: false };
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
    case 'run-resumed':
      state.allowance = decision.allowance ?? state.allowance;
      // A resumed run may restart agents that have exited.
      for (const agent of state.agents.values())
        if (agent.status === 'gone' || agent.status === 'ended') agent.status = 'lost';
      if (decision.withdrawn || state.phase === 'ended') reopen(state, decision.reopened);
      return;
    case 'warned':
      state.warnings.push(decision.message);
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
      return unreachable(decision);
  }
}

function openFrame(state: RunState, spec: FrameSpec): void {
  assert(!state.frames.has(spec.id), `frame ${JSON.stringify(spec.id)} is opened twice`);
  const around = spec.scope === null ? {} : frameOf(state, spec.scope).visibleVariables;
  const frame: FrameState = {
    ...spec,
    isInner: spec.join === 'answer' || isBelowInner(state, spec),
    visibleVariables: { ...around, ...spec.variables },
    node: nodeOf(state, spec),
    steps: [],
    open: 0,
    failing: false,
    closed: false,
    abandoned: false,
    value: null,
    nextSession: spec.session,
  };
  state.frames.set(frame.id, frame);
  state.openFrames += 1;
  if (frame.replaces !== null || frame.caller !== null || frame.forkedFrom !== null) state.transitions += 1;
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
  if (frame.caller !== null) {
    frameOf(state, frame.caller).open += 1;
    return;
  }
  if (frame.owner === null) return;
  const owner = stepOf(state, frame.owner);
  owner.children.push(frame);
  if (owner.names !== null) owner.startedNames.add(frame.prefix.slice(owner.id.length + 1, -1));
  if (frame.join === 'wait' || frame.join === 'loose') owner.blocks += 1;
  if (isAwaited(frame)) owner.openChildren += 1;
  if (frame.join === 'inline') owner.frame.open += 1;
}

function isBelowInner(state: RunState, { owner, caller }: FrameSpec): boolean {
  if (caller !== null) return frameOf(state, caller).isInner;
  return owner !== null && stepOf(state, owner).frame.isInner;
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
  if (frame.caller !== null) {
    leaveFrame(state, frameOf(state, frame.caller));
    return;
  }
  if (frame.join === 'loose' && !ok) state.looseFailure = true;
  if (frame.owner === null) return;
  const owner = stepOf(state, frame.owner);
  if (isAwaited(frame)) {
    owner.openChildren -= 1;
    if (!ok && frame.join === 'wait') owner.childFailed = true;
    if (owner.status === 'running' || !owner.grown) state.agenda.joinable.add(owner);
  }
  if (frame.join === 'inline') leaveFrame(state, owner.frame);
}

function addSteps(state: RunState, decision: Extract<Decision, { kind: 'steps-added' }>): void {
  const frame = frameOf(state, decision.frame);
  const block = present(state.program.blocks[decision.block], `no block ${decision.block} in this program`);
  const added = block.steps.map((definition, index): StepState => {
    const id = present(decision.steps[index], `the journal contains no step for ${definition.id} of ${decision.block}`);
    const step: StepState = {
      id,
      order: state.steps.size,
      frame,
      definition,
      status: 'pending',
      attempt: 0,
      failures: 0,
      reprompt: null,
      reprompts: 0,
      failure: null,
      outputs: {},
      kept: [],
      route: null,
      usage: null,
      agent: null,
      agentGeneration: 0,
      queuedFor: null,
      startedAt: null,
      finishedAt: null,
      initialSession: frame.nextSession,
      effect: null,
      delivery: null,
      dialog: null,
      dialogs: 0,
      timeoutAt: null,
      stopping: null,
      stoppingForced: false,
      interrupted: false,
      skipped: null,
      items: null,
      width: null,
      names: null,
      startedNames: new Set(),
      iterationCursor: 0,
      notes: null,
      eventsBefore: 0,
      eventsSeen: 0,
      eventRequests: new Map(),
      gate: null,
      settlement: 'open',
      unmet: 0,
      waiters: [],
      grown: !canGrow(definition),
      unresolvedNeeds: [],
      children: [],
      blocks: 0,
      openChildren: 0,
      childFailed: false,
      recoveries: 0,
    };
    assert(!state.steps.has(id), `step ${id} is added twice`);
    state.steps.set(id, step);
    insert(frame.node, id.slice(frame.prefix.length), step);
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

/** The next attempt starts in the same session as the interrupted one. */
function restoreSession(step: StepState): void {
  if (isTurn(step.effect)) step.frame.nextSession = step.initialSession;
}

/** The effect of the current attempt is no longer in flight. */
function clearEffect(state: RunState, step: StepState, session: string | null): void {
  state.inFlight.delete(effectId(step.id, step.attempt));
  if (isTurn(step.effect)) state.turns -= 1;
  state.timers.delete(timeoutTimer(step.id, step.attempt));
  step.effect = null;
  step.stopping = null;
  step.dialog = null;
  if (session !== null) step.frame.nextSession = { kind: 'resume', id: session };
  releaseAgent(state, step);
}

function finish(state: RunState, step: StepState, status: 'done' | 'failed' | 'skipped', at: number): void {
  assert(step.settlement === 'open', `step ${step.id} is finished twice`);
  step.status = status;
  step.finishedAt = at;
  step.reprompt = null;
  step.reprompts = 0;
  state.agenda.joinable.delete(step);
  leaveFrame(state, step.frame);
}

function leaveFrame(state: RunState, frame: FrameState): void {
  frame.open -= 1;
  assert(frame.open >= 0, `frame ${JSON.stringify(frame.id)} was left more often than entered`);
  if (frame.open === 0 && !frame.closed) state.agenda.closable.add(frame);
}

function leaveAgenda(state: RunState, step: StepState): void {
  state.agenda.ready.delete(step);
  state.agenda.readyForAgent.delete(step);
  state.agenda.blocked.delete(step);
  state.agenda.unresolvable.delete(step);
}

function laneOf(state: RunState, name: string): LaneState {
  return present(state.lanes.get(name), `no lane ${name} in this run`);
}
