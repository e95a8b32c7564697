// The prompt to repeat when an agent asks for its work (`meow prime`). None if the agent is idle, has just reported, or
// is in a conversation with a person.

import type { Expectation } from '../ir/output.ts';
import type { FilledText } from '../ir/text.ts';
import type { RunState } from './state.ts';

export interface CurrentPrompt {
  readonly step: string;
  readonly prompt: FilledText;
  readonly expects: readonly Expectation[];
}

export function currentPromptOf(state: RunState, agent: string): CurrentPrompt | null {
  const step = state.agents.get(agent)?.busy;
  if (step?.status !== 'running' || step.stopping !== null || step.effect?.kind !== 'prompt') return null;
  const { mode, prompt, expects } = step.effect;
  return mode === 'autonomous' ? { step: step.id, prompt, expects } : null;
}
