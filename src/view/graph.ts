// A Program or a run as a graph of steps, needs and growth, printed as Mermaid, DOT or a listing. Nodes have generated
// names (`n0`); authors' text appears only in escaped labels.

import { sanitize } from '../base/sanitize.ts';
import type { Block, Program, Step } from '../ir/program.ts';
import { blocksOf, blocksOfTarget, type Target } from '../ir/transition.ts';
import type { FrameState, RunState, StepStatus } from '../kernel/state.ts';
import { resolveNeeds } from './needed.ts';
import { padTo, widthOf } from './row.ts';
import { shownSteps } from './cause.ts';
import { entrySteps, neededInBlock } from './entry-steps.ts';
import { routeWord, visitKind } from './visits.ts';

export interface Graph {
  readonly title: string;
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  /** Blocks of a Program, or steps that grew from one step of a run. */
  readonly groups: readonly { readonly id: string; readonly name: string }[];
}

/** `covered`, `missed`: by tests. */
export type NodeStatus = StepStatus | 'covered' | 'missed';

export interface GraphNode {
  readonly id: string;
  /** Its label: the id within its group. */
  readonly name: string;
  readonly executor: string;
  /** Null in a Program, unless its coverage is known. */
  readonly status: NodeStatus | null;
  /** Null: outermost. */
  readonly group: string | null;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  /** `need`: `to` waits for `from`. `grows`: `from` creates `to`. */
  readonly kind: 'need' | 'grows';
  /** The outcome that creates it; null if there is only one. */
  readonly label: string | null;
}

/** `isCovered`: whether tests reached a step; absent if that is not asked. */
export function programGraph(program: Program, isCovered?: (block: string, step: string) => boolean): Graph {
  const nodes: GraphNode[] = [];
  const edges: GraphEdge[] = [];
  const groups: string[] = [];
  const reached = new Set([program.entry]);
  for (const name of reached) {
    const block = program.blocks[name];
    if (block === undefined) continue;
    const inEntry = name === program.entry;
    const grouped = !inEntry && block.steps.length > 1;
    if (grouped) groups.push(name);
    for (const step of block.steps) {
      const id = idIn(program, block, step);
      const { executor } = step;
      const status = isCovered === undefined ? null : isCovered(name, step.id) ? 'covered' : 'missed';
      nodes.push({ id, name: grouped || inEntry ? step.id : id, executor, status, group: grouped ? name : null });
      for (const needed of neededInBlock(block, step)) {
        edges.push({ from: idIn(program, block, needed), to: id, kind: 'need', label: null });
      }
      for (const { target, label } of growthTargets(step)) {
        const next = program.blocks[target];
        if (next === undefined) continue;
        reached.add(target);
        for (const first of entrySteps(next)) {
          edges.push({ from: id, to: idIn(program, next, first), kind: 'grows', label });
        }
      }
    }
  }
  return {
    title: program.source.name,
    nodes,
    edges: uniqueEdges(edges),
    groups: groups.map((id) => ({ id, name: id })),
  };
}

export function runGraph(state: RunState): Graph {
  const nodes: GraphNode[] = [];
  const edges: GraphEdge[] = [];
  const groups = new Set<string>();
  for (const step of shownSteps(state)) {
    const { owner } = step.frame;
    const below = owner !== null && step.id.startsWith(`${owner}.`);
    if (owner !== null) groups.add(owner);
    nodes.push({
      id: step.id,
      name: below ? step.id.slice(owner.length + 1) : step.id,
      executor: step.definition.executor,
      status: step.status,
      group: owner,
    });
    for (const { steps, mayGrow } of resolveNeeds(state, step)) {
      for (const { id } of [...steps, ...mayGrow]) edges.push({ from: id, to: step.id, kind: 'need', label: null });
    }
  }
  for (const frame of [...state.frames.values()].filter(({ isInner }) => !isInner))
    for (const edge of growthEdges(state, frame)) edges.push(edge);
  const title = state.request === null ? state.program.source.name : `${state.request.id} ${state.program.source.name}`;
  return { title, nodes, edges: uniqueEdges(edges), groups: [...groups].map((id) => ({ id, name: id })) };
}

