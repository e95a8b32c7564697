// The steps of a run as rows for people who look for what matters. All steps that grew from one step are a group below its
// row. In an open group failed steps come first, then those that wait or run, then the rest; a large group has a row for the
// steps of each kind: `731 done`. Data only: the page draws as many rows as fit.

import type { RunState, StepState } from '../kernel/state.ts';
import { shownSteps } from './cause.ts';
import { type ShownStepStatus, shownStepStatus } from './shown-status.ts';

export type RunRow = StepGroupRow | SectionRow;

export interface StepGroupRow {
  readonly kind: 'step';
  readonly step: StepState;
  readonly status: ShownStepStatus;
  /** The id without that of the step it grew from. */
  readonly name: string;
  readonly depth: number;
  /** Of all steps that grew from it; null if it is no group. */
  readonly counts: StatusCounts | null;
  readonly isOpen: boolean;
}

/** Steps of a large group that have the same kind of status. */
export interface SectionRow {
  readonly kind: 'section';
  readonly group: string;
  readonly section: Section;
  readonly steps: readonly StepState[];
  readonly depth: number;
  readonly isOpen: boolean;
}

export const SECTIONS = ['failed', 'under way', 'done', 'pending', 'skipped'] as const;
export type Section = (typeof SECTIONS)[number];

/** In the order in which they are always shown. */
export const STATUS_ORDER = ['done', 'running', 'waiting', 'failed', 'parked', 'pending', 'skipped'] as const;

export type StatusCounts = Readonly<Partial<Record<ShownStepStatus, number>>>;

/** `1,999 done 1 failed`. */
export function countsText(counts: StatusCounts): string {
  return STATUS_ORDER.flatMap((status) => {
    const count = counts[status] ?? 0;
    return count === 0 ? [] : [`${count.toLocaleString('en-US')} ${status}`];
  }).join(' ');
}

export interface RowChoice {
  /** Groups by step id, and sections by `sectionKey`: whether a person has opened or closed them. */
  readonly opened: ReadonlyMap<string, boolean>;
  /** The step that is chosen: what contains it is open unless it was closed. Null if none is. */
  readonly step: string | null;
  /** Only what failed, runs or waits, and what it grew from. */
  readonly onlyActive: boolean;
}

/** Groups with more steps have sections. */
export const GROUP_MAX = 40;

export function runRows(state: RunState, choice: RowChoice): readonly RunRow[] {
  const roots = stepTree(state);
  const rows: RunRow[] = [];
  const above = new Set(choice.step === null ? [] : keysAbove(state, choice.step));
  const isOpened = (key: string, atFirst: boolean): boolean => choice.opened.get(key) ?? (above.has(key) || atFirst);
  const addAll = (nodes: readonly StepNode[], depth: number, prefix: string): void => {
    for (const node of nodes) {
      if (choice.onlyActive && !isActive(node)) continue;
      const { step, status, children } = node;
      const isOpen = children.length > 0 && isOpened(step.id, false);
      const name = step.id.startsWith(prefix) ? step.id.slice(prefix.length) : step.id;
      rows.push({ kind: 'step', step, status, name, depth, counts: children.length > 0 ? node.counts : null, isOpen });
      if (isOpen) addGroup(node, depth + 1);
    }
  };
  const addGroup = ({ step, children }: StepNode, depth: number): void => {
    const prefix = `${step.id}.`;
    if (children.length <= GROUP_MAX) return addAll(byNeed(children), depth, prefix);
    for (const section of SECTIONS) {
      const nodes = byNeed(children.filter(({ status }) => SECTION_OF[status] === section));
      if (nodes.length === 0 || (choice.onlyActive && !isUrgent(section))) continue;
      const isOpen = isOpened(sectionKey(step.id, section), isUrgent(section));
      rows.push({ kind: 'section', group: step.id, section, steps: nodes.map((node) => node.step), depth, isOpen });
      if (isOpen) addAll(nodes, depth + 1, prefix);
    }
  };
  addAll(roots.length > GROUP_MAX ? byNeed(roots) : roots, 0, '');
  return rows;
}

export function sectionKey(group: string, section: Section): string {
  // A step id contains no blank.
  return `${group} ${section}`;
}

/** What must be open for the row of a step to be there. */
export function keysAbove(state: RunState, id: string): readonly string[] {
  const keys: string[] = [];
  for (let step = state.steps.get(id); step !== undefined && step.frame.owner !== null; ) {
    const { owner } = step.frame;
    keys.push(owner, sectionKey(owner, SECTION_OF[shownStepStatus(state, step)]));
    step = state.steps.get(owner);
  }
  return keys;
}

/** A step with all steps that grew from it. */
export interface StepNode {
  readonly step: StepState;
  readonly status: ShownStepStatus;
  readonly children: StepNode[];
  /** Of all steps below. */
  readonly counts: Partial<Record<ShownStepStatus, number>>;
}

/** The outermost steps. */
export function stepTree(state: RunState): readonly StepNode[] {
  const nodes = new Map<string, StepNode>();
  const roots: StepNode[] = [];
  // A step comes after the one that it grew from.
  for (const step of shownSteps(state)) {
    const status = shownStepStatus(state, step);
    const node: StepNode = { step, status, children: [], counts: {} };
    nodes.set(step.id, node);
    const parent = step.frame.owner === null ? undefined : nodes.get(step.frame.owner);
    if (parent === undefined) roots.push(node);
    else parent.children.push(node);
    for (let above = parent; above !== undefined; above = nodes.get(above.step.frame.owner ?? '')) {
      above.counts[status] = (above.counts[status] ?? 0) + 1;
    }
  }
  return roots;
}

const SECTION_OF: Readonly<Record<ShownStepStatus, Section>> = {
  failed: 'failed',
  waiting: 'under way',
  running: 'under way',
  parked: 'under way',
  done: 'done',
  pending: 'pending',
  skipped: 'skipped',
};

function isUrgent(section: Section): boolean {
  return section === 'failed' || section === 'under way';
}

/** Whether it, or something that grew from it, has failed, runs or waits. */
export function isActive({ status, counts }: StepNode): boolean {
  return (
    isUrgent(SECTION_OF[status]) || STATUS_ORDER.some((each) => isUrgent(SECTION_OF[each]) && (counts[each] ?? 0) > 0)
  );
}

const RANKS: Readonly<Partial<Record<ShownStepStatus, number>>> = { failed: 0, waiting: 1, running: 2, parked: 3 };

/** Otherwise in their order in the run. */
function byNeed(nodes: readonly StepNode[]): readonly StepNode[] {
  return nodes.toSorted((a, b) => (RANKS[a.status] ?? 4) - (RANKS[b.status] ?? 4));
}
