// Lifecycle of agents. Steps start and kill them. They are restarted when a resumed run or a retried step needs them,
// and killed by a run that cleans up.

import { assert, present } from '../base/errors.ts';
import { own } from '../base/json.ts';
import { isTurn, type Outcome, type SpawnSpec, type Success } from '../ir/effect.ts';
import { failure, type Failure } from '../ir/failure.ts';
import type { Expectation } from '../ir/output.ts';
import type { FilledText } from '../ir/text.ts';
import { getOrAdd } from './collections.ts';
import type { AgentEnd, Decision, PreparedStep } from './decision.ts';
import type { AgentInfo } from './fork.ts';
import { startCleanup } from './ending.ts';
import { becomeReady } from './needs.ts';
import { agentEffectId, AgentState, agentsWith, type DecideContext, type RunState, type StepState } from './state.ts';

/** Whether an agent that goes by this name works in the run. */
export function isAgentAtWork(state: RunState, name: string): boolean {
  if (state.agents.get(name)?.status === 'active') return true;
  for (const step of state.inFlight.values()) if (agentNamesOf(state, step).includes(name)) return true;
  return false;
}

/** Names of the agent of a step, other than that of a spawned agent: its lane, or the step that its turn performs. */
export function agentNamesOf(state: RunState, step: StepState): readonly string[] {
  const { frame } = step;
  const performed = frame.join === 'answer' && isTurn(step.effect) ? state.steps.get(frame.owner ?? '') : undefined;
  const isLane = Object.keys(state.program.machines).length > 0 && step.effect?.kind !== 'gate';
  const lanes = isLane ? [frame.lane] : [];
  return performed === undefined ? lanes : [performed.definition.id, ...lanes];
}

/** Whether the step's agent is available: `wait` if it is busy or starting. */
export function admitStep(ctx: DecideContext, step: StepState, prepared: PreparedStep): 'go' | 'wait' | Failure {
  const { effect, agent: name } = prepared;
  if (name === null || effect === null) return 'go';
  const agent = ctx.state.agents.get(name);
  if (effect.kind === 'spawn') {
    return agent?.status === 'active' || agent?.status === 'opening'
      ? failure('spawn-failed', `agent ${name} is already running; kill it before spawning it again`)
      : 'go';
  }
  if (effect.kind === 'prompt') {
    if (agent?.status === 'lost' || (agent?.status === 'gone' && step.failure !== null)) {
      restart(ctx, agent);
      return 'wait';
    }
    if (agent?.status === 'opening') return 'wait';
    if (agent?.status !== 'active') return failure('agent-not-found', notRunningMessage(agent, name));
  }
  return step.definition.agent !== null && agent !== undefined && agent.busy !== null ? 'wait' : 'go';
}

/** A step that starts or kills an agent has succeeded. */
export function onAgentStepDone(ctx: DecideContext, { effect, agentGeneration }: StepState, answer: Success): void {
  if (effect?.kind === 'spawn') ctx.emit({ kind: 'agent-opened', agent: agentInfo(effect, answer) });
  if (effect?.kind === 'kill' && typeof effect.agent === 'string') {
    const agent = ctx.state.agents.get(effect.agent);
    // Its exit may already be recorded.
    if (agent === undefined || agent.generation !== agentGeneration || agent.status === 'closed') return;
    if (agent.info !== null) closeAgent(ctx, agent, 'killed');
  }
}

/** A step that starts or kills an agent is kept. The agent continues in a copy of its session when a step needs it. */
export function onAgentStepKept(ctx: DecideContext, effect: PreparedStep['effect'], kept: AgentInfo | undefined): void {
  if (effect?.kind === 'spawn' && kept !== undefined) {
    const copied = kept.session === null ? effect : { ...effect, resumeSession: kept.session, forks: true };
    ctx.emit({ kind: 'agent-kept', agent: { ...kept, session: null, terminal: null, spawn: copied } });
  }
  if (effect?.kind === 'kill' && typeof effect.agent === 'string') {
    const agent = ctx.state.agents.get(effect.agent);
    if (agent?.status === 'lost') closeAgent(ctx, agent, 'killed');
  }
}

/** A lost prompt that had begun means a lost agent, whichever is reported first. */
export function onPromptLost(ctx: DecideContext, { effect, agent: name, agentGeneration }: StepState): void {
  const agent = ctx.state.agents.get(name ?? '');
  if (effect?.kind !== 'prompt' || agent?.status !== 'active' || agent.generation !== agentGeneration) return;
  ctx.emit({ kind: 'agent-closed', agent: agent.name, how: 'lost', message: null });
}

/** Handles outcomes that belong to no step: an agent exited, was restarted, or was killed with the run. */
export function onAgentOutcome(ctx: DecideContext, agent: AgentState, outcome: Outcome): void {
  if (agent.status === 'closing') {
    closeAgent(ctx, agent, 'ended');
    if (agentsWith(ctx.state, 'closing').length === 0) startCleanup(ctx);
    return;
  }
  const isOpening = agent.status === 'opening';
  if (outcome.kind === 'success') {
    if (!isOpening) return closeAgent(ctx, agent, 'killed');
    return ctx.emit({ kind: 'agent-opened', agent: agentInfo(infoOf(agent).spawn, outcome) });
  }
  const { kind, message, code, output } = outcome.failure;
  if (kind === 'lost' || (isOpening && kind === 'stopped')) return closeAgent(ctx, agent, 'lost', { message });
  if (isOpening) return failRestart(ctx, agent, outcome.failure);
  closeAgent(ctx, agent, 'gone', { message, code, output });
}

