// Judges claims by the explored states.
//
// claims/1  A broken claim has a counterexample, the shortest one that was explored.
// claims/2  A claim holds only if everything was explored; otherwise that is unknown.

import { segmentMatcher } from '../base/names.ts';
import type { Claim, ClaimedLimits } from '../ir/claim.ts';
import type { Edge, Explored } from './explore.ts';
import type { Loop } from './loops.ts';
import { isTestable, shortestBy, shortestFrom, testablePathTo } from './paths.ts';
import { adaptersIn, type Prices, priceOf } from './worst.ts';

/** `holds`: null if it is not known. */
export interface JudgedClaim {
  readonly claim: Claim;
  readonly holds: boolean | null;
  /** Null unless it is broken. */
  readonly counterexample: Counterexample | null;
}

export interface Counterexample {
  readonly path: readonly Edge[];
  /** A loop that can repeat forever after the path; empty if there is none. */
  readonly round: readonly Edge[];
  /** Null unless the claim is a limit. */
  readonly exceeded: Exceeded | null;
}

export interface Exceeded {
  /** In the plural, such as `turns`. */
  readonly what: string;
  readonly limit: number;
  readonly got: number;
}

export interface Evidence {
  readonly explored: Explored;
  readonly loops: readonly Loop[];
  readonly prices: Prices;
}

export function judgeClaims(claims: readonly Claim[], evidence: Evidence): readonly JudgedClaim[] {
  return claims.map((claim, index) => {
    const counterexample = counterexampleTo(claim, index, evidence);
    const isKnown = evidence.explored.complete && !needsPrice(claim, evidence);
    return { claim, holds: counterexample === null ? isKnown || null : false, counterexample };
  });
}

function counterexampleTo(claim: Claim, index: number, evidence: Evidence): Counterexample | null {
  const { explored } = evidence;
  switch (claim.kind) {
    case 'never':
    case 'always':
    case 'alone':
    case 'cleaned':
      return straight(firstBreach(explored, index));
    case 'ends':
      return endless(evidence);
    case 'at-most':
      return excess(claim.limits, evidence);
  }
}

function straight(path: readonly Edge[] | null): Counterexample | null {
  return path === null ? null : { path, round: [], exceeded: null };
}

/** A shortest path; if some can be reproduced by a test, a shortest one of those. */
function firstBreach(explored: Explored, index: number): readonly Edge[] | null {
  const breaks = ({ broken }: Edge): boolean => broken.includes(index);
  if (breaks(explored.start)) return [explored.start];
  return shortestBy(explored, breaks, isTestable) ?? shortestBy(explored, breaks);
}

/** A hang or a loop that a test can reproduce, if there is one. */
function endless({ explored, loops }: Evidence): Counterexample | null {
  const isReproducible = ({ path, round }: Counterexample): boolean => [...path, ...round].every(isTestable);
  const hanging = explored.nodes.filter(({ hangs }) => hangs.length > 0);
  const all = hanging.map(
    (node): Counterexample => ({ path: testablePathTo(explored, node), round: [], exceeded: null }),
  );
  if (all.length === 0) {
    for (const { entry, round } of loops) {
      const node = explored.nodes[entry];
      if (node === undefined) continue;
      const testable = shortestFrom(explored, entry, ({ index }) => index === entry, undefined, isTestable);
      all.push({ path: testablePathTo(explored, node), round: testable ?? round, exceeded: null });
    }
  }
  return all.find(isReproducible) ?? all[0] ?? null;
}

function excess(limits: ClaimedLimits, { explored, prices }: Evidence): Counterexample | null {
  const { turns, commands, agentsAtOnce, usd, visits } = limits;
  const counts: readonly (readonly [string, number | undefined, (edge: Edge) => number])[] = [
    ['turns', turns, (edge) => edge.turns.length],
    ['commands', commands, (edge) => edge.commands],
    ['dollars', usd, (edge) => priceOf(edge, prices)],
    ...Object.entries(visits).map(([step, limit]) => [`visits of ${step}`, limit, visitsOf(step)] as const),
  ];
  const crowded = agentsAtOnce === undefined ? undefined : explored.nodes.find(({ agents }) => agents > agentsAtOnce);
  if (crowded !== undefined && agentsAtOnce !== undefined) {
    const exceeded = { what: 'agents at once', limit: agentsAtOnce, got: crowded.agents };
    return { path: testablePathTo(explored, crowded), round: [], exceeded };
  }
  for (const [what, limit, weight] of counts) {
    if (limit === undefined) continue;
    const path = pathAbove(explored, limit, weight, isTestable) ?? pathAbove(explored, limit, weight);
    if (path === null) continue;
    const got = path.reduce((sum, edge) => sum + weight(edge), 0);
    return { path, round: [], exceeded: { what, limit, got: Math.round(got * 1e9) / 1e9 } };
  }
  return null;
}

function visitsOf(pattern: string): (edge: Edge) => number {
  const matches = segmentMatcher(pattern);
  return ({ started }) => started.filter((name) => matches(name)).length;
}

/** A shortest path over allowed edges with a sum of weights above the limit. */
function pathAbove(
  { nodes, start }: Explored,
  limit: number,
  weight: (edge: Edge) => number,
  isAllowed: (edge: Edge) => boolean = () => true,
): readonly Edge[] | null {
  interface Reached {
    readonly node: number;
    readonly sum: number;
    readonly by: Edge;
    readonly from: Reached | null;
  }
  const pathOf = (reached: Reached): readonly Edge[] => {
    const edges: Edge[] = [];
    for (let at: Reached | null = reached; at !== null; at = at.from) edges.push(at.by);
    return edges.toReversed();
  };
  const best = new Map<number, number>();
  const queue: Reached[] = [{ node: 0, sum: weight(start), by: start, from: null }];
  for (const reached of queue) {
    if (reached.sum > limit + 1e-9) return pathOf(reached);
    for (const edge of nodes[reached.node]?.edges ?? []) {
      if (!isAllowed(edge)) continue;
      const sum = reached.sum + weight(edge);
      // A longer way to a state matters only if more was spent on it.
      if ((best.get(edge.to) ?? -1) >= sum) continue;
      best.set(edge.to, sum);
      queue.push({ node: edge.to, sum, by: edge, from: reached });
    }
  }
  return null;
}

/** The cost of a run is unknown if the price of one of its agents is. */
function needsPrice(claim: Claim, { explored, prices }: Evidence): boolean {
  if (claim.kind !== 'at-most' || claim.limits.usd === undefined) return false;
  return [...adaptersIn(explored)].some((adapter) => !Object.hasOwn(prices, adapter));
}
