// Places the nodes of a graph in layers, and routes its edges between them. Knows nothing of steps, colours or SVG.
//
//   layout/1  A route passes through no box except those of its two ends.
//   layout/2  Labels overlap neither each other nor a box.
//   layout/3  A node is below all its predecessors, except along back edges, which close a loop.
//   layout/4  The same graph has the same layout.
//
// The rules hold by construction: an edge that passes a layer has a place of its own in it, like a node, and so has a label.
// Long edges that leave or reach the same node share those places. Within a layer, places never overlap.

import { present } from '../base/errors.ts';

export interface NodeSize {
  readonly id: string;
  readonly width: number;
  readonly height: number;
}

export interface EdgeSize {
  readonly from: string;
  readonly to: string;
  /** Only edges of the same kind share a line. */
  readonly kind: string;
  readonly label: { readonly width: number; readonly height: number } | null;
}

/** `x`: of the centre; `y`: of the upper edge. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Route<E> {
  readonly edge: E;
  /** In the direction of the edge: alternately the end of a straight part and the end of a curved one. */
  readonly points: readonly Point[];
  readonly isSelfLoop: boolean;
  readonly label: Box | null;
}

export interface Layout<E> {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Box>;
  /** In the order of the edges, without those that have an unknown end. */
  readonly routes: readonly Route<E>[];
}

/** Longer layers are split. */
const LAYER_MAX = 12;
const NODE_GAP = 28;
const LINE_GAP = 12;
const LAYER_GAP = 40;
const LABEL_GAP = 18;
const LOOP_WIDTH = 30;
const PORT_GAP = 14;
/** Straight long edges matter more than centred nodes. */
const LINE_WEIGHT = 10_000;
const SWEEPS = 6;

/** A place in a layer: of a node, a label, or a line that passes. */
interface Place {
  readonly kind: 'node' | 'label' | 'line';
  readonly width: number;
  /** Space to the right that belongs to it: its self-loops. */
  readonly beside: number;
  readonly height: number;
  readonly above: Place[];
  readonly below: Place[];
  /** While ranks are ordered: its position in the rank, from 0 to 1. */
  x: number;
  y: number;
  /** Lower edge of the rank. */
  bottom: number;
  /** Where it should be, given its neighbours. */
  wanted: number;
}

export function layOut<E extends EdgeSize>(nodes: readonly NodeSize[], edges: readonly E[]): Layout<E> {
  const graph = numbered(nodes, edges);
  const back = backEdges(graph);
  const depth = layersOf(graph, back);
  const { ranks, places, chains } = placeAll(graph, back, depth);
  orderRanks(ranks);
  const width = placeAcross(ranks);
  const height = placeDown(ranks);
  const portOf = portsOf(places);
  const boxOf = ({ x, y, width: wide, height: high }: Place): Box => ({ x, y, width: wide, height: high });
  return {
    width,
    height,
    boxes: new Map(nodes.map(({ id }, index) => [id, boxOf(at(places, index))])),
    routes: graph.edges.map((edge, index): Route<E> => {
      const { from, to, size } = edge;
      if (from === to) return { edge: size, ...selfLoop(graph, index, at(places, from)) };
      const chain = at(chains, index);
      const label = chain.find(({ kind }) => kind === 'label');
      const points = pointsAlong(chain, portOf);
      return {
        edge: size,
        points: back.has(index) ? points.toReversed() : points,
        isSelfLoop: false,
        label: label === undefined ? null : boxOf(label),
      };
    }),
  };
}

interface NumberedEdge<E> {
  readonly from: number;
  readonly to: number;
  readonly size: E;
}

interface NumberedGraph<E extends EdgeSize = EdgeSize> {
  readonly nodes: readonly NodeSize[];
  readonly edges: readonly NumberedEdge<E>[];
  /** Numbers of the edges that leave each node, without self-loops. */
  readonly out: readonly (readonly number[])[];
  /** Numbers of the self-loops of each node. */
  readonly loops: readonly (readonly number[])[];
}

function numbered<E extends EdgeSize>(nodes: readonly NodeSize[], edges: readonly E[]): NumberedGraph<E> {
  const numberOf = new Map(nodes.map(({ id }, index) => [id, index]));
  const known = edges.flatMap((size): NumberedEdge<E>[] => {
    const [from, to] = [numberOf.get(size.from), numberOf.get(size.to)];
    return from === undefined || to === undefined ? [] : [{ from, to, size }];
  });
  const out: number[][] = nodes.map(() => []);
  const loops: number[][] = nodes.map(() => []);
  for (const [index, { from, to }] of known.entries()) at(from === to ? loops : out, from).push(index);
  return { nodes, edges: known, out, loops };
}

