// Everything that `meow prove` reports, as data. Its keys are a contract with scripts.

import { type JsonMap, own } from '../base/json.ts';
import { type Claim, claimText } from '../ir/claim.ts';
import type { Program } from '../ir/program.ts';
import { stillRunning, whyBroken } from './breach.ts';
import { judgeClaims, type JudgedClaim } from './claims.ts';
import type { Ending } from './endings.ts';
import type { Explored } from './explore.ts';
import type { Hang } from './inspect.ts';
import { componentsOf, type Loop, unboundedLoops } from './loops.ts';
import { endedOn, pathTo } from './paths.ts';
import { type NamedTest, testOf } from './story.ts';
import { unreached } from './unreached.ts';
import type { EndedStep } from './watch.ts';
import { adaptersIn, type Prices, type Worst, worstCase } from './worst.ts';

export interface Proof {
  readonly explored: { readonly states: number; readonly complete: boolean; readonly visits: number };
  readonly endings: readonly ProvenEnding[];
  readonly never: readonly string[];
  readonly loops: readonly Pick<Loop, 'through' | 'bounded'>[];
  readonly worst: Worst;
  /** Of the adapters that have turns. */
  readonly prices: readonly UsedPrice[];
  readonly claims: readonly ProvenClaim[];
  readonly hangs: readonly Hang[];
  /** 0: proven. 1: a claim is broken, or a run can hang. 3: a bound was reached first, or a claim needs an unknown price. */
  readonly exit: 0 | 1 | 3;
}

/** `usd`: of a turn. `from`: where the figure comes from. Both are null if it is unknown. */
export interface UsedPrice {
  readonly adapter: string;
  readonly usd: number | null;
  readonly from: string | null;
}

export interface ProvenEnding extends Ending {
  /** How many moves lead to it. */
  readonly ways: number;
  readonly shortest: readonly EndedStep[];
}

export interface ProvenClaim {
  readonly claim: string;
  /** Null if it is not known. */
  readonly holds: boolean | null;
  readonly counterexample: readonly EndedStep[] | null;
  /** A sentence without its end: what the counterexample shows. Null unless the claim is broken. */
  readonly why: string | null;
  /** A test that reproduces the counterexample. */
  readonly test: string | null;
}

export interface ProofRequest {
  readonly program: Program;
  readonly claims: readonly Claim[];
  readonly visitsMax: number;
  readonly prices: Prices;
  /** Variables that were given, for the tests. */
  readonly given: JsonMap;
}

export function proofOf(explored: Explored, { program, claims, visitsMax, prices, given }: ProofRequest): Proof {
  const components = componentsOf(explored);
  const loops = unboundedLoops(explored, components);
  const judged = judgeClaims(claims, { explored, loops, prices });
  const hangs = hangsOf(explored);
  const { nodes, complete } = explored;
  const isBroken = hangs.length > 0 || judged.some(({ holds }) => holds === false);
  const isProven = complete && judged.every(({ holds }) => holds === true);
  return {
    explored: { states: nodes.length, complete, visits: visitsMax },
    endings: endingsOf(explored),
    never: complete ? unreached(program, explored) : [],
    loops: loops.map(({ through, bounded }) => ({ through, bounded })),
    worst: worstCase(explored, components, program, prices),
    prices: [...adaptersIn(explored)].toSorted().map((adapter) => usedPrice(adapter, prices)),
    claims: judged.map((each, index) => provenClaim(explored, each, { number: index + 1, given })),
    hangs,
    exit: isBroken ? 1 : isProven ? 0 : 3,
  };
}

function usedPrice(adapter: string, prices: Prices): UsedPrice {
  const known = own(prices, adapter);
  return { adapter, usd: known?.usd ?? null, from: known?.from ?? null };
}

function provenClaim(explored: Explored, { claim, holds, counterexample }: JudgedClaim, named: NamedTest): ProvenClaim {
  const found = counterexample;
  return {
    claim: claimText(claim),
    holds,
    counterexample:
      found === null ? null : [...endedOn([...found.path, ...found.round]), ...stillRunning(claim, found.path)],
    why: found === null ? null : whyBroken(claim, found, explored),
    test: found === null ? null : testOf(explored, claim, named, found),
  };
}

/** States are in the order of their distance, so that the first with an ending has the shortest path. */
function endingsOf(explored: Explored): readonly ProvenEnding[] {
  const found = new Map<string, { readonly ending: Ending; readonly shortest: readonly EndedStep[]; ways: number }>();
  const keys = new Map<number, string>();
  for (const node of explored.nodes) {
    if (node.ending === null) continue;
    const key = JSON.stringify(node.ending);
    keys.set(node.index, key);
    if (!found.has(key)) found.set(key, { ending: node.ending, shortest: endedOn(pathTo(explored, node)), ways: 0 });
  }
  for (const { edges } of explored.nodes) {
    for (const { to } of edges ?? []) {
      const known = found.get(keys.get(to) ?? '');
      if (known !== undefined) known.ways += 1;
    }
  }
  const ranks = { done: 0, paused: 1, failed: 2 };
  return [...found.values()]
    .toSorted((a, b) => ranks[a.ending.status] - ranks[b.ending.status])
    .map(({ ending, ways, shortest }) => ({ ...ending, ways: Math.max(1, ways), shortest }));
}

/** Each step and reason once. */
function hangsOf({ nodes }: Explored): readonly Hang[] {
  const all = nodes.flatMap(({ hangs }) => hangs).map((hang) => [JSON.stringify(hang), hang] as const);
  return [...new Map(all).values()];
}
