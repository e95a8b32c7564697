// Checks needs: each must name a step that exists or can exist, and no step may wait for itself. Also answers which
// steps have finished before another, for references to outputs.

import { segmentMatcher } from '../../base/names.ts';
import type { Place } from '../../base/source.ts';
import { listed, type Report, suggest } from '../report.ts';
import { knownBelow, type LinkedTargets, stepsBelow } from './linked-targets.ts';
import { type BlockSyntax, isPlaceholder, type NeedSyntax, type StepSyntax } from './syntax.ts';

export interface Order {
  /** Whether `id` has always finished before `step` starts. */
  readonly isBefore: (id: string, step: StepSyntax) => boolean;
}

interface Edge {
  readonly to: StepSyntax;
  readonly need: NeedSyntax;
}

/** The steps that a need waits for, perhaps with the step that has it. Equal patterns share the list. */
interface Edges {
  readonly to: readonly StepSyntax[];
  readonly need: NeedSyntax;
}

type Graph = ReadonlyMap<StepSyntax, readonly Edges[]>;

/** `around`: the role of a step with that id outside of this block. */
export function checkNeeds(block: BlockSyntax, links: LinkedTargets, around: (id: string) => Around): Order {
  const scope: NeedScope = { ...block, links, around, matches: new Map() };
  const graph: Graph = new Map(
    block.steps.map((step) => [step, step.needs.map((need) => ({ to: resolve(scope, step, need), need }))]),
  );
  for (const step of block.steps) checkNeedsOfExpand(scope, step);
  for (const cycle of findCycles(graph.keys(), (step) => edgesOf(graph, step))) reportCycle(block.report, cycle);
  return { isBefore: (id, step) => reaches(graph, step, id) };
}

/** A step that enters this block, a step beside such a step, or none. */
export type Around = 'leads-here' | 'around' | 'nothing';

interface NeedScope extends BlockSyntax {
  readonly links: LinkedTargets;
  readonly around: (id: string) => Around;
  /** Steps that needs name, by their text. */
  readonly matches: Map<string, readonly StepSyntax[]>;
}

/** Steps of this block that a need waits for, and perhaps the step itself; errors are reported. */
function resolve(block: NeedScope, step: StepSyntax, { text, place }: NeedSyntax): readonly StepSyntax[] {
  const { report, byId } = block;
  if (!/^[\w*-]+(?:\.[\w*-]+)*$/.test(text)) {
    const hint = 'A need is the id of a step, an id below one ("each.0.build"), or a pattern ("test-*").';
    report.error('invalid-need', place, `"${text}" cannot be needed`, hint);
    return [];
  }
  const [head = '', ...below] = text.split('.');
  const [targets, met] = [matchesOf(block, [head]), matchesOf(block, [head, ...below])];
  const isPattern = text.includes('*');
  const growing = targets.find((target) => target.canGrow && (target !== step || !isPattern));
  // A pattern never matches its own step.
  if (isPattern && met.every((target) => target === step)) {
    const message = `no step matches "${text}", so it waits for nothing`;
    report.warning('empty-pattern', place, message, () =>
      growing === undefined ? suggestOther(byId, step, head) : knownBelow(block.links, growing, text),
    );
  } else if (targets.length === 0) unknownNeed(block, step, head, place);
  else if (met.length === 0) {
    report.error('unknown-need', place, `there is no step "${text}"`, () =>
      growing === undefined
        ? `"${head}" brings no steps into being; need it itself: "${head}".`
        : knownBelow(block.links, growing, text),
    );
  }
  if (!isPattern && met.includes(step)) {
    report.error('self-need', place, 'a step cannot need itself', 'Remove it.');
  }
  return met;
}

/** Steps of this block that a need names, if the steps that it names below them can exist. */
function matchesOf(
  { byId, steps, links, matches }: NeedScope,
  [head = '', ...below]: readonly string[],
): readonly StepSyntax[] {
  const text = [head, ...below].join('.');
  const known = matches.get(text);
  if (known !== undefined) return known;
  const fits = segmentMatcher(head);
  const named = head.includes('*') ? steps.filter(({ id }) => fits(id)) : [byId.get(head) ?? []].flat();
  const canBring = (step: StepSyntax): boolean => step.canGrow && stepsBelow(links, step, below)?.length !== 0;
  const found = below.length === 0 ? named : named.filter(canBring);
  matches.set(text, found);
  return found;
}

function* edgesOf(graph: Graph, step: StepSyntax): Generator<Edge> {
  for (const { to: targets, need } of graph.get(step) ?? [])
    for (const to of targets) if (to !== step) yield { to, need };
}

/** Such a need is met when the steps are inserted; `lowerNeeds` makes spawn and kill wait for them too. */
function checkNeedsOfExpand({ report, byId, links }: NeedScope, { executor, needs }: StepSyntax): void {
  if (executor === 'spawn' || executor === 'kill') return;
  for (const { text, place } of needs) {
    const needed = byId.get(text);
    // An expand waits for a workflow of another language.
    const waits = needed?.targets.some((target) => links.of(target)?.kind === 'foreign') ?? true;
    if (needed?.executor !== 'expand' || waits || needs.some((need) => need.text.startsWith(`${text}.`))) continue;
    const message = `"${text}" is done as soon as its steps are inserted, so this does not wait for them`;
    report.warning('need-of-expand', place, message, `To wait for its steps, need "${text}.*".`);
  }
}

