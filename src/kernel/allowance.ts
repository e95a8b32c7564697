// Budgets and limits of a run.

import type { Allowance } from '../ir/program.ts';
import type { RunState } from './state.ts';

export interface ExhaustedLimit {
  readonly what: Exclude<keyof Allowance, 'agents'>;
  readonly message: string;
}

/** The limit that stops new steps from starting until someone raises it; null if none is reached. */
export function exhaustedLimit({ allowance, cost, transitions }: RunState): ExhaustedLimit | null {
  const { usd, tokens, transitions: transitionsMax } = allowance;
  if (usd !== null && cost.usd >= usd)
    return { what: 'usd', message: `the budget of $${usd} is spent ($${cost.usd.toFixed(2)})` };
  if (tokens !== null && cost.tokens >= tokens)
    return { what: 'tokens', message: `the budget of ${tokens} tokens is spent (${cost.tokens})` };
  if (transitionsMax !== null && transitions >= transitionsMax)
    return { what: 'transitions', message: `the limit of ${transitionsMax} transitions is reached` };
  return null;
}
