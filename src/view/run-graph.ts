// The steps of a run as a graph that people can read, however large the run is. All steps that grew from one step are one node
// with their counts. Data only: layout.ts says where everything is.
//
//   run-graph/1  A group is closed unless a person opened it, or chose a step in it.
//   run-graph/2  Of an open group with more than GROUP_MAX steps only those are nodes that failed, run or wait, and those of the
//                iteration that contains the chosen step. The counts and dots of the group stand for all others.
//   run-graph/3  Of more than ROOTS_MAX outermost steps, those that have the same status and are not under way are one node.

import type { FrameState, RunState, StepState } from '../kernel/state.ts';
import { growthEdges } from './graph.ts';
import { resolveNeeds } from './needed.ts';
import { GROUP_MAX, isActive, keysAbove, type StatusCounts, type StepNode, stepTree } from './run-rows.ts';
import type { ShownStepStatus } from './shown-status.ts';

export interface RunGraph {
  readonly nodes: readonly RunGraphNode[];
  readonly edges: readonly RunGraphEdge[];
}

export type RunGraphNode = StepGraphNode | RestNode;

export interface StepGraphNode {
  readonly kind: 'step';
  readonly id: string;
  readonly step: StepState;
  readonly status: ShownStepStatus;
  /** The id without that of the step it grew from, if that is shown. */
  readonly name: string;
  /** Null if it is no group. */
  readonly group: {
    readonly isOpen: boolean;
    readonly counts: StatusCounts;
    /** One for each of the steps that grew from it directly: at most DOTS_MAX, which then stand for several. */
    readonly dots: readonly ShownStepStatus[];
  } | null;
}

/** Outermost steps that are not shown one by one. */
export interface RestNode {
  readonly kind: 'rest';
  readonly id: string;
  readonly status: ShownStepStatus;
  readonly count: number;
}

export interface RunGraphEdge {
  readonly from: string;
  readonly to: string;
  readonly kind: 'need' | 'grows';
  readonly label: string | null;
}

export interface GraphChoice {
  /** Groups by step id: whether a person has opened or closed them. */
  readonly opened: ReadonlyMap<string, boolean>;
  /** The chosen step; null if none is. */
  readonly step: string | null;
  /** Only what failed, runs or waits, and what it grew from. */
  readonly onlyActive: boolean;
}

const ROOTS_MAX = 120;
const DOTS_MAX = 252;

export function runStepGraph(state: RunState, choice: GraphChoice): RunGraph {
  const above = new Set(choice.step === null ? [] : keysAbove(state, choice.step));
  const chosenFrame = state.steps.get(choice.step ?? '')?.frame ?? null;
  const nodes: RunGraphNode[] = [];
  /** The node that stands for a step: itself, the group that it is in, or the rest. */
  const standIn = new Map<string, string>();
  const wanted = (node: StepNode): boolean =>
    !choice.onlyActive || isActive(node) || node.step.id === choice.step || above.has(node.step.id);

  const hide = (children: readonly StepNode[], by: string): void => {
    for (const { step, children: below } of children) {
      standIn.set(step.id, by);
      hide(below, by);
    }
  };
  const add = (node: StepNode, prefix: string): void => {
    const { step, status, children, counts } = node;
    const isOpen = children.length > 0 && (choice.opened.get(step.id) ?? above.has(step.id));
    const name = step.id.startsWith(prefix) ? step.id.slice(prefix.length) : step.id;
    const group = children.length === 0 ? null : { isOpen, counts, dots: dotsOf(children) };
    nodes.push({ kind: 'step', id: step.id, step, status, name, group });
    standIn.set(step.id, step.id);
    if (!isOpen) return hide(children, step.id);
    const isShown = (child: StepNode): boolean =>
      wanted(child) && (children.length <= GROUP_MAX || isActive(child) || contains(child, chosenFrame, above));
    const shown = new Set(children.filter(isShown).slice(0, GROUP_MAX));
    for (const child of children) {
      if (shown.has(child)) add(child, `${step.id}.`);
      else hide([child], step.id);
    }
  };

  const roots = stepTree(state);
  const rests = new Map<ShownStepStatus, StepNode[]>();
  for (const root of roots) {
    const stays =
      roots.length <= ROOTS_MAX || root.children.length > 0 || isActive(root) || root.step.id === choice.step;
    if (stays && wanted(root)) add(root, '');
    else if (!choice.onlyActive) rests.set(root.status, [...(rests.get(root.status) ?? []), root]);
  }
  for (const [status, steps] of rests) {
    const id = `rest ${status}`;
    nodes.push({ kind: 'rest', id, status, count: steps.length });
    hide(steps, id);
  }
  return { nodes, edges: edgesBetween(state, nodes, standIn) };
}

/** Whether it is in the iteration of the chosen step, or contains it. */
function contains({ step }: StepNode, chosen: FrameState | null, above: ReadonlySet<string>): boolean {
  return step.frame === chosen || above.has(step.id);
}

function dotsOf(children: readonly StepNode[]): readonly ShownStepStatus[] {
  if (children.length <= DOTS_MAX) return children.map(({ status }) => status);
  // Each dot shows the most urgent of the steps that it stands for.
  const perDot = Math.ceil(children.length / DOTS_MAX);
  const dots: ShownStepStatus[] = [];
  for (let at = 0; at < children.length; at += perDot) {
    const some = children.slice(at, at + perDot).map(({ status }) => status);
    dots.push(URGENCY.find((status) => some.includes(status)) ?? 'pending');
  }
  return dots;
}

const URGENCY: readonly ShownStepStatus[] = ['failed', 'waiting', 'running', 'parked', 'pending', 'skipped', 'done'];

function edgesBetween(
  state: RunState,
  nodes: readonly RunGraphNode[],
  standIn: ReadonlyMap<string, string>,
): readonly RunGraphEdge[] {
  const edges = new Map<string, RunGraphEdge>();
  const add = (edge: RunGraphEdge): void => {
    const [from, to] = [standIn.get(edge.from), standIn.get(edge.to)];
    if (from === undefined || to === undefined || from === to) return;
    // A line from or to a group says nothing about one of its steps.
    const label = from === edge.from && to === edge.to ? edge.label : null;
    const key = JSON.stringify([from, to, edge.kind, label]);
    edges.set(key, { ...edge, from, to, label });
  };
  for (const node of nodes) {
    if (node.kind !== 'step') continue;
    for (const { steps, mayGrow } of resolveNeeds(state, node.step)) {
      for (const { id } of [...steps, ...mayGrow]) add({ from: id, to: node.id, kind: 'need', label: null });
    }
  }
  for (const frame of state.frames.values()) {
    // Only frames of which something is shown.
    if (frame.isInner || !frame.steps.some(({ id }) => standIn.get(id) === id)) continue;
    const name = iterationOf(frame);
    for (const edge of growthEdges(state, frame)) add({ ...edge, label: edge.label ?? name });
  }
  return [...edges.values()];
}

/** `412` of `each.412.`; null if it is not an iteration. */
function iterationOf({ prefix, owner }: FrameState): string | null {
  if (owner === null || !prefix.startsWith(`${owner}.`)) return null;
  const name = prefix.slice(owner.length + 1).replace(/\.$/, '');
  return name === '' ? null : name;
}
