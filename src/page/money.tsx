// Amounts of money: `≥` if a price is unknown, and a bar against the budget.

import type { FleetCost, FleetRun } from '../view/fleet.ts';
import { dollars, tokens } from './shown-text.ts';

export interface Amount {
  readonly usd: number;
  readonly tokens: number;
  /** Turns without a reported price: `usd` is at least so much. */
  readonly unpriced: number;
}

export const NOTHING_SPENT: Amount = { usd: 0, tokens: 0, unpriced: 0 };

export function sum(a: Amount, b: Amount): Amount {
  return { usd: a.usd + b.usd, tokens: a.tokens + b.tokens, unpriced: a.unpriced + b.unpriced };
}

export function amountOf({ known_usd: usd, tokens: count, unknown_turns: unpriced }: FleetCost): Amount {
  return { usd, tokens: count ?? 0, unpriced };
}

/** `$2.41`, `≥ $4.02`, `≥ 12k tokens`; `—` if nothing was reported. */
export function amountText({ usd, tokens: count, unpriced }: Amount): string {
  const atLeast = unpriced > 0 ? '≥ ' : '';
  if (usd > 0) return `${atLeast}${dollars(usd)}`;
  return count > 0 ? `${tokens(count)} tokens` : '—';
}

/** At this share of the budget people should look. */
const HOT = 0.75;

export function Spent({ run: { cost, budget } }: { readonly run: Pick<FleetRun, 'cost' | 'budget'> }) {
  if (cost === null) return <>—</>;
  const spent = amountOf(cost);
  const limit = budget?.usd ?? null;
  if (limit === null) return <>{amountText(spent)}</>;
  return (
    <>
      {amountText({ ...spent, tokens: 0 })} <small>of {dollars(limit)}</small>
      <Meter share={limit === 0 ? 1 : spent.usd / limit} />
    </>
  );
}

export function Meter({ share }: { readonly share: number }) {
  const width = `${Math.round(100 * Math.min(1, Math.max(0, share)))}%`;
  return (
    <div class={share >= HOT ? 'meter hot' : 'meter'}>
      <i style={{ width }} />
    </div>
  );
}