/** `why`: the message and details of a failure. */
function closeAgent(ctx: DecideContext, agent: AgentState, how: AgentEnd, why: Partial<Failure> = {}): void {
  const { busy } = agent;
  const { message = null, ...details } = why;
  ctx.emit({ kind: 'agent-closed', agent: agent.name, how, message });
  // Prompts lost with an engine are recovered step by step.
  if (how === 'lost' || busy === null || busy.status !== 'running') return;
  // The step is being stopped: its own outcome follows.
  if (busy.stopping !== null) return;
  const cause = how === 'killed' ? 'it was killed' : (message ?? 'it exited');
  const crash = `agent ${agent.name} exited before it finished its step: ${cause}`;
  ctx.fail(busy, failure('agent-crashed', crash, details));
}

export function infoOf({ name, info }: AgentState): AgentInfo {
  return present(info, `agent ${name} was never started`);
}

/** Resumes the session itself, even if that was forked from another. */
function restart(ctx: DecideContext, agent: AgentState): void {
  const { spawn, session } = infoOf(agent);
  const again = session === null ? spawn : { ...spawn, resumeSession: session, forks: false };
  ctx.emit({ kind: 'agent-reviving', agent: agent.name, spawn: again });
}

/** Fails every step waiting to prompt the agent. A retry of one tries to start the agent again. */
function failRestart(ctx: DecideContext, agent: AgentState, problem: Failure): void {
  const prompting = [...agent.queue].filter(
    ({ definition: { act } }) => act.kind === 'effect' && act.effect.kind === 'prompt',
  );
  const { message, code, output } = problem;
  closeAgent(ctx, agent, 'gone', { message });
  const reason = `agent ${agent.name} has exited and could not be restarted: ${message}`;
  for (const step of prompting) {
    // The first failure may have failed the frame of the others.
    if (ctx.state.end !== null || step.frame.failing) return;
    ctx.fail(step, failure('spawn-failed', reason, { code, output }));
  }
}

function agentInfo(spawn: SpawnSpec<FilledText>, answer: Success): AgentInfo {
  const text = (name: string): string | null => {
    const value = own(answer.outputs, name);
    return typeof value === 'string' ? value : null;
  };
  return {
    name: plainString(spawn.agent),
    adapter: plainString(spawn.adapter),
    workdir: text('workdir') ?? '',
    session: answer.session,
    terminal: text('terminal'),
    spawn,
  };
}

/** Names are always filled as plain strings. */
function plainString(text: FilledText): string {
  assert(typeof text === 'string', 'a name must be plain text');
  return text;
}

function notRunningMessage(agent: AgentState | undefined, name: string): string {
  switch (agent?.status) {
    case 'closed':
    case 'closing':
      return `agent ${name} was killed; spawn it again`;
    case 'gone':
      return `agent ${name} has exited; spawn it in an earlier step, or add a retry to this step, which restarts it`;
    default:
      return `agent ${name} was never spawned; spawn it in a step that this one needs`;
  }
}

/** Applies decisions about agents, and assigns agents to steps. Part of `apply`. */
export type AgentDecision = Extract<
  Decision,
  {
    kind:
      | 'agent-opened'
      | 'agent-kept'
      | 'agent-reviving'
      | 'agent-session'
      | 'agents-closing'
      | 'agents-hastened'
      | 'agent-closed';
  }
>;

export function applyToAgents(state: RunState, decision: AgentDecision): void {
  switch (decision.kind) {
    case 'agent-opened':
      return openAgent(state, decision.agent);
    case 'agent-kept': {
      const agent = agentNamed(state, decision.agent.name);
      agent.info = decision.agent;
      return setAgentStatus(state, agent, 'lost');
    }
    case 'agent-reviving': {
      const agent = agentNamed(state, decision.agent);
      agent.info = { ...infoOf(agent), spawn: decision.spawn };
      agent.generation += 1;
      return setAgentStatus(state, agent, 'opening');
    }
    case 'agent-session': {
      const agent = agentNamed(state, decision.agent);
      agent.info = { ...infoOf(agent), session: decision.session };
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
      setAgentStatus(state, agent, decision.how === 'killed' ? 'closed' : decision.how);
      for (const step of agent.queue) {
        agent.queue.delete(step);
        step.queuedFor = null;
        becomeReady(state, step);
      }
      return;
    }
  }
}

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
  agent.machine = state.machine;
}

function agentNamed(state: RunState, name: string): AgentState {
  return getOrAdd(state.agents, name, () => new AgentState(name));
}

/** The prompt that `meow prime` repeats. None if the agent is idle, has just reported, or talks with a person. */
export type CurrentPrompt = Readonly<{ step: string; prompt: FilledText; expects: readonly Expectation[] }>;

export function currentPromptOf(state: RunState, agent: string): CurrentPrompt | null {
  const step = state.agents.get(agent)?.busy;
  if (step?.status !== 'running' || step.stopping !== null || step.effect?.kind !== 'prompt') return null;
  const { mode, prompt, expects } = step.effect;
  return mode === 'autonomous' ? { step: step.id, prompt, expects } : null;
}
