// A graph as SVG. Each step is in a row below all its predecessors, and near them. Back edges, as in loops, are drawn
// around the side.

import { sanitize } from '../base/sanitize.ts';
import { COLOURS, type Graph, type GraphEdge, type GraphNode, groupsOf, layersOf } from './graph.ts';
import { cut, widthOf } from './row.ts';

export function graphSvg(graph: Graph): string {
  const { title, nodes } = graph;
  const bundles = bundleEdges(graph.edges);
  const back = backEdges(nodes, bundles);
  const ahead = bundles.filter((bundle) => !back.has(bundle));
  const boxes = placeBoxes(rowsOf(nodes, ahead));
  const all = [...boxes.values()];
  const width =
    all.reduce((most, box) => Math.max(most, box.x + box.width / 2 + AROUND), widthOf(title) * CHARACTER) + MARGIN;
  const height = all.reduce((most, { y }) => Math.max(most, y + HEIGHT), MARGIN) + MARGIN;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    `<style>${STYLE}</style>`,
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
    '<path d="M0 0L8 4L0 8z" fill="#666666"/></marker></defs>',
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text class="title" x="${MARGIN}" y="${MARGIN}">${escapeXml(title)}</text>`,
    ...bundles.flatMap((bundle) => bundleSvg(bundle, boxes, back.has(bundle))),
    ...all.flatMap(nodeSvg),
    '</svg>',
  ];
  return `${lines.join('\n')}\n`;
}

/** Edges between the same two steps with different outcomes are one line. */
interface Bundle extends Pick<GraphEdge, 'from' | 'to' | 'kind'> {
  readonly labels: readonly string[];
}

function bundleEdges(edges: readonly GraphEdge[]): readonly Bundle[] {
  const between = groupsOf(edges, ({ from, to, kind }) => JSON.stringify([from, to, kind]));
  return [...between.values()].flatMap((same) => {
    const labels = same.flatMap(({ label }) => label ?? []);
    return same.slice(0, 1).map(({ from, to, kind }) => ({ from, to, kind, labels }));
  });
}

interface Box {
  readonly node: GraphNode;
  /** Position of the centre. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

const MARGIN = 24;
const HEIGHT = 44;
const ROW_GAP = 48;
const GAP = 48;
const AROUND = 60;
const CHARACTER = 7.5;
/** Longer rows are split. */
const ROW_MAX = 12;
const NAME_MAX = 40;

const STYLE =
  'text{font:12px ui-monospace,monospace;text-anchor:middle;fill:#111111}.title{font-weight:bold;text-anchor:start}' +
  '.dim{fill:#666666;font-size:10px}.on{paint-order:stroke;stroke:#ffffff;stroke-width:3px}path{fill:none;stroke:#666666}.grows{stroke-dasharray:4 3}';

/** Edges to a node on the current path of a depth-first search from the first step. */
function backEdges(nodes: readonly GraphNode[], bundles: readonly Bundle[]): ReadonlySet<Bundle> {
  const out = groupsOf(bundles, ({ from }) => from);
  const back = new Set<Bundle>();
  const state = new Map<string, 'open' | 'done'>();
  for (const { id } of nodes) {
    if (state.has(id)) continue;
    // Without recursion: a chain may be as long as a run.
    const way = [{ id, next: 0 }];
    state.set(id, 'open');
    for (let here = way.at(-1); here !== undefined; here = way.at(-1)) {
      const bundle = out.get(here.id)?.[here.next];
      here.next += 1;
      if (bundle === undefined) {
        state.set(here.id, 'done');
        way.pop();
      } else if (state.get(bundle.to) === 'open') back.add(bundle);
      else if (!state.has(bundle.to)) {
        state.set(bundle.to, 'open');
        way.push({ id: bundle.to, next: 0 });
      }
    }
  }
  return back;
}

/** Each node in the first row below all its predecessors. */
function rowsOf(nodes: readonly GraphNode[], ahead: readonly Bundle[]): readonly (readonly GraphNode[])[] {
  const into = groupsOf(ahead, ({ to }) => to);
  /** Position of a node in its row, from 0 to 1. */
  const at = new Map<string, number>();
  const nearness = ({ id }: GraphNode): number => {
    const from = (into.get(id) ?? []).map(({ from: before }) => at.get(before) ?? 0);
    return from.length === 0 ? 0.5 : from.reduce((sum, each) => sum + each, 0) / from.length;
  };
  const rows = layersOf(nodes, ahead, (layer) => {
    const row = layer.toSorted((a, b) => nearness(a) - nearness(b));
    for (const [index, { id }] of row.entries()) at.set(id, (index + 0.5) / row.length);
    return row;
  });
  return rows.flatMap((row) =>
    Array.from({ length: Math.ceil(row.length / ROW_MAX) }, (_, part) =>
      row.slice(part * ROW_MAX, (part + 1) * ROW_MAX),
    ),
  );
}

function placeBoxes(rows: readonly (readonly GraphNode[])[]): ReadonlyMap<string, Box> {
  const widthIn = (row: readonly GraphNode[]): number =>
    row.reduce((sum, node) => sum + boxWidth(node), (row.length - 1) * GAP);
  const widest = rows.reduce((most, row) => Math.max(most, widthIn(row)), 0);
  const boxes = new Map<string, Box>();
  for (const [index, row] of rows.entries()) {
    let x = MARGIN + (widest - widthIn(row)) / 2;
    for (const node of row) {
      const width = boxWidth(node);
      boxes.set(node.id, { node, width, x: x + width / 2, y: 2 * MARGIN + index * (HEIGHT + ROW_GAP) });
      x += width + GAP;
    }
  }
  return boxes;
}

function boxWidth({ name, executor, group }: GraphNode): number {
  return Math.max(widthOf(short(name)), widthOf(subtitle(executor, group)), 8) * CHARACTER + MARGIN;
}

function subtitle(executor: string, group: string | null): string {
  return group === null ? executor : `${executor} · ${short(group)}`;
}

function nodeSvg({ node, x, y, width }: Box): readonly string[] {
  const { fill, line } = node.status === null ? { fill: '#ffffff', line: '#666666' } : COLOURS[node.status];
  const status = node.status === null ? '' : ` (${node.status})`;
  return [
    `<g><title>${escapeXml(node.id)}${status}</title>`,
    `<rect x="${x - width / 2}" y="${y}" width="${width}" height="${HEIGHT}" rx="6" fill="${fill}" stroke="${line}"/>`,
    `<text x="${x}" y="${y + 19}">${escapeXml(short(node.name))}</text>`,
    `<text class="dim" x="${x}" y="${y + 34}">${escapeXml(subtitle(node.executor, node.group))}</text></g>`,
  ];
}

function bundleSvg(
  { from, to, kind, labels }: Bundle,
  boxes: ReadonlyMap<string, Box>,
  isBack: boolean,
): readonly string[] {
  const [a, b] = [boxes.get(from), boxes.get(to)];
  if (a === undefined || b === undefined) return [];
  const [right, middle] = [Math.max(a.x + a.width / 2, b.x + b.width / 2) + AROUND, HEIGHT / 2];
  const [top, bottom] = [a.y + HEIGHT, b.y];
  const half = (bottom - top) / 2;
  const way = isBack
    ? `M${a.x + a.width / 2} ${a.y + middle}C${right} ${a.y + middle} ${right} ${b.y + middle + 8} ${b.x + b.width / 2} ${b.y + middle + 8}`
    : `M${a.x} ${top}C${a.x} ${top + half} ${b.x} ${bottom - half} ${b.x} ${bottom}`;
  const at = isBack ? { x: right - 12, y: (a.y + b.y) / 2 + middle } : { x: (a.x + b.x) / 2, y: (top + bottom) / 2 };
  return [
    `<path class="${kind}" d="${way}" marker-end="url(#tip)"/>`,
    ...(labels.length === 0 ? [] : [labelsSvg(labels, at)]),
  ];
}

/** Shows the first of many outcomes; a tooltip lists all. */
function labelsSvg(labels: readonly string[], { x, y }: { readonly x: number; readonly y: number }): string {
  const [first = '', ...others] = labels;
  const shown = others.length > 1 ? `${short(first)} +${others.length}` : short(labels.join(', '));
  return `<text class="dim on" x="${x}" y="${y}">${escapeXml(shown)}<title>${escapeXml(labels.join(', '))}</title></text>`;
}

function short(name: string): string {
  return cut(sanitize(name), NAME_MAX);
}

function escapeXml(text: string): string {
  return sanitize(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
