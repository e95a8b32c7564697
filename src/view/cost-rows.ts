// Costs of turns, summed: what `meow cost` prints. Its keys are a contract with scripts: all are always present, and unknown values
// are null.

import type { Usage } from '../ir/output.ts';

export const COST_KEYS = ['run', 'workflow', 'step', 'agent', 'adapter', 'model', 'day'] as const;
export type CostKey = (typeof COST_KEYS)[number];

/** One turn of an agent. A name is null if it is unknown. */
export interface TurnCost {
  readonly names: Readonly<Record<CostKey, string | null>>;
  readonly usage: Usage;
  /** How long it took. */
  readonly ms: number;
}

export interface CostFigures {
  readonly turns: number;
  /** As reported; null if no turn reports them. `in`: without what is cached. */
  readonly tokens: Readonly<Record<'total' | 'in' | 'out' | 'cached', number | null>>;
  /** Null if the price of a turn is unknown. */
  readonly usd: number | null;
  /** Of all turns whose price is known, reported or computed. */
  readonly known_usd: number;
  /** The part of it that is computed from the prices of the configuration. */
  readonly computed_usd: number;
  readonly unknown_turns: number;
  readonly agent_ms: number;
}

export interface CostRow extends CostFigures {
  readonly key: string | null;
}

/** The most expensive first; days in their order. */
export function costRows(turns: readonly TurnCost[], by: CostKey): readonly CostRow[] {
  const groups = new Map<string | null, TurnCost[]>();
  for (const turn of turns) {
    const key = turn.names[by];
    const group = groups.get(key) ?? [];
    groups.set(key, group);
    group.push(turn);
  }
  const rows = [...groups].map(([key, group]) => ({ key, ...costFigures(group) }));
  const byKey = (a: CostRow, b: CostRow): number => ((a.key ?? '') < (b.key ?? '') ? -1 : 1);
  if (by === 'day') return rows.toSorted(byKey);
  return rows.toSorted(
    (a, b) => b.known_usd - a.known_usd || (b.tokens.total ?? 0) - (a.tokens.total ?? 0) || byKey(a, b),
  );
}

export function costFigures(turns: readonly TurnCost[]): CostFigures {
  const usages = turns.map(({ usage }) => usage);
  const prices = usages.map(({ usd, computedUsd }) => usd ?? computedUsd ?? null);
  const known = dollars(prices);
  const unknown = prices.filter((price) => price === null).length;
  const count = (of: (usage: Usage) => number | undefined | null): number | null => {
    const reported = usages.flatMap((usage) => of(usage) ?? []);
    return reported.length === 0 && turns.length > 0 ? null : reported.reduce((sum, each) => sum + each, 0);
  };
  return {
    turns: turns.length,
    tokens: {
      total: count(({ tokens }) => tokens),
      in: count(({ parts }) => parts?.input),
      out: count(({ parts }) => parts?.output),
      cached: count(({ parts }) => parts?.cached),
    },
    usd: unknown === 0 ? known : null,
    known_usd: known,
    computed_usd: dollars(usages.map(({ usd, computedUsd }) => (usd === null ? (computedUsd ?? null) : null))),
    unknown_turns: unknown,
    agent_ms: turns.reduce((sum, { ms }) => sum + ms, 0),
  };
}

/** Rounded, so that ten times $0.20 is exactly $2. */
function dollars(amounts: readonly (number | null)[]): number {
  return Math.round(amounts.reduce<number>((sum, amount) => sum + (amount ?? 0), 0) * 1e9) / 1e9;
}
