// The worst case of a run: the longest way through the explored states, by what its moves cost.

import type { Program } from '../ir/program.ts';
import type { Edge, Explored } from './explore.ts';
import type { Components } from './loops.ts';

/** Null is no bound. */
export interface Worst {
  readonly turns: number | null;
  readonly commands: number | null;
  readonly agents_at_once: number | null;
  readonly usd: number | null | 'unknown';
}

/** By adapter. */
export type Prices = Readonly<Record<string, Price>>;

/** Dollars of a turn, and where the figure comes from. */
export interface Price {
  readonly usd: number;
  readonly from: string;
}

export function worstCase(explored: Explored, components: Components, program: Program, prices: Prices): Worst {
  const count = (weight: (edge: Edge) => number): number | null => longest(explored, components, weight);
  return {
    turns: count(({ turns }) => turns.length),
    commands: count(({ commands }) => commands),
    agents_at_once: explored.complete ? agentsAtOnce(explored, program) : null,
    usd: dollars(explored, components, prices),
  };
}

/** The highest sum of weights on a way from the start; null if there is no highest, or if it is not known. */
export function longest(
  { nodes, start, complete }: Explored,
  { of, count, cyclic }: Components,
  weight: (edge: Edge) => number,
): number | null {
  if (!complete) return null;
  const best = Array.from({ length: count }, () => 0);
  const members = nodes.map(({ index }) => index).toSorted((a, b) => (of[a] ?? 0) - (of[b] ?? 0));
  for (const index of members) {
    const own = of[index] ?? 0;
    for (const edge of nodes[index]?.edges ?? []) {
      const other = of[edge.to] ?? 0;
      if (other === own && cyclic.has(own) && weight(edge) > 0) return null;
      if (other !== own) best[own] = Math.max(best[own] ?? 0, weight(edge) + (best[other] ?? 0));
    }
  }
  return weight(start) + (best[of[0] ?? 0] ?? 0);
}

function dollars(explored: Explored, components: Components, prices: Prices): Worst['usd'] {
  const isPriced = [...adaptersIn(explored)].every((adapter) => Object.hasOwn(prices, adapter));
  const turns = longest(explored, components, (edge) => edge.turns.length);
  if (turns === null) return null;
  return isPriced ? roundedSum(longest(explored, components, (edge) => priceOf(edge, prices))) : 'unknown';
}

export function priceOf({ turns }: Edge, prices: Prices): number {
  return turns.reduce((sum, adapter) => sum + (prices[adapter]?.usd ?? 0), 0);
}

/** So that ten times $0.20 is exactly $2. */
function roundedSum(sum: number | null): number | null {
  return sum === null ? null : Math.round(sum * 1e9) / 1e9;
}

/** Adapters of all turns. */
export function adaptersIn({ nodes, start }: Explored): ReadonlySet<string> {
  const found = new Set(start.turns);
  for (const { edges } of nodes) for (const { turns } of edges ?? []) for (const adapter of turns) found.add(adapter);
  return found;
}

/** A Conductor run has one agent at a time. */
function agentsAtOnce({ nodes, start }: Explored, program: Program): number {
  const most = nodes.reduce((max, { agents }) => Math.max(max, agents), 0);
  const turns = start.turns.length > 0 || nodes.some(({ edges }) => edges?.some((edge) => edge.turns.length > 0));
  return program.source.language === 'conductor' && turns ? Math.max(1, most) : most;
}