function unknownNeed({ report, around, byId }: NeedScope, step: StepSyntax, wanted: string, place: Place): void {
  const role = around(wanted);
  if (role === 'nothing') {
    const message = `there is no step "${wanted}"`;
    report.error('unknown-need', place, message, () => suggestOther(byId, step, wanted));
  } else if (role === 'leads-here') {
    const message = `"${wanted}" is the step that leads here, and need not be waited for`;
    report.error('unknown-need', place, message, 'Remove it.');
  } else {
    const message = `"${wanted}" is a step of another workflow, around this one, and cannot be needed from here`;
    report.error('unknown-need', place, message, `The step that enters this workflow must need "${wanted}".`);
  }
}

/** A step cannot need itself, so it is not suggested. */
function suggestOther(byId: ReadonlyMap<string, StepSyntax>, step: StepSyntax, wanted: string): string {
  const others = [...byId.keys()].filter((id) => id !== step.id && !isPlaceholder(id));
  const there = others.length === 0 ? 'There is no other step here.' : `Other steps here: ${listed(others)}.`;
  return suggest(wanted, others, there);
}

function reaches(graph: Graph, from: StepSyntax, id: string): boolean {
  // Iterating a set includes elements added meanwhile.
  const open = new Set([from]);
  const seen = new Set<readonly StepSyntax[]>();
  for (const step of open) {
    for (const { to: targets } of graph.get(step) ?? []) {
      if (seen.has(targets)) continue;
      seen.add(targets);
      for (const to of targets) {
        if (to.id === id && to !== step) return true;
        open.add(to);
      }
    }
  }
  return false;
}

function reportCycle(report: Report, cycle: readonly Edge[]): void {
  const last = cycle.at(-1);
  if (last === undefined) return;
  const names = [last.to.id, ...cycle.map(({ to }) => to.id)];
  const others = cycle.slice(0, -1).slice(0, 10);
  const related = others.map(({ to, need }) => ({ message: `which waits for "${to.id}"`, place: need.place }));
  const hint = 'Remove one of these needs, so that one of the steps can begin.';
  report.error('need-cycle', last.need.place, `steps wait for one another: ${showCycle(names)}`, hint, related);
}

/** `a → b → a`; a long cycle is cut. */
export function showCycle(names: readonly string[]): string {
  return (names.length > 12 ? [...names.slice(0, 6), '…', ...names.slice(-5)] : names).join(' → ');
}

/**
 * One cycle per strongly connected part: fixing it either resolves the part or shows the next cycle. In linear time
 * (Gabow), since a pattern may connect every step with every other.
 */
export function findCycles<Node, Edge extends { readonly to: Node }>(
  nodes: Iterable<Node>,
  edgesOf: (node: Node) => Iterable<Edge>,
): readonly (readonly Edge[])[] {
  const cycles: (readonly Edge[])[] = [];
  // Depth first without recursion: a chain may be as long as the file.
  const path: { readonly node: Node; readonly edges: Iterator<Edge>; last: Edge | null }[] = [];
  const depthOf = new Map<Node, number>();
  // Visited nodes whose part is not complete, and their indexes.
  const open: Node[] = [];
  const indexOf = new Map<Node, number>();
  const done = new Set<Node>();
  // Parts found so far along the path: the index of their first node, and a cycle in them.
  const parts: { readonly first: number; cycle: readonly Edge[] | null }[] = [];
  const enter = (node: Node): void => {
    depthOf.set(node, path.length);
    indexOf.set(node, open.length);
    parts.push({ first: open.length, cycle: null });
    path.push({ node, edges: edgesOf(node)[Symbol.iterator](), last: null });
    open.push(node);
  };
  /** An edge leads to an open node: every part behind that node belongs to its part. */
  const join = (to: Node): void => {
    const index = indexOf.get(to) ?? 0;
    let cycle: readonly Edge[] | null = null;
    while ((parts.at(-1)?.first ?? 0) > index) cycle = parts.pop()?.cycle ?? cycle;
    const part = parts.at(-1);
    const depth = depthOf.get(to);
    if (part === undefined || part.cycle !== null) return;
    part.cycle = cycle ?? (depth === undefined ? null : path.slice(depth).flatMap(({ last }) => last ?? []));
  };
  const leave = (node: Node): void => {
    path.pop();
    depthOf.delete(node);
    const part = parts.at(-1);
    if (part === undefined || part.first !== indexOf.get(node)) return;
    parts.pop();
    if (part.cycle !== null) cycles.push(part.cycle);
    for (const complete of open.splice(part.first)) done.add(complete);
  };
  for (const start of nodes) {
    if (!indexOf.has(start)) enter(start);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const next = top.edges.next();
      top.last = next.done === true ? null : next.value;
      if (top.last === null) leave(top.node);
      else if (indexOf.has(top.last.to)) {
        if (!done.has(top.last.to)) join(top.last.to);
      } else enter(top.last.to);
    }
  }
  return cycles;
}