export function graphMermaid(graph: Graph): string {
  const names = nodeNames(graph);
  const draw = ({ id, name, executor, status }: GraphNode): string =>
    `${names.get(id)}["${mermaidText(name)}<br/>${mermaidText(executor)}"]${status === null ? '' : `:::${status}`}`;
  const begin = (name: string, index: number): string => `  subgraph g${index}["${mermaidText(name)}"]`;
  const lines = ['flowchart TD', ...groupLines(graph, draw, begin, '  end')];
  for (const { from, to, kind, label } of graph.edges) {
    const arrow = kind === 'need' ? '-->' : '-.->';
    const on = label === null ? '' : `|"${mermaidText(label)}"|`;
    lines.push(`  ${names.get(from)} ${arrow}${on} ${names.get(to)}`);
  }
  for (const status of new Set(graph.nodes.flatMap((node) => node.status ?? []))) {
    const { fill, line } = COLOURS[status];
    lines.push(`  classDef ${status} fill:${fill},stroke:${line},color:#111`);
  }
  return `${lines.join('\n')}\n`;
}

export function graphDot(graph: Graph): string {
  const names = nodeNames(graph);
  const draw = ({ id, name, executor, status }: GraphNode): string => {
    const filled = status === null ? '' : `, fillcolor="${COLOURS[status].fill}", color="${COLOURS[status].line}"`;
    return `${names.get(id)} [label=${dotText(`${name}\n${executor}`)}${filled}];`;
  };
  const begin = (name: string, index: number): string => `  subgraph cluster_${index} {\n    label=${dotText(name)};`;
  const lines = [
    'digraph {',
    `  label=${dotText(graph.title)}; labelloc=t; rankdir=TB; fontname="sans-serif";`,
    '  node [shape=box, style="rounded,filled", fillcolor="#ffffff", fontname="sans-serif"];',
    '  edge [fontname="sans-serif", fontsize=10];',
    ...groupLines(graph, draw, begin, '  }'),
  ];
  for (const { from, to, kind, label } of graph.edges) {
    const facts = [
      ...(kind === 'need' ? [] : ['style=dashed']),
      ...(label === null ? [] : [`label=${dotText(label)}`]),
    ];
    lines.push(`  ${names.get(from)} -> ${names.get(to)}${facts.length === 0 ? '' : ` [${facts.join(', ')}]`};`);
  }
  lines.push('}');
  return `${lines.join('\n')}\n`;
}

/** The nodes outside of groups, then those of each group between its first and its last line. */
function groupLines(
  { nodes, groups }: Graph,
  draw: (node: GraphNode) => string,
  begin: (name: string, index: number) => string,
  end: string,
): readonly string[] {
  const within = (group: string | null, indent: string): readonly string[] =>
    nodes.flatMap((node) => (node.group === group ? [`${indent}${draw(node)}`] : []));
  return [
    ...within(null, '  '),
    ...groups.flatMap(({ id, name }, index) => [begin(name, index), ...within(id, '    '), end]),
  ];
}

/** Lists each step after its needs, group by group. */
export function graphText(graph: Graph): string {
  const nameOf = new Map(graph.nodes.map(({ id, name, group }) => [id, { name, group }]));
  const into = groupsOf(graph.edges, ({ to }) => to);
  const out = groupsOf(graph.edges, ({ from }) => from);
  const lines = [sanitize(graph.title)];
  const refer = (id: string, from: GraphNode): string => {
    const known = nameOf.get(id);
    return sanitize(known === undefined || known.group !== from.group ? id : known.name);
  };
  const list = (group: string | null): void => {
    const nodes = graph.nodes.filter((node) => node.group === group);
    const widest = (column: (node: GraphNode) => string): number =>
      nodes.reduce((width, node) => Math.max(width, widthOf(sanitize(column(node)))), 0);
    const nameWidth = widest(({ name }) => name);
    const executorWidth = widest(({ executor }) => executor);
    const statusWidth = widest(({ status }) => status ?? '');
    for (const node of inOrder(nodes, graph.edges)) {
      const needs = (into.get(node.id) ?? []).filter(({ kind }) => kind === 'need');
      const after = needs.length === 0 ? '' : `after ${listNames(needs.map(({ from }) => refer(from, node)))}`;
      const columns = [
        padTo(sanitize(node.name), nameWidth),
        padTo(sanitize(node.executor), executorWidth),
        ...(statusWidth === 0 ? [] : [padTo(node.status ?? '', statusWidth)]),
        after,
      ];
      lines.push(`  ${columns.join('  ')}`.trimEnd());
      const grows = (out.get(node.id) ?? []).filter(({ kind }) => kind === 'grows');
      for (const [label, edges] of groupsOf(grows, (edge) => edge.label)) {
        const on = label === null ? '' : `${sanitize(label)}: `;
        lines.push(`    → ${on}${listNames(edges.map(({ to }) => refer(to, node)))}`);
      }
    }
  };
  list(null);
  for (const { id, name } of graph.groups) {
    lines.push('', sanitize(name));
    list(id);
  }
  return `${lines.join('\n')}\n`;
}

