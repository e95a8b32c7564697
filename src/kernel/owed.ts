// What the world still owes the run an answer for: the whole of recovery is to ask for it again.

import { assert, present } from '../base/assert.ts';
import type { Dialog, Effect } from '../ir/effect.ts';
import type { Decision, StopReason } from './decision.ts';
import { askingOf } from './gates.ts';
import { variablesInSight } from './scope.ts';
import type { AgentState, RunState, StepState } from './state.ts';
import { agentEffectId, CLEANUP_STEP, effectId, retryTimer, stepOf, timeoutTimer } from './state.ts';

/** What agents that are ended with the run are given to end by themselves. */
const CLOSING_GRACE_MS = 10_000;

/** Agents first: whether one lives is known before anybody asks what it was doing. */
export function owed(state: RunState): readonly Effect[] {
  const ofAgents = [...state.agentEffects].map(([id, agent]) => agentEffect(id, agent));
  const ofSteps = [...state.asked.values()]
    .filter(({ effect }) => effect?.kind !== 'gate')
    .map((step) => effectOf(state, step));
  return [...ofAgents, ...ofSteps, ...(state.cleanup === null ? [] : [cleanupEffect(state)])];
}

/** What a decision asks of the world, once it is durable. */
export type Request =
  | { readonly kind: 'start'; readonly effect: Effect }
  | {
      readonly kind: 'stop';
      readonly effect: string;
      readonly how: { readonly force: boolean; readonly why: StopReason };
    }
  | { readonly kind: 'conclude'; readonly effect: string }
  | { readonly kind: 'decide'; readonly effect: string; readonly verdict: DialogDecision };

/** What a person decided about a dialog. */
export interface DialogDecision {
  readonly dialog: Dialog;
  readonly approved: boolean;
  readonly answer: string | null;
  readonly notes: string | null;
}

export function requestsOf(state: RunState, decision: Decision): readonly Request[] {
  switch (decision.kind) {
    case 'step-started': {
      const step = stepOf(state, decision.step);
      // Several records are made durable together: a later one may have taken the step further already.
      if (step.effect === null || step.effect.kind === 'gate' || step.attempt !== decision.attempt) return [];
      return [{ kind: 'start', effect: effectOf(state, step) }];
    }
    case 'steps-stopping':
      return decision.steps.map((id) => ({
        kind: 'stop',
        effect: effectId(id, stepOf(state, id).attempt),
        how: { force: decision.force, why: decision.why },
      }));
    case 'step-completing': {
      const { attempt, status } = stepOf(state, decision.step);
      return status === 'completing' ? [{ kind: 'conclude', effect: effectId(decision.step, attempt) }] : [];
    }
    // What it asks may have been decided before.
    case 'gate-asked':
      return dialogRequests(state, stepOf(state, decision.step));
    case 'gate-decided':
      return [...(state.gates.get(decision.gate)?.askers.keys() ?? [])].flatMap((asker) =>
        dialogRequests(state, state.steps.get(asker)),
      );
    case 'agent-opened':
      return agentRequests(state, [decision.agent.name], 'active');
    case 'agent-reviving':
      return agentRequests(state, [decision.agent], 'opening');
    case 'agents-closing':
      return agentRequests(state, decision.agents, 'closing');
    case 'agents-hastened':
      return (['opening', 'closing'] as const).flatMap((status) =>
        agentRequests(state, decision.agents, status).map(hastened),
      );
    case 'cleanup-started':
      return state.cleanup === null ? [] : [{ kind: 'start', effect: cleanupEffect(state) }];
    case 'cleanup-stopping':
      return [cleanupStop(state, decision.force)];
    default:
      return [];
  }
}

