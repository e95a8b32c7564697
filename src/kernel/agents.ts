// What happens to agents: they are started and ended by steps, watched over meanwhile, started anew when a run that lost
// them needs them again or a step is tried again whose agent is gone, and ended with a run that cleans up.

import { assert, present } from '../base/assert.ts';
import { own } from '../base/json.ts';
import type { EffectSpec, Outcome, SpawnSpec, Success } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { Failure } from '../ir/failure.ts';
import type { FilledText } from '../ir/text.ts';
import type { AgentEnd, AgentOpening } from './decision.ts';
import { startCleanup } from './ending.ts';
import type { AgentState, StepState } from './state.ts';
import type { Fail, Turn } from './deciding.ts';

/** Whether a step may ask this of its agent now: `wait` where the agent is busy or on its way. */
export function admission(
  turn: Turn,
  step: StepState,
  effect: EffectSpec<FilledText> | null,
  name: string | null,
): 'go' | 'wait' | Failure {
  if (name === null || effect === null) return 'go';
  const agent = turn.state.agents.get(name);
  if (effect.kind === 'spawn') {
    return agent?.status === 'active' || agent?.status === 'opening'
      ? failure('spawn-failed', `agent ${name} is there already; kill it before it is spawned again`)
      : 'go';
  }
  if (effect.kind === 'prompt') {
    if (agent?.status === 'lost' || (agent?.status === 'gone' && isTriedAgain(step))) {
      revive(turn, agent);
      return 'wait';
    }
    if (agent?.status === 'opening') return 'wait';
    if (agent?.status !== 'active') return failure('agent-not-found', notThere(agent, name));
  }
  return step.definition.agent !== null && agent !== undefined && agent.busy !== null ? 'wait' : 'go';
}

/** A step that started or ended an agent has been answered. */
export function noteAnswer(turn: Turn, { effect, agentGeneration }: StepState, answer: Success, fail: Fail): void {
  if (effect?.kind === 'spawn') turn.emit({ kind: 'agent-opened', agent: openingOf(effect, answer) });
  if (effect?.kind === 'kill' && typeof effect.agent === 'string') {
    const agent = turn.state.agents.get(effect.agent);
    // That it is gone may have been heard before.
    if (agent === undefined || agent.generation !== agentGeneration || agent.status === 'closed') return;
    if (agent.opening !== null) close(turn, agent, 'killed', null, fail);
  }
}

/** A prompt is lost with its agent, whichever of the two is heard of first. */
export function noteLost(turn: Turn, { effect, agent: name, agentGeneration }: StepState): void {
  const agent = turn.state.agents.get(name ?? '');
  if (effect?.kind !== 'prompt' || agent?.status !== 'active' || agent.generation !== agentGeneration) return;
  turn.emit({ kind: 'agent-closed', agent: agent.name, how: 'lost', message: null });
}

/** An answer that belongs to no step: an agent is gone, was started anew, or was ended with the run. */
export function hearAgent(turn: Turn, agent: AgentState, outcome: Outcome, fail: Fail): void {
  const message = outcome.kind === 'failure' ? outcome.failure.message : null;
  switch (agent.status) {
    case 'opening': {
      const spawn = present(agent.opening, `agent ${agent.name} was never started`).spawn;
      if (outcome.kind === 'success') return turn.emit({ kind: 'agent-opened', agent: openingOf(spawn, outcome) });
      if (outcome.failure.kind === 'lost' || outcome.failure.kind === 'stopped')
        return close(turn, agent, 'lost', message, fail);
      return failRevival(turn, agent, outcome.failure, fail);
    }
    case 'closing':
      close(turn, agent, 'ended', null, fail);
      if (![...turn.state.agents.values()].some(({ status }) => status === 'closing')) startCleanup(turn);
      return;
    default: {
      const lost = outcome.kind === 'failure' && outcome.failure.kind === 'lost';
      const how = outcome.kind === 'success' ? 'killed' : lost ? 'lost' : 'gone';
      return close(turn, agent, how, message, fail, outcome.kind === 'failure' ? outcome.failure : null);
    }
  }
}

function close(
  turn: Turn,
  agent: AgentState,
  how: AgentEnd,
  message: string | null,
  fail: Fail,
  problem: Failure | null = null,
): void {
  const { busy } = agent;
  turn.emit({ kind: 'agent-closed', agent: agent.name, how, message });
  // What was lost together with the engine is looked for step by step, and asked for again.
  if (how === 'lost' || busy === null || busy.status !== 'running') return;
  // It is being stopped: how that ends is its own answer.
  if (busy.stopping !== null) return;
  const cause = how === 'killed' ? 'it was killed' : (message ?? 'it is gone');
  const details = problem === null ? {} : { code: problem.code, output: problem.output };
  fail(
    turn,
    busy,
    failure('agent-crashed', `agent ${agent.name} ended before it had done its work: ${cause}`, details),
  );
}

function isTriedAgain({ failure: before }: StepState): boolean {
  return before !== null;
}

/** In its session, be that one a copy of another: it is not copied again. */
function revive(turn: Turn, agent: AgentState): void {
  const { spawn, session } = present(agent.opening, `agent ${agent.name} was never started`);
  const again = session === null ? spawn : { ...spawn, resumeSession: session, forks: false };
  turn.emit({ kind: 'agent-reviving', agent: agent.name, spawn: again });
}

/** Each of those who waited to prompt it has failed with that: to try one again is to try to start the agent again. */
function failRevival(turn: Turn, agent: AgentState, problem: Failure, fail: Fail): void {
  const prompting = [...agent.queue].filter(
    ({ definition: { act } }) => act.kind === 'effect' && act.effect.kind === 'prompt',
  );
  close(turn, agent, 'gone', problem.message, fail);
  const { code, output } = problem;
  const message = `agent ${agent.name} is gone, and could not be started anew: ${problem.message}`;
  for (const step of prompting) {
    // The first of them may have brought down what the others are part of.
    if (turn.state.end !== null || step.frame.failing) return;
    fail(turn, step, failure('spawn-failed', message, { code, output }));
  }
}

function openingOf(spawn: SpawnSpec<FilledText>, answer: Success): AgentOpening {
  const text = (name: string): string | null => {
    const value = own(answer.outputs, name);
    return typeof value === 'string' ? value : null;
  };
  return {
    name: plain(spawn.agent),
    adapter: plain(spawn.adapter),
    workdir: text('workdir') ?? '',
    session: answer.session,
    terminal: text('terminal'),
    spawn,
  };
}

/** Names are filled where only a plain string will do. */
function plain(text: FilledText): string {
  assert(typeof text === 'string', 'a name that is no plain text');
  return text;
}

function notThere(agent: AgentState | undefined, name: string): string {
  switch (agent?.status) {
    case 'closed':
    case 'closing':
      return `agent ${name} was killed before; spawn it again`;
    case 'gone':
      return `agent ${name} is gone: spawn it again in a step before this one, or give this step a retry, which starts it anew`;
    default:
      return `agent ${name} was never spawned; spawn it in a step that this one needs`;
  }
}
