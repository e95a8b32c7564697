// What a run may use up, and whether it has.

import type { Allowance } from '../ir/program.ts';
import type { RunState } from './state.ts';

export interface Spent {
  readonly what: Exclude<keyof Allowance, 'agents'>;
  readonly message: string;
}

/** Why nothing more may start before somebody allows it; null where something may. */
export function allowanceSpent({ allowance, cost, transitions }: RunState): Spent | null {
  const { usd, tokens, transitions: transitionsMax } = allowance;
  if (usd !== null && cost.usd >= usd)
    return { what: 'usd', message: `the budget of $${usd} is spent ($${cost.usd.toFixed(2)})` };
  if (tokens !== null && cost.tokens >= tokens)
    return { what: 'tokens', message: `the budget of ${tokens} tokens is spent (${cost.tokens})` };
  if (transitionsMax !== null && transitions >= transitionsMax)
    return { what: 'transitions', message: `all ${transitionsMax} transitions that were allowed have been made` };
  return null;
}