/** Edges to a node on the current path of a depth-first search from the first node. */
function backEdges({ nodes, edges, out }: NumberedGraph): ReadonlySet<number> {
  const back = new Set<number>();
  const state: ('open' | 'done' | undefined)[] = nodes.map(() => undefined);
  for (const start of nodes.keys()) {
    if (state[start] !== undefined) continue;
    // Without recursion: a chain may be as long as a run.
    const path = [{ node: start, next: 0 }];
    state[start] = 'open';
    for (let here = path.at(-1); here !== undefined; here = path.at(-1)) {
      const index = out[here.node]?.[here.next];
      here.next += 1;
      if (index === undefined) {
        state[here.node] = 'done';
        path.pop();
        continue;
      }
      const { to } = at(edges, index);
      if (state[to] === 'open') back.add(index);
      else if (state[to] === undefined) {
        state[to] = 'open';
        path.push({ node: to, next: 0 });
      }
    }
  }
  return back;
}

/** The upper and the lower end of an edge. */
function endsOf(
  { from, to }: NumberedEdge<EdgeSize>,
  isBack: boolean,
): { readonly upper: number; readonly lower: number } {
  return isBack ? { upper: to, lower: from } : { upper: from, lower: to };
}

interface Neighbours {
  readonly above: readonly (readonly number[])[];
  readonly below: readonly (readonly number[])[];
}

function neighboursOf({ nodes, edges }: NumberedGraph, back: ReadonlySet<number>): Neighbours {
  const above: number[][] = nodes.map(() => []);
  const below: number[][] = nodes.map(() => []);
  for (const [index, edge] of edges.entries()) {
    if (edge.from === edge.to) continue;
    const { upper, lower } = endsOf(edge, back.has(index));
    at(below, upper).push(lower);
    at(above, lower).push(upper);
  }
  return { above, below };
}

/**
 * The layer of each node: the first below all its predecessors that is not full. A full layer prefers nodes whose last
 * predecessor has just been placed, so that their edges are short.
 */
function layersOf(graph: NumberedGraph, back: ReadonlySet<number>): readonly number[] {
  const { above, below } = neighboursOf(graph, back);
  const waits = above.map(({ length }) => length);
  const layerOf = graph.nodes.map(() => 0);
  /** The next one is at the end. */
  const ready = [...waits.keys()].filter((node) => waits[node] === 0).toReversed();
  for (let layer = 0; ready.length > 0; layer++) {
    const row = ready.splice(-LAYER_MAX).toReversed();
    const freed: number[] = [];
    for (const node of row) {
      layerOf[node] = layer;
      for (const next of at(below, node)) {
        waits[next] = at(waits, next) - 1;
        if (waits[next] === 0) freed.push(next);
      }
    }
    ready.push(...freed.toReversed());
  }
  return layerOf;
}

/**
 * Makes the places of nodes, of labels and of the lines between them. Layers of nodes and rows of labels are ranks, numbered
 * from top to bottom. A chain has the places of one edge, from its upper to its lower end.
 */
function placeAll(graph: NumberedGraph, back: ReadonlySet<number>, depth: readonly number[]) {
  const { nodes, edges, loops } = graph;
  const labelBelow = new Set<number>();
  for (const [index, edge] of edges.entries()) {
    if (edge.from !== edge.to && edge.size.label !== null) {
      labelBelow.add(labelLayer(edge, back.has(index), depth));
    }
  }
  const layerCount = depth.reduce((most, layer) => Math.max(most, layer + 1), 0);
  /** The rank of each layer. The rank after it is its row of labels, if it has one. */
  const rankOf: number[] = [];
  let next = 0;
  for (let layer = 0; layer < layerCount; layer++) {
    rankOf.push(next);
    next += labelBelow.has(layer) ? 2 : 1;
  }
  const ranks: Place[][] = Array.from({ length: next }, () => []);
  const add = (rank: number, kind: Place['kind'], width: number, height: number, beside = 0): Place => {
    const row = at(ranks, rank);
    const place: Place = { kind, width, beside, height, above: [], below: [], x: 0, y: 0, bottom: 0, wanted: 0 };
    row.push(place);
    return place;
  };
  const rankOfNode = (node: number): number => at(rankOf, at(depth, node));
  const places = nodes.map(({ width, height }, node) =>
    add(rankOfNode(node), 'node', width, height, loopsWidth(graph, at(loops, node))),
  );

  const { above, below } = neighboursOf(graph, back);
  /** By rank, for each trunk. */
  const shared = new Map<string, Place[]>();
  const chains = edges.map((edge, index): readonly Place[] => {
    if (edge.from === edge.to) return [];
    const { size } = edge;
    const { upper, lower } = endsOf(edge, back.has(index));
    const labelRank = size.label === null ? null : at(rankOf, labelLayer(edge, back.has(index), depth)) + 1;
    const end = at(below, upper).length >= at(above, lower).length ? `from ${upper}` : `to ${lower}`;
    const key = `${size.kind} ${back.has(index)} ${end}`;
    const trunk = (size.label === null ? shared.get(key) : undefined) ?? [];
    if (size.label === null) shared.set(key, trunk);
    const chain = [at(places, upper)];
    for (let rank = rankOfNode(upper) + 1; rank < rankOfNode(lower); rank++) {
      const isLabel = rank === labelRank && size.label !== null;
      const place =
        trunk[rank] ?? (isLabel ? add(rank, 'label', size.label.width, size.label.height) : add(rank, 'line', 0, 0));
      trunk[rank] = place;
      chain.push(place);
    }
    chain.push(at(places, lower));
    for (const [step, place] of chain.entries()) if (step > 0) join(at(chain, step - 1), place);
    return chain;
  });
  return { ranks, places, chains };
}

