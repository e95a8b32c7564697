// Costs of turns, from the reports of their programs. Unknown is null, and so is every sum with it, never 0.

import type { Usage } from '../../../ir/usage.ts';
import type { RawUsage } from '../readers/reader.ts';
import type { SessionPlan } from './session-plan.ts';

export const UNKNOWN: Usage = { usd: null, tokens: null };

export function spentIn(told: RawUsage | null, { kind, before }: Pick<SessionPlan, 'kind' | 'before'>): Usage {
  if (told === null) return UNKNOWN;
  const { usd, tokens, scope } = told;
  switch (scope) {
    case 'turn':
      return { usd, tokens };
    case 'session':
      return { usd: difference(usd, before?.usd), tokens: difference(tokens, before?.tokens) };
    case 'untold':
      return kind === 'fresh' ? { usd, tokens } : UNKNOWN;
  }
}

/** Null if nothing could have cost anything. */
export function sumOf(all: readonly Usage[]): Usage | null {
  if (all.length === 0) return null;
  return all.reduce((sum, each) => ({ usd: plus(sum.usd, each.usd), tokens: plus(sum.tokens, each.tokens) }));
}

function difference(now: number | null, before: number | null | undefined): number | null {
  return now === null || before === null || before === undefined ? null : Math.max(0, now - before);
}

function plus(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}
