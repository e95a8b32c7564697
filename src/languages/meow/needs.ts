// Order of steps. Checks needs: each must name a step that exists or can exist, and no step may wait for itself.
// Answers which steps have finished before another, for references to outputs, and what a block sees of its callers:
// everything that its caller sees, and what is passed to it. With several callers, a name that any of them provides
// counts as present, so that only errors on every path are reported.

import { segmentMatcher } from '../../base/names.ts';
import type { Place } from '../../base/source.ts';
import { listed, type Report, suggest } from '../report.ts';
import { type Call, type Linked, push } from './link.ts';
import { knownBelow, type LinkedTargets, stepsBelow, stepsOfRound } from './linked-targets.ts';
import type { CallerScope, Openness } from './scope.ts';
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
function checkNeeds(block: BlockSyntax, links: LinkedTargets, around: (id: string) => Around): Order {
  const scope: NeedScope = { ...block, links, around, matches: new Map() };
  const graph: Graph = new Map(
    block.steps.map((step) => [step, step.needs.map((need) => ({ to: resolve(scope, step, need), need }))]),
  );
  for (const step of block.steps) checkNeedsOfExpand(scope, step);
  for (const cycle of findCycles(graph.keys(), (step) => edgesOf(graph, step))) reportCycle(block.report, cycle);
  return { isBefore: (id, step) => reaches(graph, step, id) };
}

/** A step that enters this block, a step beside such a step, or none. */
type Around = 'leads-here' | 'around' | 'nothing';

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
function checkNeedsOfExpand(scope: NeedScope, step: StepSyntax): void {
  const { report, links } = scope;
  const { executor, needs } = step;
  if (executor === 'spawn' || executor === 'kill') return;
  const waitsBelow = (text: string): boolean => needs.some((need) => need.text.startsWith(`${text}.`));
  for (const { text, place } of needs) {
    if (text.includes('.') || waitsBelow(text)) continue;
    // An expand waits for a workflow of another language.
    const isEarly = ({ targets }: StepSyntax): boolean =>
      targets.every((target) => links.of(target)?.kind !== 'foreign');
    const early = matchesOf(scope, [text]).find(
      (each) => each.executor === 'expand' && each !== step && isEarly(each) && !waitsBelow(each.id),
    );
    if (early === undefined) continue;
    const isPattern = text.includes('*');
    const what = isPattern ? `"${text}" matches the expand "${early.id}", which` : `"${text}"`;
    const message = `${what} is done as soon as its steps are inserted, so this does not wait for them`;
    const hint = `To wait for its steps, need "${text}.*"${isPattern ? ' as well' : ''}.`;
    report.warning('need-of-expand', place, message, hint);
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

/** A possible start of a run: variables given besides the declared ones, and whether others may call it. */
export interface Root {
  readonly block: BlockSyntax;
  readonly given: readonly string[];
  readonly openness: Openness;
}

export interface CallerScopes {
  readonly around: (block: BlockSyntax) => CallerScope;
  readonly orderOf: (block: BlockSyntax) => Order;
}

export function callerScopes(linked: Linked, roots: readonly Root[]): CallerScopes {
  const callsTo = groupBy(linked.calls, ({ to }) => to);
  const views = propagate(linked, roots);
  const orders = new Map<BlockSyntax, Order>();
  const orderOf = (block: BlockSyntax): Order => orders.get(block) ?? { isBefore: () => false };
  /** Steps with that id in calling blocks, the nearest on each path. */
  function* seenFrom(block: BlockSyntax, id: string): Generator<SeenStep> {
    // Iterating a set includes elements added meanwhile.
    const open = new Set([block]);
    for (const inner of open) {
      for (const call of callsTo.get(inner) ?? []) {
        // A condition after a round sees the steps of the round.
        const [inRound] =
          call.target.key === 'until' && id !== 'until' ? (stepsOfRound(linked, call.step, id) ?? []) : [];
        const step = inRound ?? call.from.byId.get(id);
        if (step === undefined) open.add(call.from);
        else yield { step, call, inRound: inRound !== undefined };
      }
    }
  }
  /** The innermost loop on each path to a block. */
  function* loopsAround(block: BlockSyntax): Generator<StepSyntax> {
    const open = new Set([block]);
    for (const inner of open) {
      for (const { from, step, target } of callsTo.get(inner) ?? []) {
        if (target.kind === 'round' || target.kind === 'check') yield step;
        else open.add(from);
      }
    }
  }
  for (const block of linked.blocks) {
    const around = (id: string): Around => {
      const [nearest] = seenFrom(block, id);
      return nearest === undefined ? 'nothing' : nearest.step === nearest.call.step ? 'leads-here' : 'around';
    };
    orders.set(block, checkNeeds(block, linked, around));
  }
  const isFinished = ({ step, call, inRound }: SeenStep): boolean =>
    inRound || step === call.step || orderOf(call.from).isBefore(step.id, call.step);
  return {
    orderOf,
    around: (block) => ({
      ...(views.get(block) ?? NOTHING),
      findStep: (id) => {
        const all = [...seenFrom(block, id)];
        const found = all.find(isFinished) ?? all[0];
        return found === undefined ? null : { step: found.step, isFinished: isFinished(found) };
      },
      findLoops: () => [...new Set(loopsAround(block))],
    }),
  };
}

/** A step, and the call through which it is visible. */
interface SeenStep {
  readonly step: StepSyntax;
  readonly call: Call;
  /** It is in the round that the call's condition follows. */
  readonly inRound: boolean;
}

type View = Omit<CallerScope, 'findStep' | 'findLoops'>;

const NOTHING: View = { names: new Set(), openness: 'closed' };

/** Propagates scopes to called blocks until nothing changes. */
function propagate(linked: Linked, roots: readonly Root[]): ReadonlyMap<BlockSyntax, View> {
  const views = new Map<BlockSyntax, { readonly names: Set<string>; openness: Openness }>();
  const callsFrom = groupBy(linked.calls, ({ from }) => from);
  const open = new Set<BlockSyntax>();
  const bring = (block: BlockSyntax, names: Iterable<string>, openness: Openness): void => {
    const view = views.get(block) ?? { names: new Set<string>(), openness: 'closed' };
    const before = view.names.size;
    for (const name of names) view.names.add(name);
    const isOpened = openness === 'called' && view.openness === 'closed';
    if (isOpened) view.openness = 'called';
    if (!views.has(block) || view.names.size > before || isOpened) open.add(block);
    views.set(block, view);
  };
  for (const { block, given, openness } of roots) bring(block, given, openness);
  // A reference with placeholders may not mean this block, unless the block is certainly entered too.
  const entered = new Set([
    ...roots.map(({ block }) => block),
    ...linked.calls.filter(({ isCertain }) => isCertain).map(({ to }) => to),
  ]);
  for (const block of open) {
    open.delete(block);
    const view = views.get(block) ?? NOTHING;
    const seen = [...view.names, ...block.variables.map(({ name }) => name)];
    for (const { to, target, isCertain } of callsFrom.get(block) ?? []) {
      const names = [...seen, ...target.brings, ...target.variables.map(({ key }) => key)];
      bring(to, names, !isCertain && !entered.has(to) ? 'called' : view.openness);
    }
  }
  return views;
}

export function groupBy<K, V>(values: readonly V[], keyOf: (value: V) => K): ReadonlyMap<K, readonly V[]> {
  const groups = new Map<K, V[]>();
  for (const value of values) push(groups, keyOf(value), value);
  return groups;
}
