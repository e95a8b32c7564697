// A graph as a picture that every browser shows. Steps stand in rows, each below all that leads to it; what leads back, as loops
// do, is drawn around the side. In a row steps stand near what leads to them.

import { COLOURS, groupsOf } from './graph.ts';
import type { Graph, GraphEdge, GraphNode } from './graph.ts';
import { tame, widthOf } from './row.ts';

export function graphSvg(drawn: Graph): string {
  const graph = { ...drawn, edges: bundled(drawn.edges) };
  const back = backEdges(graph);
  const ahead = graph.edges.filter((edge) => !back.has(edge));
  const boxes = placed(rowsOf(graph, ahead));
  const all = [...boxes.values()];
  const width =
    all.reduce((most, box) => Math.max(most, box.x + box.width / 2 + AROUND), widthOf(graph.title) * CHARACTER) +
    MARGIN;
  const height = all.reduce((most, { y }) => Math.max(most, y + HEIGHT), MARGIN) + MARGIN;
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(graph.title)}</title>`,
    `<style>${STYLE}</style>`,
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
    '<path d="M0 0L8 4L0 8z" fill="#666666"/></marker></defs>',
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text class="title" x="${MARGIN}" y="${MARGIN}">${escaped(graph.title)}</text>`,
    ...graph.edges.flatMap((edge) => drawnEdge(edge, boxes, back.has(edge))),
    ...all.flatMap(drawnNode),
    '</svg>',
  ];
  return `${lines.join('\n')}\n`;
}

/** What leads from one step to another by several outcomes is one line. */
function bundled(edges: readonly GraphEdge[]): readonly GraphEdge[] {
  const between = groupsOf(edges, ({ from, to, kind }) => JSON.stringify([from, to, kind]));
  return [...between.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const labels = [first, ...others].flatMap(({ label }) => label ?? []);
    return [{ ...first, label: labels.length === 0 ? null : labels.join(SEPARATOR) }];
  });
}

interface Box {
  readonly node: GraphNode;
  /** Of the middle. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

const MARGIN = 24;
const HEIGHT = 44;
const ROW_GAP = 48;
const GAP = 48;
/** Room for what leads back. */
const AROUND = 60;
const CHARACTER = 7.5;
/** A row that is wider is hard to follow; it goes on in the next. */
const ROW_MAX = 12;
const NAME_MAX = 40;
const SEPARATOR = ', ';

const STYLE =
  'text{font:12px ui-monospace,monospace;text-anchor:middle;fill:#111111}.title{font-weight:bold;text-anchor:start}' +
  '.dim{fill:#666666;font-size:10px}.on{paint-order:stroke;stroke:#ffffff;stroke-width:3px}path{fill:none;stroke:#666666}.grows{stroke-dasharray:4 3}';

/** Those that lead to where control has come from, on the way through the graph from its first step. */
function backEdges({ nodes, edges }: Graph): ReadonlySet<GraphEdge> {
  const out = groupsOf(edges, ({ from }) => from);
  const back = new Set<GraphEdge>();
  const state = new Map<string, 'open' | 'done'>();
  for (const { id } of nodes) {
    if (state.has(id)) continue;
    // Without recursion: a chain may be as long as a run.
    const way = [{ id, next: 0 }];
    state.set(id, 'open');
    for (let here = way.at(-1); here !== undefined; here = way.at(-1)) {
      const edge = out.get(here.id)?.[here.next];
      here.next += 1;
      if (edge === undefined) {
        state.set(here.id, 'done');
        way.pop();
      } else if (state.get(edge.to) === 'open') back.add(edge);
      else if (!state.has(edge.to)) {
        state.set(edge.to, 'open');
        way.push({ id: edge.to, next: 0 });
      }
    }
  }
  return back;
}

/** Each node in the first row that is below all that lead to it. */
function rowsOf({ nodes }: Graph, ahead: readonly GraphEdge[]): readonly (readonly GraphNode[])[] {
  const into = groupsOf(ahead, ({ to }) => to);
  const out = groupsOf(ahead, ({ from }) => from);
  const waits = new Map(nodes.map(({ id }) => [id, into.get(id)?.length ?? 0]));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const rows: GraphNode[][] = [];
  /** Where in its row a node stands, from 0 to 1. */
  const at = new Map<string, number>();
  const nearness = ({ id }: GraphNode): number => {
    const from = (into.get(id) ?? []).map(({ from: before }) => at.get(before) ?? 0);
    return from.length === 0 ? 0.5 : from.reduce((sum, each) => sum + each, 0) / from.length;
  };
  let free = nodes.filter(({ id }) => waits.get(id) === 0);
  while (free.length > 0) {
    const row = free.toSorted((a, b) => nearness(a) - nearness(b));
    for (const [index, { id }] of row.entries()) at.set(id, (index + 0.5) / row.length);
    rows.push(row);
    free = [];
    for (const { to } of row.flatMap(({ id }) => out.get(id) ?? [])) {
      const left = (waits.get(to) ?? 0) - 1;
      waits.set(to, left);
      const node = byId.get(to);
      if (left === 0 && node !== undefined) free.push(node);
    }
  }
  return rows.flatMap((row) =>
    Array.from({ length: Math.ceil(row.length / ROW_MAX) }, (_, part) =>
      row.slice(part * ROW_MAX, (part + 1) * ROW_MAX),
    ),
  );
}

function placed(rows: readonly (readonly GraphNode[])[]): ReadonlyMap<string, Box> {
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
  return Math.max(widthOf(short(name)), widthOf(under(executor, group)), 8) * CHARACTER + MARGIN;
}

function under(executor: string, group: string | null): string {
  return group === null ? executor : `${executor} · ${short(group)}`;
}

function drawnNode({ node, x, y, width }: Box): readonly string[] {
  const { fill, line } = node.status === null ? { fill: '#ffffff', line: '#666666' } : COLOURS[node.status];
  const status = node.status === null ? '' : ` (${node.status})`;
  return [
    `<g><title>${escaped(node.id)}${status}</title>`,
    `<rect x="${x - width / 2}" y="${y}" width="${width}" height="${HEIGHT}" rx="6" fill="${fill}" stroke="${line}"/>`,
    `<text x="${x}" y="${y + 19}">${escaped(short(node.name))}</text>`,
    `<text class="dim" x="${x}" y="${y + 34}">${escaped(under(node.executor, node.group))}</text></g>`,
  ];
}

function drawnEdge(
  { from, to, kind, label }: GraphEdge,
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
  const text = isBack ? [right - 12, (a.y + b.y) / 2 + middle] : [(a.x + b.x) / 2, (top + bottom) / 2];
  return [
    `<path class="${kind}" d="${way}" marker-end="url(#tip)"/>`,
    ...(label === null
      ? []
      : [
          `<text class="dim on" x="${text[0]}" y="${text[1]}">${escaped(brief(label))}<title>${escaped(label)}</title></text>`,
        ]),
  ];
}

/** Of many outcomes the first; all of them are told to who points there. */
function brief(label: string): string {
  const [first = '', ...others] = label.split(SEPARATOR);
  return others.length > 1 ? `${short(first)} +${others.length}` : short(label);
}

function short(name: string): string {
  return name.length <= NAME_MAX ? name : `${name.slice(0, NAME_MAX - 1)}…`;
}

function escaped(text: string): string {
  return tame(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
