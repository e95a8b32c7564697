// Applies decisions about agents, and assigns agents to steps. Part of `apply`.

import { present } from '../base/assert.ts';
import { OrderedSet } from './ordered-set.ts';
import type { AgentInfo, Decision } from './decision.ts';
import { becomeReady } from './needs.ts';
import type { AgentState, RunState, StepState } from './state.ts';
import { agentEffectId } from './state.ts';

export type AgentDecision = Extract<
  Decision,
  { kind: 'agent-opened' | 'agent-reviving' | 'agent-session' | 'agents-closing' | 'agents-hastened' | 'agent-closed' }
>;

export function applyToAgents(state: RunState, decision: AgentDecision): void {
  switch (decision.kind) {
    case 'agent-opened':
      return openAgent(state, decision.agent);
    case 'agent-reviving': {
      const agent = agentNamed(state, decision.agent);
      agent.info = { ...present(agent.info, `agent ${agent.name} was never started`), spawn: decision.spawn };
      agent.generation += 1;
      return setAgentStatus(state, agent, 'opening');
    }
    case 'agent-session': {
      const agent = agentNamed(state, decision.agent);
      const info = present(agent.info, `agent ${agent.name} was never started`);
      agent.info = { ...info, session: decision.session };
      return;
    }
    case 'agents-closing':
      state.phase = 'cleaning';
      state.timers.delete('drain');
      for (const name of decision.agents) {
        const agent = agentNamed(state, name);
        agent.closingForced = decision.force;
        setAgentStatus(state, agent, 'closing');
      }
      return;
    case 'agents-hastened':
      for (const name of decision.agents) agentNamed(state, name).closingForced = true;
      return;
    case 'agent-closed': {
      const agent = agentNamed(state, decision.agent);
      setAgentStatus(state, agent, STATUS_AFTER[decision.how]);
      for (const step of agent.queue) {
        agent.queue.delete(step);
        step.queuedFor = null;
        becomeReady(state, step);
      }
      return;
    }
  }
}

const STATUS_AFTER = { killed: 'closed', ended: 'ended', gone: 'gone', lost: 'lost' } as const;

export function assignAgent(state: RunState, step: StepState, name: string | null): void {
  step.agent = name;
  step.agentGeneration = state.agents.get(name ?? '')?.generation ?? 0;
  step.queuedFor = null;
  if (name === null || step.definition.agent === null) return;
  const agent = agentNamed(state, name);
  agent.busy = step;
  agent.latest = step;
}

/** Frees the step's agent for the next step in its queue. */
export function releaseAgent(state: RunState, step: StepState): void {
  for (const name of new Set([step.agent, step.queuedFor])) {
    const agent = name === null ? undefined : state.agents.get(name);
    if (agent === undefined) continue;
    agent.queue.delete(step);
    if (agent.busy === step) agent.busy = null;
    readyNextInQueue(state, agent);
  }
}

function readyNextInQueue(state: RunState, agent: AgentState): void {
  if (agent.status === 'opening' || agent.busy !== null) return;
  const next = agent.queue.first();
  if (next === undefined) return;
  agent.queue.delete(next);
  state.agenda.readyForAgent.add(next);
}

function openAgent(state: RunState, info: AgentInfo): void {
  const agent = agentNamed(state, info.name);
  if (agent.status !== 'opening') agent.generation += 1;
  agent.info = info;
  setAgentStatus(state, agent, 'active');
  for (const step of agent.queue) {
    // It waited for the agent to start, not for it to be free.
    if (step.definition.agent !== null) continue;
    agent.queue.delete(step);
    becomeReady(state, step);
  }
  readyNextInQueue(state, agent);
}

/** The agent's own effect depends on its status. */
function setAgentStatus(state: RunState, agent: AgentState, status: AgentState['status']): void {
  const before = agentEffectId(agent);
  if (before !== null) state.agentEffects.delete(before);
  agent.status = status;
  const now = agentEffectId(agent);
  if (now !== null) state.agentEffects.set(now, agent);
}

function agentNamed(state: RunState, name: string): AgentState {
  const known = state.agents.get(name);
  if (known !== undefined) return known;
  const agent: AgentState = {
    name,
    status: 'named',
    info: null,
    generation: 0,
    closingForced: false,
    busy: null,
    latest: null,
    queue: new OrderedSet(),
  };
  state.agents.set(name, agent);
  return agent;
}
