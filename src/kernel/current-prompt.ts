// What an agent is to be told when it asks for its work (`meow prime`): its task again where it has stopped in the middle
// of it, and nothing where it is idle, has just reported, or talks with a person.

import type { Expectation } from '../ir/output.ts';
import type { FilledText } from '../ir/text.ts';
import type { RunState } from './state.ts';

export interface Prompting {
  readonly step: string;
  readonly prompt: FilledText;
  readonly expects: readonly Expectation[];
}

export function promptFor(state: RunState, agent: string): Prompting | null {
  const step = state.agents.get(agent)?.busy;
  if (step?.status !== 'running' || step.stopping !== null || step.effect?.kind !== 'prompt') return null;
  const { mode, prompt, expects } = step.effect;
  return mode === 'autonomous' ? { step: step.id, prompt, expects } : null;
}
