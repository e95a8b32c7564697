// Lifecycle of agents. Steps start and kill them. They are restarted when a resumed run or a retried step needs them,
// and killed by a run that cleans up.

import { assert, present } from '../base/assert.ts';
import { own } from '../base/json.ts';
import type { EffectSpec, Outcome, SpawnSpec, Success } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { Failure } from '../ir/failure.ts';
import type { FilledText } from '../ir/text.ts';
import type { AgentEnd, AgentInfo } from './decision.ts';
import { startCleanup } from './ending.ts';
import type { AgentState, StepState } from './state.ts';
import type { Fail, DecideContext } from './decide-context.ts';

/** Whether the step's agent is available: `wait` if it is busy or starting. */
export function admitStep(
  ctx: DecideContext,
  step: StepState,
  effect: EffectSpec<FilledText> | null,
  name: string | null,
): 'go' | 'wait' | Failure {
  if (name === null || effect === null) return 'go';
  const agent = ctx.state.agents.get(name);
  if (effect.kind === 'spawn') {
    return agent?.status === 'active' || agent?.status === 'opening'
      ? failure('spawn-failed', `agent ${name} is already running; kill it before spawning it again`)
      : 'go';
  }
  if (effect.kind === 'prompt') {
    if (agent?.status === 'lost' || (agent?.status === 'gone' && isRetry(step))) {
      restart(ctx, agent);
      return 'wait';
    }
    if (agent?.status === 'opening') return 'wait';
    if (agent?.status !== 'active') return failure('agent-not-found', notRunningMessage(agent, name));
  }
  return step.definition.agent !== null && agent !== undefined && agent.busy !== null ? 'wait' : 'go';
}

/** A step that starts or kills an agent has succeeded. */
export function onAgentStepDone(
  ctx: DecideContext,
  { effect, agentGeneration }: StepState,
  answer: Success,
  fail: Fail,
): void {
  if (effect?.kind === 'spawn') ctx.emit({ kind: 'agent-opened', agent: agentInfo(effect, answer) });
  if (effect?.kind === 'kill' && typeof effect.agent === 'string') {
    const agent = ctx.state.agents.get(effect.agent);
    // Its exit may already be recorded.
    if (agent === undefined || agent.generation !== agentGeneration || agent.status === 'closed') return;
    if (agent.info !== null) closeAgent(ctx, agent, 'killed', null, fail);
  }
}

/** A lost prompt means a lost agent, whichever is reported first. */
export function onPromptLost(ctx: DecideContext, { effect, agent: name, agentGeneration }: StepState): void {
  const agent = ctx.state.agents.get(name ?? '');
  if (effect?.kind !== 'prompt' || agent?.status !== 'active' || agent.generation !== agentGeneration) return;
  ctx.emit({ kind: 'agent-closed', agent: agent.name, how: 'lost', message: null });
}

/** Handles outcomes that belong to no step: an agent exited, was restarted, or was killed with the run. */
export function onAgentOutcome(ctx: DecideContext, agent: AgentState, outcome: Outcome, fail: Fail): void {
  const message = outcome.kind === 'failure' ? outcome.failure.message : null;
  switch (agent.status) {
    case 'opening': {
      const spawn = present(agent.info, `agent ${agent.name} was never started`).spawn;
      if (outcome.kind === 'success') return ctx.emit({ kind: 'agent-opened', agent: agentInfo(spawn, outcome) });
      if (outcome.failure.kind === 'lost' || outcome.failure.kind === 'stopped')
        return closeAgent(ctx, agent, 'lost', message, fail);
      return failRestart(ctx, agent, outcome.failure, fail);
    }
    case 'closing':
      closeAgent(ctx, agent, 'ended', null, fail);
      if (![...ctx.state.agents.values()].some(({ status }) => status === 'closing')) startCleanup(ctx);
      return;
    default: {
      const lost = outcome.kind === 'failure' && outcome.failure.kind === 'lost';
      const how = outcome.kind === 'success' ? 'killed' : lost ? 'lost' : 'gone';
      return closeAgent(ctx, agent, how, message, fail, outcome.kind === 'failure' ? outcome.failure : null);
    }
  }
}

function closeAgent(
  ctx: DecideContext,
  agent: AgentState,
  how: AgentEnd,
  message: string | null,
  fail: Fail,
  problem: Failure | null = null,
): void {
  const { busy } = agent;
  ctx.emit({ kind: 'agent-closed', agent: agent.name, how, message });
  // Prompts lost with an engine are recovered step by step.
  if (how === 'lost' || busy === null || busy.status !== 'running') return;
  // The step is being stopped: its own outcome follows.
  if (busy.stopping !== null) return;
  const cause = how === 'killed' ? 'it was killed' : (message ?? 'it exited');
  const details = problem === null ? {} : { code: problem.code, output: problem.output };
  fail(
    ctx,
    busy,
    failure('agent-crashed', `agent ${agent.name} exited before it finished its step: ${cause}`, details),
  );
}

function isRetry({ failure: before }: StepState): boolean {
  return before !== null;
}

/** Resumes the session itself, even if that was forked from another. */
function restart(ctx: DecideContext, agent: AgentState): void {
  const { spawn, session } = present(agent.info, `agent ${agent.name} was never started`);
  const again = session === null ? spawn : { ...spawn, resumeSession: session, forks: false };
  ctx.emit({ kind: 'agent-reviving', agent: agent.name, spawn: again });
}

/** Fails every step waiting to prompt the agent. A retry of one tries to start the agent again. */
function failRestart(ctx: DecideContext, agent: AgentState, problem: Failure, fail: Fail): void {
  const prompting = [...agent.queue].filter(
    ({ definition: { act } }) => act.kind === 'effect' && act.effect.kind === 'prompt',
  );
  closeAgent(ctx, agent, 'gone', problem.message, fail);
  const { code, output } = problem;
  const message = `agent ${agent.name} has exited and could not be restarted: ${problem.message}`;
  for (const step of prompting) {
    // The first failure may have failed the frame of the others.
    if (ctx.state.end !== null || step.frame.failing) return;
    fail(ctx, step, failure('spawn-failed', message, { code, output }));
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