/** Ids of the timers that a decision sets. */
export function timersOf(state: RunState, decision: Decision): readonly string[] {
  switch (decision.kind) {
    case 'step-started':
      return decision.timeoutAt === null ? [] : [timeoutTimer(decision.step, decision.attempt)];
    case 'step-failed-once':
      return [retryTimer(decision.step)];
    case 'run-ending':
      return decision.drainUntil === null ? [] : ['drain'];
    case 'cleanup-started':
      return ['cleanup'];
    case 'run-resumed':
      return [...state.timers.keys()];
    default:
      return [];
  }
}

/** What must be said again, since the engine may not have lived to say it: who is to stop, who has been reported, and what people decided. */
export function requestsOwed(state: RunState): readonly Request[] {
  const requests: Request[] = [];
  for (const [effect, step] of state.asked) {
    const { status, stopping, stoppingForced } = step;
    if (stopping !== null) requests.push({ kind: 'stop', effect, how: { force: stoppingForced, why: stopping } });
    else if (status === 'completing') requests.push({ kind: 'conclude', effect });
    else requests.push(...dialogRequests(state, step));
  }
  if (state.cleanup?.stopping) requests.push(cleanupStop(state, false));
  return requests;
}

/** What its agent asked has been decided. */
function dialogRequests(state: RunState, step: StepState | undefined): readonly Request[] {
  if (step === undefined || step.dialog === null) return [];
  const { gate, name, text } = step.dialog;
  const verdict = askingOf(state, step, gate)?.verdict ?? null;
  if (verdict === null) return [];
  const { approved, answer, notes } = verdict;
  const effect = effectId(step.id, step.attempt);
  return [{ kind: 'decide', effect, verdict: { dialog: { name, text }, approved, answer, notes } }];
}

function effectOf(state: RunState, step: StepState): Effect {
  assert(step.effect !== null, `step ${step.id} asks for nothing`);
  return {
    id: effectId(step.id, step.attempt),
    step: step.id,
    attempt: step.attempt,
    spec: step.effect,
    session: step.frame.nextSession,
    lane: step.frame.lane,
    variables: variablesInSight(state, step),
  };
}

/** A later decision of the same record may have made something else of the agent: then that one asks. */
function agentRequests(
  state: RunState,
  names: readonly string[],
  status: AgentState['status'],
): readonly { readonly kind: 'start'; readonly effect: Effect }[] {
  return names.flatMap((name) => {
    const agent = state.agents.get(name);
    const id = agent?.status === status ? agentEffectId(agent) : null;
    return agent === undefined || id === null ? [] : [{ kind: 'start' as const, effect: agentEffect(id, agent) }];
  });
}

/** What an agent owes apart from any step follows from what it is. */
function agentEffect(id: string, agent: AgentState): Effect {
  const { name, adapter, spawn } = present(agent.opening, `agent ${agent.name} was never started`);
  const spec: Effect['spec'] =
    agent.status === 'opening'
      ? spawn
      : agent.status === 'closing'
        ? { kind: 'kill', agent: name, graceful: !agent.closingForced, graceMs: CLOSING_GRACE_MS }
        : { kind: 'attend', agent: name, adapter };
  return {
    id,
    step: `@agent ${name}`,
    attempt: agent.generation,
    spec,
    session: { kind: 'fresh' },
    lane: name,
    variables: {},
  };
}

function hastened({ effect }: { readonly effect: Effect }): Request {
  return { kind: 'stop', effect: effect.id, how: { force: true, why: 'run-ending' } };
}

function cleanupStop(state: RunState, force: boolean): Request {
  return {
    kind: 'stop',
    effect: effectId(CLEANUP_STEP, state.cleanups),
    how: { force, why: force ? 'run-ending' : 'timeout' },
  };
}

function cleanupEffect(state: RunState): Effect {
  assert(state.cleanup !== null, 'no cleanup is under way');
  return {
    id: effectId(CLEANUP_STEP, state.cleanups),
    step: CLEANUP_STEP,
    attempt: state.cleanups,
    spec: state.cleanup.effect,
    session: { kind: 'fresh' },
    lane: 'main',
    variables: state.request?.variables ?? {},
  };
}
