// Judges claims by the explored states.
//
// claims/1  A broken claim has a counterexample, the shortest one that was explored.
// claims/2  A claim holds only if everything was explored; otherwise that is unknown.

import { segmentMatcher } from '../base/names.ts';
import type { Claim, ClaimedLimits } from '../ir/claim.ts';
import type { Edge, Explored } from './explore.ts';
import type { Loop } from './loops.ts';
import { isTestable, shortestBy, testablePathTo } from './paths.ts';
import { type Prices, priceOf } from './worst.ts';

/** `holds`: null if it is not known. */
export interface JudgedClaim {
  readonly claim: Claim;
  readonly holds: boolean | null;
  /** Null unless it is broken. */
  readonly counterexample: Counterexample | null;
}

export interface Counterexample {
  readonly path: readonly Edge[];
  /** The limit that is exceeded, or the loop: what a test has to show. */
  readonly round: readonly Edge[];
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
  return path === null ? null : { path, round: [] };
}

/** A shortest path; if some can be reproduced by a test, a shortest one of those. */
function firstBreach(explored: Explored, index: number): readonly Edge[] | null {
  const breaks = ({ broken }: Edge): boolean => broken.includes(index);
  if (breaks(explored.start)) return [explored.start];
  return shortestBy(explored, breaks, isTestable) ?? shortestBy(explored, breaks);
}

function endless({ explored, loops }: Evidence): Counterexample | null {
  const hanging = explored.nodes.find(({ hangs }) => hangs.length > 0);
  if (hanging !== undefined) return straight(testablePathTo(explored, hanging));
  const [loop] = loops;
  const entry = loop === undefined ? undefined : explored.nodes[loop.entry];
  return loop === undefined || entry === undefined
    ? null
    : { path: testablePathTo(explored, entry), round: loop.round };
}

function excess(limits: ClaimedLimits, { explored, prices }: Evidence): Counterexample | null {
  const { turns, commands, agentsAtOnce, usd, visits } = limits;
  const counts: readonly (readonly [number | undefined, (edge: Edge) => number])[] = [
    [turns, (edge) => edge.turns.length],
    [commands, (edge) => edge.commands],
    [usd, (edge) => priceOf(edge, prices)],
    ...Object.entries(visits).map(([pattern, limit]) => [limit, visitsOf(pattern)] as const),
  ];
  const crowded = agentsAtOnce === undefined ? undefined : explored.nodes.find(({ agents }) => agents > agentsAtOnce);
  if (crowded !== undefined) return straight(testablePathTo(explored, crowded));
  for (const [limit, weight] of counts) {
    const path = limit === undefined ? null : pathAbove(explored, limit, weight);
    if (path !== null) return straight(path);
  }
  return null;
}

function visitsOf(pattern: string): (edge: Edge) => number {
  const matches = segmentMatcher(pattern);
  return ({ started }) => started.filter((name) => matches(name)).length;
}

/** A shortest path with a sum of weights above the limit. */
function pathAbove({ nodes, start }: Explored, limit: number, weight: (edge: Edge) => number): readonly Edge[] | null {
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
  const edges = [explored.start, ...explored.nodes.flatMap(({ edges: all }) => all ?? [])];
  return edges.some(({ turns }) => turns.some((adapter) => !Object.hasOwn(prices, adapter)));
}