export const COLOURS: Readonly<Record<NodeStatus, { readonly fill: string; readonly line: string }>> = {
  pending: { fill: '#f2f2f2', line: '#999999' },
  running: { fill: '#cfe8ff', line: '#1f6feb' },
  completing: { fill: '#cfe8ff', line: '#1f6feb' },
  done: { fill: '#d3f5d3', line: '#2da44e' },
  failed: { fill: '#ffd6d6', line: '#cf222e' },
  skipped: { fill: '#ffffff', line: '#cccccc' },
  covered: { fill: '#d3f5d3', line: '#2da44e' },
  missed: { fill: '#ffd6d6', line: '#cf222e' },
};

const NAMED_MAX = 6;

function idIn(program: Program, block: Block, step: Step): string {
  if (block.name === program.entry) return step.id;
  const isAlone = block.steps.length === 1 && (block.name === step.id || visitKind(step) !== null);
  return isAlone ? block.name : `${block.name}/${step.id}`;
}

function growthTargets(step: Step): readonly { readonly target: string; readonly label: string | null }[] {
  const growth: { target: string; label: string | null }[] = [];
  for (const [route, follow] of Object.entries(step.routes)) {
    const label = route === 'done' ? null : routeWord(step, route);
    for (const target of blocksOf(follow)) growth.push({ target, label });
  }
  const grow = (label: string, to: { readonly kind: string; readonly target?: Target }): void => {
    if (to.target !== undefined) for (const target of blocksOfTarget(to.target)) growth.push({ target, label });
  };
  if (step.act.kind === 'each') grow('each', step.act);
  if (step.act.kind === 'loop') {
    grow('round', step.act);
    grow('check', step.act.check);
    grow('exhausted', step.act.exhausted);
  }
  grow('error', step.onError);
  return growth;
}

/** From the parent step, or from the previous frame of the lane. */
export function growthEdges(state: RunState, frame: FrameState): readonly GraphEdge[] {
  const before = frame.replaces ?? frame.caller;
  const from = before === null ? [frame.owner] : (state.frames.get(before)?.steps ?? []).map(({ id }) => id);
  const first = frame.steps.filter(
    (step) => step.definition.needs.length === 0 || resolveNeeds(state, step).every(({ steps }) => steps.length === 0),
  );
  const grown = frame.join === 'recover' ? 'error' : frame.round === undefined ? null : `round ${frame.round}`;
  const label = before === null ? grown : frame.replaces === null ? 'call' : null;
  return from.flatMap((id) =>
    id === null ? [] : first.map((step): GraphEdge => ({ from: id, to: step.id, kind: 'grows', label })),
  );
}

function uniqueEdges(edges: readonly GraphEdge[]): readonly GraphEdge[] {
  return [...new Map(edges.map((edge) => [JSON.stringify(edge), edge])).values()];
}

function nodeNames({ nodes }: Graph): ReadonlyMap<string, string> {
  return new Map(nodes.map(({ id }, index) => [id, `n${index}`]));
}

export function groupsOf<E, K>(edges: readonly E[], by: (edge: E) => K): ReadonlyMap<K, readonly E[]> {
  const found = new Map<K, E[]>();
  for (const edge of edges) {
    const list = found.get(by(edge)) ?? [];
    list.push(edge);
    found.set(by(edge), list);
  }
  return found;
}