function join(upper: Place, lower: Place): void {
  const isKnown = upper.below.length < lower.above.length ? upper.below.includes(lower) : lower.above.includes(upper);
  if (isKnown) return;
  upper.below.push(lower);
  lower.above.push(upper);
}

/** A label is next to the node that the edge leaves: in the row below this layer. */
function labelLayer({ from }: NumberedEdge<EdgeSize>, isBack: boolean, depth: readonly number[]): number {
  return at(depth, from) - (isBack ? 1 : 0);
}

/** Moves places next to their neighbours, downwards and upwards in turn, so that fewer lines cross. */
function orderRanks(ranks: readonly Place[][]): void {
  const setPositions = (rank: readonly Place[]): void => {
    for (const [index, place] of rank.entries()) place.x = (index + 0.5) / rank.length;
  };
  for (const rank of ranks) setPositions(rank);
  sweep(ranks, (rank, side) => {
    for (const place of rank) place.wanted = wantedX(place, side) ?? place.x;
    rank.sort((a, b) => a.wanted - b.wanted);
    setPositions(rank);
  });
}

/** Sets `x` of all places; returns the width of the layout. */
function placeAcross(ranks: readonly Place[][]): number {
  const offsets = new Map<readonly Place[], readonly number[]>(ranks.map((rank) => [rank, offsetsIn(rank)]));
  const move = (rank: readonly Place[]): void => moveTowards(rank, offsets.get(rank) ?? []);
  for (const rank of ranks) {
    for (const place of rank) place.wanted = 0;
    move(rank);
  }
  sweep(ranks, (rank, side) => {
    for (const place of rank) place.wanted = wantedX(place, side) ?? place.x;
    move(rank);
  });
  const all = ranks.flat();
  const left = all.reduce((most, { x, width }) => Math.min(most, x - width / 2), Number.POSITIVE_INFINITY);
  const right = all.reduce((most, { x, width, beside }) => Math.max(most, x + width / 2 + beside), left);
  for (const place of all) place.x = Math.round(place.x - left);
  return all.length === 0 ? 0 : Math.ceil(right - left) + 1;
}

/** Visits the ranks downwards and upwards in turn, each with the side on which its neighbours are settled. */
function sweep(ranks: readonly Place[][], visit: (rank: Place[], side: 'above' | 'below') => void): void {
  for (let turn = 0; turn < SWEEPS; turn++) {
    const isDown = turn % 2 === 0;
    for (let index = 0; index < ranks.length; index++) {
      visit(at(ranks, isDown ? index : ranks.length - 1 - index), isDown ? 'above' : 'below');
    }
  }
}

/** Where each place of a rank would be if they stood as close as they may. */
function offsetsIn(rank: readonly Place[]): readonly number[] {
  let x = 0;
  return rank.map((place, index) => {
    const before = rank[index - 1];
    if (before !== undefined) {
      const gap = before.kind === 'node' && place.kind === 'node' ? NODE_GAP : LINE_GAP;
      x += before.width / 2 + before.beside + gap + place.width / 2;
    }
    return x;
  });
}

/**
 * Moves each place of a rank as near to where it wants to be as the order and the distances allow: the least squares of a
 * sequence that may only rise, by joining neighbours that would have to change places (pool adjacent violators).
 */
