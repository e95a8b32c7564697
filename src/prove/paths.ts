// Paths through the explored states.

import { present } from '../base/errors.ts';
import type { Ending } from './endings.ts';
import type { Edge, Explored, Node } from './explore.ts';
import type { EndedStep } from './watch.ts';

/** The moves from the start to a state, what happened before the first move included. */
export function pathTo({ nodes, start }: Explored, node: Node): readonly Edge[] {
  const edges: Edge[] = [];
  for (let at = node; at.parent !== null; at = present(nodes[at.parent.node], 'a state without its predecessor'))
    edges.push(at.parent.edge);
  return [start, ...edges.toReversed()];
}

/** Like `pathTo`; but if some way can be reproduced by a test, then a shortest one of those. */
export function testablePathTo(explored: Explored, node: Node): readonly Edge[] {
  const first = pathTo(explored, node);
  if (node.index === 0 || first.every(isTestable)) return first;
  const other = shortestFrom(explored, 0, ({ index }) => index === node.index, undefined, isTestable);
  return other === null ? first : [explored.start, ...other];
}

export function isTestable({ cause }: Edge): boolean {
  return cause.kind !== 'beyond-tests';
}

/** Every step that ended on the way, in order. */
export function endedOn(path: readonly Edge[]): readonly EndedStep[] {
  return path.flatMap(({ ended }) => ended);
}

/** A shortest path from a state to one that fits, the edges of which all lead to allowed states; null if there is none. */
export function shortestFrom(
  { nodes }: Pick<Explored, 'nodes'>,
  from: number,
  fits: (node: Node) => boolean,
  isAllowed: (index: number) => boolean = () => true,
  fitsEdge: (edge: Edge) => boolean = () => true,
): readonly Edge[] | null {
  const cameBy = new Map<number, { readonly node: number; readonly edge: Edge }>();
  const queue = [from];
  for (const index of queue) {
    for (const edge of nodes[index]?.edges ?? []) {
      const node = nodes[edge.to];
      if (node === undefined || cameBy.has(edge.to) || !isAllowed(edge.to) || !fitsEdge(edge)) continue;
      cameBy.set(edge.to, { node: index, edge });
      if (fits(node)) return backFrom(cameBy, from, edge.to);
      queue.push(edge.to);
    }
  }
  return null;
}

/** A shortest path from the start that ends with an edge that fits, over allowed edges only; null if there is none. */
export function shortestBy(
  { nodes, start }: Explored,
  fits: (edge: Edge) => boolean,
  isAllowed: (edge: Edge) => boolean = () => true,
): readonly Edge[] | null {
  const cameBy = new Map<number, { readonly node: number; readonly edge: Edge }>();
  const queue = [0];
  for (const index of queue) {
    for (const edge of nodes[index]?.edges ?? []) {
      if (!isAllowed(edge)) continue;
      if (fits(edge)) return [start, ...(index === 0 ? [] : backFrom(cameBy, 0, index)), edge];
      if (edge.to === 0 || cameBy.has(edge.to)) continue;
      cameBy.set(edge.to, { node: index, edge });
      queue.push(edge.to);
    }
  }
  return null;
}

/** The path may end where it began. */
function backFrom(
  cameBy: ReadonlyMap<number, { readonly node: number; readonly edge: Edge }>,
  from: number,
  to: number,
): readonly Edge[] {
  const edges: Edge[] = [];
  for (let at = to; ; ) {
    const step = present(cameBy.get(at), 'a path with a gap');
    edges.push(step.edge);
    at = step.node;
    if (at === from) return edges.toReversed();
  }
}

/** Goes on to the nearest end, a good one if there is one, so that the path is a whole run. */
export function toEnd(explored: Explored, path: readonly Edge[]): readonly Edge[] {
  const last = path.at(-1)?.to ?? 0;
  if (explored.nodes[last]?.ending !== null) return path;
  const nearest = (fits: (ending: Ending) => boolean): readonly Edge[] | null =>
    shortestFrom(explored, last, ({ ending }) => ending !== null && fits(ending), undefined, isTestable);
  return [...path, ...(nearest(({ status }) => status === 'done') ?? nearest(() => true) ?? [])];
}