/** Topological order; otherwise as written. Steps in a cycle come last. */
function inOrder(nodes: readonly GraphNode[], edges: readonly GraphEdge[]): readonly GraphNode[] {
  const here = new Set(nodes.map(({ id }) => id));
  const inside = edges.filter(({ kind, from, to }) => kind === 'need' && here.has(from) && here.has(to));
  return [...new Set([...layersOf(nodes, inside).flat(), ...nodes])];
}

/** Each node in the first layer below all its predecessors, without nodes in a cycle. */
function layersOf(
  nodes: readonly GraphNode[],
  edges: readonly Pick<GraphEdge, 'from' | 'to'>[],
): readonly (readonly GraphNode[])[] {
  const out = groupsOf(edges, ({ from }) => from);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const waits = new Map(nodes.map(({ id }) => [id, 0]));
  for (const { to } of edges) waits.set(to, (waits.get(to) ?? 0) + 1);
  const layers: (readonly GraphNode[])[] = [];
  let free = nodes.filter(({ id }) => waits.get(id) === 0);
  while (free.length > 0) {
    const layer = free;
    layers.push(layer);
    free = [];
    for (const { to } of layer.flatMap(({ id }) => out.get(id) ?? [])) {
      const left = (waits.get(to) ?? 0) - 1;
      waits.set(to, left);
      const node = byId.get(to);
      if (left === 0 && node !== undefined) free.push(node);
    }
  }
  return layers;
}

/** A group with more steps is folded. */
const GROUP_MAX = 40;

/**
 * In large groups, all steps with the same status are one node: `731 done`. Steps that failed or run stay, if they are few.
 * The id of such a node is that of its first step, so that it stands where that one would.
 */
export function foldGroups(graph: Graph): Graph {
  const large = [...groupsOf(graph.nodes, ({ group }) => group)].filter(
    ([group, nodes]) => group !== null && nodes.length > GROUP_MAX,
  );
  if (large.length === 0) return graph;
  /** The node that stands for a folded one. */
  const folded = new Map<string, GraphNode>();
  for (const [, nodes] of large) {
    for (const [status, same] of groupsOf(nodes, (node) => node.status)) {
      const [first] = same;
      const stay = status === 'failed' || status === 'running' || status === 'completing' ? STAY_MAX : 1;
      if (first === undefined || same.length <= stay) continue;
      const executors = [...new Set(same.map(({ executor }) => executor))];
      const count = `${same.length} ${status === null ? 'steps' : status}`;
      const node = { ...first, name: count, executor: executors.length === 1 ? first.executor : 'several kinds' };
      for (const { id } of same) folded.set(id, node);
    }
  }
  const idOf = (id: string): string => folded.get(id)?.id ?? id;
  return {
    ...graph,
    nodes: graph.nodes.flatMap((node) => {
      const standIn = folded.get(node.id) ?? node;
      return standIn.id === node.id ? [standIn] : [];
    }),
    edges: uniqueEdges(
      graph.edges.flatMap((edge) => {
        const [from, to] = [idOf(edge.from), idOf(edge.to)];
        // Between folded steps of one group an edge says nothing.
        if (from === to && edge.from !== edge.to) return [];
        const isFolded = from !== edge.from || to !== edge.to;
        return [{ ...edge, from, to, label: isFolded ? null : edge.label }];
      }),
    ),
  };
}

/** So many failed or running steps of a large group are shown one by one. */
const STAY_MAX = 8;

function listNames(names: readonly string[]): string {
  if (names.length <= NAMED_MAX) return names.join(', ');
  return `${names.slice(0, NAMED_MAX - 1).join(', ')} and ${names.length - NAMED_MAX + 1} more`;
}

function mermaidText(text: string): string {
  return sanitize(text).replaceAll(/[#"<>&`|[\](){}\\]/g, (character) => `#${character.charCodeAt(0)};`);
}

function dotText(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => sanitize(line).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('&', '&amp;'));
  return `"${lines.join('\\n')}"`;
}
