// Effects without an outcome yet, and what drivers must be asked to do about them. Recovery is asking for them again.

import { assert } from '../base/errors.ts';
import type { Dialog, Effect } from '../ir/effect.ts';
import { infoOf } from './agents.ts';
import type { Decision, StopReason } from './decision.ts';
import { gateRequestOf } from './gates.ts';
import type { GateVerdict } from './input.ts';
import { variablesFor } from './scope.ts';
import type { AgentState, RunState, StepState } from './state.ts';
import {
  agentEffectId,
  CLEANUP_STEP,
  effectId,
  isElsewhere,
  retryTimer,
  roundTimer,
  stepOf,
  timeoutTimer,
} from './state.ts';

/** Grace period for agents that are killed with the run. */
const CLOSING_GRACE_MS = 10_000;

/** Agents first: whether an agent is alive must be known before its prompts are recovered. */
export function pendingEffects(state: RunState): readonly Effect[] {
  const ofAgents = [...state.agentEffects].map(([id, agent]) => agentEffect(id, agent));
  const ofSteps = [...state.inFlight.values()]
    .filter(({ effect }) => effect?.kind !== 'gate')
    .map((step) => effectOf(state, step));
  return [...ofAgents, ...ofSteps, ...cleanupEffects(state)];
}

/** Whether a pending effect began on another machine, where alone it can be found. */
export function beganElsewhere(state: RunState, effectId: string): boolean {
  const began = state.inFlight.get(effectId) ?? state.agentEffects.get(effectId) ?? state.cleanup;
  return isElsewhere(state, began?.machine ?? null);
}

/** What a durable decision asks of a driver. */
export type DriverRequest = Readonly<
  | { kind: 'start'; effect: Effect }
  | { kind: 'stop'; effect: string; how: { readonly force: boolean; readonly why: StopReason } }
  | { kind: 'conclude'; effect: string }
  | { kind: 'decide'; effect: string; verdict: DialogDecision }
>;

/** A person's decision about a dialog. */
type DialogDecision = Readonly<{ dialog: Dialog }> & Pick<GateVerdict, 'approved' | 'answer' | 'notes'>;

export function requestsOf(state: RunState, decision: Decision): readonly DriverRequest[] {
  switch (decision.kind) {
    case 'step-started': {
      const step = stepOf(state, decision.step);
      // Several records become durable together, so a later one may already have changed the step.
      if (step.effect === null || step.effect.kind === 'gate' || step.attempt !== decision.attempt) return [];
      return [start(effectOf(state, step))];
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
    // The question may already have been decided.
    case 'gate-asked':
      return dialogRequests(state, stepOf(state, decision.step));
    case 'gate-decided':
      return [...(state.gates.get(decision.gate)?.requests.keys() ?? [])].flatMap((requester) =>
        dialogRequests(state, state.steps.get(requester)),
      );
    case 'agent-opened':
      return agentEffects(state, [decision.agent.name], 'active').map(start);
    case 'agent-reviving':
      return agentEffects(state, [decision.agent], 'opening').map(start);
    case 'agents-closing':
      return agentEffects(state, decision.agents, 'closing').map(start);
    case 'agents-hastened':
      return (['opening', 'closing'] as const).flatMap((status) =>
        agentEffects(state, decision.agents, status).map(forceStop),
      );
    case 'cleanup-started':
      return cleanupEffects(state).map(start);
    case 'cleanup-stopping':
      return [cleanupStop(state, decision.force)];
    default:
      return [];
  }
}

export function timersOf(state: RunState, decision: Decision): readonly string[] {
  switch (decision.kind) {
    case 'step-started':
      return decision.timeoutAt === null ? [] : [timeoutTimer(decision.step, decision.attempt)];
    case 'step-failed-once':
      return [retryTimer(decision.step)];
    case 'round-delayed':
      return [roundTimer(decision.step)];
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

/** Requests to repeat after a restart, because the previous engine may have died before making them. */
export function pendingRequests(state: RunState): readonly DriverRequest[] {
  const requests: DriverRequest[] = [];
  for (const [effect, step] of state.inFlight) {
    const { status, stopping, stoppingForced } = step;
    if (stopping !== null) requests.push({ kind: 'stop', effect, how: { force: stoppingForced, why: stopping } });
    else if (status === 'completing') requests.push({ kind: 'conclude', effect });
    else requests.push(...dialogRequests(state, step));
  }
  if (state.cleanup?.stopping) requests.push(cleanupStop(state, false));
  return requests;
}

function dialogRequests(state: RunState, step: StepState | undefined): readonly DriverRequest[] {
  if (step === undefined || step.dialog === null) return [];
  const { gate, name, text } = step.dialog;
  const verdict = gateRequestOf(state, step, gate)?.verdict ?? null;
  if (verdict === null) return [];
  const { approved, answer, notes } = verdict;
  const effect = effectId(step.id, step.attempt);
  return [{ kind: 'decide', effect, verdict: { dialog: { name, text }, approved, answer, notes } }];
}

function effectOf(state: RunState, step: StepState): Effect {
  assert(step.effect !== null, `step ${step.id} has no effect`);
  return {
    id: effectId(step.id, step.attempt),
    step: step.id,
    attempt: step.attempt,
    spec: step.effect,
    session: step.frame.nextSession,
    lane: step.frame.lane,
    variables: variablesFor(state, step),
  };
}

/** A later decision of the same record may have changed the agent, and then makes its own request. */
function agentEffects(state: RunState, names: readonly string[], status: AgentState['status']): readonly Effect[] {
  return names.flatMap((name) => {
    const agent = state.agents.get(name);
    const id = agent?.status === status ? agentEffectId(agent) : null;
    return agent === undefined || id === null ? [] : [agentEffect(id, agent)];
  });
}

/** The agent's own effect, according to its status. */
function agentEffect(id: string, agent: AgentState): Effect {
  const { name, adapter, spawn } = infoOf(agent);
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

function start(effect: Effect): DriverRequest {
  return { kind: 'start', effect };
}

function forceStop({ id }: Effect): DriverRequest {
  return { kind: 'stop', effect: id, how: { force: true, why: 'run-ending' } };
}

function cleanupStop({ cleanups }: RunState, force: boolean): DriverRequest {
  const why = force ? 'run-ending' : 'timeout';
  return { kind: 'stop', effect: effectId(CLEANUP_STEP, cleanups), how: { force, why } };
}

function cleanupEffects({ cleanup, cleanups, request }: RunState): readonly Effect[] {
  if (cleanup === null) return [];
  const id = effectId(CLEANUP_STEP, cleanups);
  const variables = request?.variables ?? {};
  const session = { kind: 'fresh' } as const;
  return [{ id, step: CLEANUP_STEP, attempt: cleanups, spec: cleanup.effect, session, lane: 'main', variables }];
}
