// Loops: cycles in the explored states. All counters that bound something are part of a state's key, so that a cycle of
// states can repeat forever. Cycles that a counter ends are none.

import type { Edge, Explored } from './explore.ts';
import { endedOn, shortestFrom } from './paths.ts';

export interface Loop {
  /** Steps that end on the way round. */
  readonly through: readonly string[];
  readonly bounded: boolean;
  /** The state where it begins, and one round. */
  readonly entry: number;
  readonly round: readonly Edge[];
}

/** For each state the number of its component. A component has a higher number than all that it can reach. */
export interface Components {
  readonly of: readonly number[];
  readonly count: number;
  /** Components that contain a cycle. */
  readonly cyclic: ReadonlySet<number>;
}

/** More cycles of one component would not help. */
const CYCLES_MAX = 20;
/** A shortest cycle is searched from this many states of a component. */
const STARTS_MAX = 200;

export function unboundedLoops(explored: Explored, components: Components): readonly Loop[] {
  const found = new Map<string, Loop>();
  const tried = new Map<number, number>();
  for (const { index } of explored.nodes) {
    const component = components.of[index] ?? -1;
    const count = (tried.get(component) ?? 0) + 1;
    tried.set(component, count);
    if (!components.cyclic.has(component) || count > STARTS_MAX || found.size >= CYCLES_MAX) continue;
    const within = (other: number): boolean => components.of[other] === component;
    const round = shortestFrom(explored, index, (node) => node.index === index, within);
    if (round === null) continue;
    const through = [...new Set(endedOn(round).map(({ step }) => step))];
    const key = through.toSorted().join('\n');
    if (!found.has(key)) found.set(key, { through, bounded: false, entry: index, round });
  }
  return [...found.values()];
}

/** Tarjan's algorithm, without recursion: a path may be very long. */
export function componentsOf({ nodes }: Pick<Explored, 'nodes'>): Components {
  const of: number[] = [];
  const low: number[] = [];
  const order: number[] = [];
  const stack: number[] = [];
  const onStack = new Set<number>();
  const cyclic = new Set<number>();
  let [visited, count] = [0, 0];
  const close = (root: number): void => {
    for (let member = stack.pop(); member !== undefined; member = stack.pop()) {
      onStack.delete(member);
      of[member] = count;
      if (member === root) break;
      cyclic.add(count);
    }
    if ((nodes[root]?.edges ?? []).some(({ to }) => to === root)) cyclic.add(count);
    count += 1;
  };
  for (const { index: first } of nodes) {
    if (order[first] !== undefined) continue;
    const work: { readonly node: number; next: number }[] = [{ node: first, next: 0 }];
    for (let top = work.at(-1); top !== undefined; top = work.at(-1)) {
      const { node } = top;
      if (top.next === 0) {
        order[node] = low[node] = visited++;
        stack.push(node);
        onStack.add(node);
      }
      const edge = nodes[node]?.edges?.[top.next++];
      if (edge === undefined) {
        work.pop();
        const below = work.at(-1)?.node;
        if (below !== undefined) low[below] = Math.min(low[below] ?? 0, low[node] ?? 0);
        if (low[node] === order[node]) close(node);
      } else if (order[edge.to] === undefined) {
        work.push({ node: edge.to, next: 0 });
      } else if (onStack.has(edge.to)) {
        low[node] = Math.min(low[node] ?? 0, order[edge.to] ?? 0);
      }
    }
  }
  return { of, count, cyclic };
}