function moveTowards(rank: readonly Place[], offsets: readonly number[]): void {
  const pools: { sum: number; weight: number; count: number }[] = [];
  for (const [index, place] of rank.entries()) {
    const weight = place.kind === 'node' ? 1 : LINE_WEIGHT;
    let pool = { sum: (place.wanted - at(offsets, index)) * weight, weight, count: 1 };
    for (let last = pools.at(-1); last !== undefined; last = pools.at(-1)) {
      if (last.sum / last.weight <= pool.sum / pool.weight) break;
      pools.pop();
      pool = { sum: last.sum + pool.sum, weight: last.weight + pool.weight, count: last.count + pool.count };
    }
    pools.push(pool);
  }
  let index = 0;
  for (const { sum, weight, count } of pools) {
    for (const end = index + count; index < end; index++) {
      at(rank, index).x = sum / weight + at(offsets, index);
    }
  }
}

/** Sets `y` of all places; returns the height of the layout. */
function placeDown(ranks: readonly Place[][]): number {
  let bottom = 0;
  for (const [index, rank] of ranks.entries()) {
    const isLabels = rank.every(({ kind }) => kind !== 'node');
    const y = index === 0 ? 0 : bottom + (isLabels ? LABEL_GAP : LAYER_GAP);
    bottom = y + rank.reduce((most, { height }) => Math.max(most, height), 0);
    for (const place of rank) {
      place.y = y;
      place.bottom = bottom;
    }
  }
  return bottom;
}

/** Where lines leave and reach the edges of boxes: side by side, in the order of their other ends. */
function portsOf(places: readonly Place[]): (place: Place, other: Place) => number {
  const ports = new Map<Place, ReadonlyMap<Place, number>>();
  for (const place of places) {
    const xOf = new Map<Place, number>();
    for (const others of [place.above, place.below]) {
      const gap = Math.min(PORT_GAP, place.width / (others.length + 1));
      for (const [index, other] of others.toSorted((a, b) => a.x - b.x).entries()) {
        xOf.set(other, place.x + (index - (others.length - 1) / 2) * gap);
      }
    }
    ports.set(place, xOf);
  }
  return (place, other) => ports.get(place)?.get(other) ?? place.x;
}

/** From the lower edge of the upper box to the upper edge of the lower one. */
function pointsAlong(chain: readonly Place[], portOf: (place: Place, other: Place) => number): readonly Point[] {
  const [upper, lower] = [at(chain, 0), at(chain, chain.length - 1)];
  let last = { x: portOf(upper, at(chain, 1)), from: upper.y + upper.height, to: upper.bottom };
  const straights = [last];
  const add = (x: number, from: number, to: number): void => {
    if (x === last.x) last.to = to;
    else straights.push((last = { x, from, to }));
  };
  for (let index = 1; index < chain.length - 1; index++) {
    const { x, y, bottom } = at(chain, index);
    add(x, y, bottom);
  }
  add(portOf(lower, at(chain, chain.length - 2)), lower.y, lower.y);
  return straights.flatMap(({ x, from, to }) => [
    { x, y: from },
    { x, y: to },
  ]);
}

/** The space that loops need beside a node. */
function loopsWidth({ edges }: NumberedGraph, loops: readonly number[]): number {
  return loops.reduce((sum, index) => sum + LOOP_WIDTH + (edges[index]?.size.label?.width ?? 0), 0);
}

/** From the right side of the box out and back to it. Its label is beside it. */
function selfLoop(graph: NumberedGraph, index: number, { x, y, width, height }: Place): Omit<Route<never>, 'edge'> {
  const loops = at(graph.loops, at(graph.edges, index).from);
  const before = loopsWidth(graph, loops.slice(0, loops.indexOf(index)));
  const right = x + width / 2;
  const reach = right + before + LOOP_WIDTH - LINE_GAP;
  const label = graph.edges[index]?.size.label ?? null;
  return {
    points: [
      { x: right, y: y + height / 4 },
      { x: reach, y: y + height / 2 },
      { x: right, y: y + (3 * height) / 4 },
    ],
    isSelfLoop: true,
    label: label && { ...label, x: reach + label.width / 2, y: y + (height - label.height) / 2 },
  };
}

/** The mean position of the neighbours. A line that continues stays straight, whatever joins it. */
function wantedX(place: Place, side: 'above' | 'below'): number | null {
  let [sum, count, lineSum, lineCount] = [0, 0, 0, 0];
  for (const { kind, x } of place[side]) {
    sum += x;
    count += 1;
    if (kind !== 'line') continue;
    lineSum += x;
    lineCount += 1;
  }
  if (place.kind === 'line' && lineCount > 0) return lineSum / lineCount;
  return count === 0 ? null : sum / count;
}

/** An item of a list that the layout itself has filled. */
function at<T>(list: readonly T[], index: number): T {
  return present(list[index], 'the layout knows all its nodes, edges and ranks');
}
