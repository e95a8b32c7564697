// A graph as SVG. `layout.ts` says where everything is.

import { sanitize } from '../base/sanitize.ts';
import { COLOURS, foldGroups, type Graph, type GraphEdge, type GraphNode, groupsOf } from './graph.ts';
import { type Box, layOut, type Point, type Route } from './layout.ts';
import { cut, widthOf } from './row.ts';

export function graphSvg(graph: Graph): string {
  const { title, nodes, edges } = foldGroups(graph);
  const sizes = nodes.map((node) => ({ id: node.id, width: boxWidth(node), height: HEIGHT }));
  const layout = layOut(sizes, bundleEdges(edges));
  const width = Math.max(layout.width, widthOf(title) * CHARACTER) + 2 * MARGIN;
  const height = layout.height + TOP + MARGIN;
  const drawn = new Set<string>();
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    `<style>${STYLE}</style>`,
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
    '<path d="M0 0L8 4L0 8z" fill="#666666"/></marker></defs>',
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text class="title" x="${MARGIN}" y="${MARGIN}">${escapeXml(title)}</text>`,
    `<g transform="translate(${MARGIN} ${TOP})">`,
    ...layout.routes.flatMap((route) => lineSvg(route, drawn)),
    ...layout.routes.flatMap(({ edge, label }) => (label === null ? [] : [labelSvg(edge.labels, label)])),
    ...nodes.flatMap((node) => nodeSvg(node, layout.boxes.get(node.id))),
    '</g>',
    '</svg>',
  ];
  return `${lines.join('\n')}\n`;
}

/** Edges between the same two steps with different outcomes are one line. */
interface Bundle extends Pick<GraphEdge, 'from' | 'to' | 'kind'> {
  readonly labels: readonly string[];
  readonly label: { readonly width: number; readonly height: number } | null;
}

function bundleEdges(edges: readonly GraphEdge[]): readonly Bundle[] {
  const between = groupsOf(edges, ({ from, to, kind }) => JSON.stringify([from, to, kind]));
  return [...between.values()].flatMap((same) => {
    const labels = same.flatMap(({ label }) => label ?? []);
    const width = widthOf(labelText(labels)) * SMALL_CHARACTER;
    const label = labels.length === 0 ? null : { width, height: LABEL_HEIGHT };
    return same.slice(0, 1).map(({ from, to, kind }) => ({ from, to, kind, labels, label }));
  });
}

const MARGIN = 24;
/** Where the steps begin, below the title. */
const TOP = 2 * MARGIN;
const HEIGHT = 44;
const CHARACTER = 7.5;
const SMALL_CHARACTER = 6.2;
const LABEL_HEIGHT = 12;
const NAME_MAX = 40;

const STYLE =
  'text{font:12px ui-monospace,monospace;text-anchor:middle;fill:#111111}.title{font-weight:bold;text-anchor:start}' +
  '.dim{fill:#666666;font-size:10px}.on{paint-order:stroke;stroke:#ffffff;stroke-width:4px}.need,.grows{fill:none;stroke:#666666}.grows{stroke-dasharray:4 3}';

function boxWidth({ name, executor, group }: GraphNode): number {
  return Math.ceil(Math.max(widthOf(short(name)), widthOf(subtitle(executor, group)), 8) * CHARACTER + MARGIN);
}

function subtitle(executor: string, group: string | null): string {
  return group === null ? executor : `${executor} · ${short(group)}`;
}

function nodeSvg(node: GraphNode, box: Box | undefined): readonly string[] {
  if (box === undefined) return [];
  const { x, y, width, height } = box;
  const { fill, line } = node.status === null ? { fill: '#ffffff', line: '#666666' } : COLOURS[node.status];
  const status = node.status === null ? '' : ` (${node.status})`;
  return [
    `<g><title>${escapeXml(node.id)}${status}</title>`,
    `<rect x="${x - width / 2}" y="${y}" width="${width}" height="${height}" rx="6" fill="${fill}" stroke="${line}"/>`,
    `<text x="${x}" y="${y + 19}">${escapeXml(short(node.name))}</text>`,
    `<text class="dim" x="${x}" y="${y + 34}">${escapeXml(subtitle(node.executor, node.group))}</text></g>`,
  ];
}

/** Routes that share a part draw it once. */
function lineSvg({ edge, points, isSelfLoop }: Route<Bundle>, drawn: Set<string>): readonly string[] {
  const parts = isSelfLoop ? [loopPath(points)] : partsOf(points);
  const paths: string[] = [];
  let continues = false;
  for (const { from, path } of parts) {
    const key = `${edge.kind} ${from} ${path}`;
    const isNew = !drawn.has(key);
    drawn.add(key);
    if (isNew) paths.push(continues ? `${paths.pop() ?? ''}${path}` : `M${from}${path}`);
    continues = isNew;
  }
  return paths.map((path, index) => {
    const tip = index === paths.length - 1 ? ' marker-end="url(#tip)"' : '';
    return `<path class="${edge.kind}" d="${path}"${tip}/>`;
  });
}

interface Part {
  readonly from: string;
  readonly path: string;
}

/** Straight and curved in turn; straight parts of no length are left out. */
function partsOf(points: readonly Point[]): readonly Part[] {
  return points.slice(1).flatMap((to, index) => {
    const from = points[index];
    if (from === undefined || (from.x === to.x && from.y === to.y)) return [];
    const middle = (from.y + to.y) / 2;
    const isStraight = index % 2 === 0 || from.x === to.x;
    const path = isStraight ? `L${at(to)}` : `C${from.x} ${middle} ${to.x} ${middle} ${at(to)}`;
    return [{ from: at(from), path }];
  });
}

function loopPath([from, turn, to]: readonly Point[]): Part {
  if (from === undefined || turn === undefined || to === undefined) return { from: '', path: '' };
  // A cubic curve reaches three quarters of the way to its control points.
  const reach = from.x + (turn.x - from.x) / 0.75;
  return { from: at(from), path: `C${reach} ${from.y} ${reach} ${to.y} ${at(to)}` };
}

function at({ x, y }: Point): string {
  return `${x} ${y}`;
}

/** Shows the first of many outcomes; a tooltip lists all. */
function labelSvg(labels: readonly string[], { x, y, height }: Box): string {
  const all = escapeXml(labels.join(', '));
  return `<text class="dim on" x="${x}" y="${y + height - 3}">${escapeXml(labelText(labels))}<title>${all}</title></text>`;
}

function labelText(labels: readonly string[]): string {
  const [first = '', ...others] = labels;
  return others.length > 1 ? `${short(first)} +${others.length}` : short(labels.join(', '));
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
