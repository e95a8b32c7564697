// Checks needs: each must name a step that exists or can exist, and no step may wait for itself. Also answers which
// steps have finished before another, for references to outputs.

import { segmentMatcher } from '../../base/segment-pattern.ts';
import type { Place } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { findCycles } from './cycles.ts';
import type { LinkedTargets } from './linked-targets.ts';
import { knownBelow, stepsBelow } from './linked-targets.ts';
import type { BlockSyntax, NeedSyntax, StepSyntax } from './syntax.ts';
import { isPlaceholder } from './syntax.ts';

export interface Order {
  /** Whether `id` has always finished before `step` starts. */
  readonly isBefore: (id: string, step: StepSyntax) => boolean;
}

interface Edge {
  readonly to: StepSyntax;
  readonly need: NeedSyntax;
}

type Graph = ReadonlyMap<StepSyntax, readonly Edge[]>;

/** `around`: the role of a step with that id outside of this block. */
export function checkNeeds(
  { report, steps }: BlockSyntax,
  links: LinkedTargets,
  around: (id: string) => Around,
): Order {
  const block: Block = { report, links, around, byId: new Map(steps.map((step) => [step.id, step])) };
  const graph: Graph = new Map(steps.map((step) => [step, step.needs.flatMap((need) => resolve(block, step, need))]));
  for (const cycle of findCycles(graph.keys(), (step) => graph.get(step) ?? [])) reportCycle(report, cycle);
  return { isBefore: (id, step) => reaches(graph, step, id) };
}

/** A step that enters this block, a step beside such a step, or none. */
export type Around = 'leads-here' | 'around' | 'nothing';

interface Block {
  readonly report: Report;
  readonly links: LinkedTargets;
  readonly around: (id: string) => Around;
  readonly byId: ReadonlyMap<string, StepSyntax>;
}

/** Steps of this block that a need waits for; errors are reported. */
function resolve(block: Block, step: StepSyntax, need: NeedSyntax): readonly Edge[] {
  const { report, byId } = block;
  const { text, place } = need;
  if (!/^[\w*-]+(?:\.[\w*-]+)*$/.test(text)) {
    const hint = 'A need is the id of a step, an id below one ("each.0.build"), or a pattern ("test-*").';
    report.error('invalid-need', place, `"${text}" cannot be needed`, hint);
    return [];
  }
  const [head = '', ...below] = text.split('.');
  const targets = head.includes('*') ? matching(byId, head, step) : [byId.get(head) ?? []].flat();
  const isPattern = text.includes('*');
  const met = below.length === 0 ? targets : targets.filter((target) => canBring(block, target, below));
  const [growing] = targets.filter(({ canGrow }) => canGrow);
  if (met.length === 0 && isPattern) {
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
  return met.filter((to) => to !== step).map((to) => ({ to, need }));
}

function canBring({ links }: Block, step: StepSyntax, below: readonly string[]): boolean {
  return step.canGrow && stepsBelow(links, step, below)?.length !== 0;
}

function unknownNeed({ report, around, byId }: Block, step: StepSyntax, wanted: string, place: Place): void {
  switch (around(wanted)) {
    case 'nothing':
      return report.error('unknown-need', place, `there is no step "${wanted}"`, () =>
        suggestOther(byId, step, wanted),
      );
    case 'leads-here':
      return report.error(
        'unknown-need',
        place,
        `"${wanted}" is the step that leads here, and need not be waited for`,
        'Remove it.',
      );
    case 'around': {
      const message = `"${wanted}" is a step of another workflow, around this one, and cannot be needed from here`;
      return report.error('unknown-need', place, message, `The step that enters this workflow must need "${wanted}".`);
    }
  }
}

/** A step cannot need itself, so it is not suggested. */
function suggestOther(byId: ReadonlyMap<string, StepSyntax>, step: StepSyntax, wanted: string): string {
  const others = [...byId.keys()].filter((id) => id !== step.id && !isPlaceholder(id));
  const there = others.length === 0 ? 'There is no other step here.' : `Other steps here: ${listed(others)}.`;
  return suggest(wanted, others, there);
}

/** A pattern never matches its own step. */
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
