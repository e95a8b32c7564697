// Which steps wait for which: every need names something that exists or can come to exist, and nothing waits for
// itself. The order that results is asked for by whoever refers to another step's outputs.

import { segmentMatcher } from '../../base/segment-pattern.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import type { NeedSyntax, StepSyntax } from './syntax.ts';

export interface Order {
  /** Whether `id` has ended whenever `step` begins. */
  readonly isBefore: (id: string, step: StepSyntax) => boolean;
}

interface Edge {
  readonly to: StepSyntax;
  readonly need: NeedSyntax;
}

type Graph = ReadonlyMap<StepSyntax, readonly Edge[]>;

export function checkNeeds(report: Report, steps: readonly StepSyntax[]): Order {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const graph: Graph = new Map(
    steps.map((step) => [step, step.needs.flatMap((need) => resolve(report, byId, step, need))]),
  );
  for (const cycle of findCycles(graph)) reportCycle(report, cycle);
  return { isBefore: (id, step) => reaches(graph, step, id) };
}

/** The steps of this block that a need waits for; whatever is wrong with it is reported. */
function resolve(
  report: Report,
  byId: ReadonlyMap<string, StepSyntax>,
  step: StepSyntax,
  need: NeedSyntax,
): readonly Edge[] {
  const { text, place } = need;
  if (!/^[\w*-]+(?:\.[\w*-]+)*$/.test(text)) {
    const hint = 'A need is the id of a step, an id below one ("each.0.build"), or a pattern ("test-*").';
    report.error('invalid-need', place, `"${text}" cannot be needed`, hint);
    return [];
  }
  const [head = '', ...below] = text.split('.');
  const targets = head.includes('*') ? matching(byId, head, step) : [byId.get(head) ?? []].flat();
  const isPattern = text.includes('*');
  const met = below.length === 0 ? targets : targets.filter(({ canGrow }) => canGrow);
  if (met.length === 0 && isPattern) {
    const message = `no step matches "${text}", so it waits for nothing`;
    report.warning('empty-pattern', place, message, () => suggestOther(byId, step, head));
  } else if (targets.length === 0) {
    report.error('unknown-need', place, `there is no step "${head}"`, () => suggestOther(byId, step, head));
  } else if (met.length === 0) {
    const hint = `"${head}" brings no steps into being; need it itself: "${head}".`;
    report.error('unknown-need', place, `there is no step "${text}"`, hint);
  }
  if (!isPattern && met.includes(step)) {
    report.error('self-need', place, 'a step cannot need itself', 'Remove it.');
  }
  return met.filter((to) => to !== step).map((to) => ({ to, need }));
}

/** A step cannot need itself, so it is not what was meant. */
function suggestOther(byId: ReadonlyMap<string, StepSyntax>, step: StepSyntax, wanted: string): string {
  const others = [...byId.keys()].filter((id) => id !== step.id);
  const there = others.length === 0 ? 'There is no other step here.' : `Other steps here are ${listed(others)}.`;
  return suggest(wanted, others, there);
}

/** A pattern never means the step that it is written in. */
function matching(byId: ReadonlyMap<string, StepSyntax>, pattern: string, self: StepSyntax): readonly StepSyntax[] {
  const fits = segmentMatcher(pattern);
  return [...byId.values()].filter((step) => step !== self && fits(step.id));
}

function reaches(graph: Graph, from: StepSyntax, id: string): boolean {
  const seen = new Set<StepSyntax>([from]);
  const open = [from];
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    for (const { to } of graph.get(step) ?? []) {
      if (to.id === id) return true;
      if (seen.has(to)) continue;
      seen.add(to);
      open.push(to);
    }
  }
  return false;
}

/** One cycle for each knot of steps that wait for one another: curing it either frees the knot or shows the next. */
function findCycles(graph: Graph): readonly (readonly Edge[])[] {
  const cycles: Edge[][] = [];
  const done = new Set<StepSyntax>();
  const depthOf = new Map<StepSyntax, number>();
  for (const start of graph.keys()) {
    // Depth first without recursion: a chain of steps may be as long as the file.
    const path: { readonly step: StepSyntax; readonly edges: readonly Edge[]; next: number }[] = [];
    const enter = (step: StepSyntax): void => {
      depthOf.set(step, path.length);
      path.push({ step, edges: graph.get(step) ?? [], next: 0 });
    };
    if (!done.has(start)) enter(start);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const edge = top.edges[top.next++];
      if (edge === undefined) {
        done.add(top.step);
        depthOf.delete(top.step);
        path.pop();
      } else if (!done.has(edge.to)) {
        const depth = depthOf.get(edge.to);
        if (depth === undefined) enter(edge.to);
        else cycles.push(path.slice(depth).map(({ edges, next }) => edges[next - 1] ?? edge));
      }
    }
  }
  return cycles;
}

function reportCycle(report: Report, cycle: readonly Edge[]): void {
  const last = cycle.at(-1);
  if (last === undefined) return;
  const names = [last.to.id, ...cycle.map(({ to }) => to.id)];
  const shown = names.length > 12 ? [...names.slice(0, 6), '…', ...names.slice(-5)] : names;
  const related = cycle
    .slice(0, -1)
    .map(({ to, need }) => ({ message: `which waits for "${to.id}"`, place: need.place }));
  const hint = 'Remove one of these needs, so that one of the steps can begin.';
  report.error(
    'need-cycle',
    last.need.place,
    `steps wait for one another: ${shown.join(' → ')}`,
    hint,
    related.slice(0, 10),
  );
}
