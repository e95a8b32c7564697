// The steps of a run as rows of a tree: each step below the step it grew from. Data only; `tree-lines.ts` draws it on a
// terminal. If the rows are limited, running and failed steps come first, then those that ended last or may start next;
// each branch counts the steps it hides.

import type { Delivery } from '../ir/effect.ts';
import type { StopReason } from '../kernel/decision.ts';
import type { RunState, StepState, StepStatus } from '../kernel/state.ts';
import { retryTimer } from '../kernel/state.ts';
import type { Counts } from './status.ts';
import { lastLine } from './summary.ts';
import { shownSteps } from './status.ts';

export type TreeRow = StepRow | HiddenRow;

export interface StepRow {
  readonly kind: 'step';
  readonly id: string;
  /** The id without the prefix of the parent step. */
  readonly name: string;
  readonly depth: number;
  readonly status: StepStatus;
  /** `gate`: waits for a person. `retry`: waits for its next attempt. Otherwise the status. */
  readonly sign: StepSign;
  /** Span of the latest attempt in milliseconds since 1970; null before the first, and while it waits for a retry. */
  readonly startedAt: number | null;
  /** Null while it is running. */
  readonly finishedAt: number | null;
  /** Steps directly below it. */
  readonly children: number;
  readonly childrenFinished: number;
  readonly attempt: number;
  /** The agent of a running step. */
  readonly agent: string | null;
  /** Delivery of a running step's prompt. */
  readonly delivery: Delivery | null;
  /** Name of its agent's open question. */
  readonly dialog: string | null;
  /** The busy agent it waits for. */
  readonly queuedFor: string | null;
  readonly stopping: StopReason | null;
  readonly failure: RowFailure | null;
  readonly retryAt: number | null;
}

export type StepSign = StepStatus | 'gate' | 'retry';

export interface RowFailure {
  readonly message: string;
  /** Last line of its output. */
  readonly lastLine: string | null;
  /** The workflow continues after it. */
  readonly isHandled: boolean;
}

/** Steps of one branch that have no row. */
export interface HiddenRow {
  readonly kind: 'hidden';
  readonly depth: number;
  readonly counts: Counts;
}

/** At most `rowsMax` rows; Infinity shows every step. */
export function treeRows(state: RunState, rowsMax: number): readonly TreeRow[] {
  const tree = treeOf(state);
  const shown = chooseNodes(state, tree, rowsMax);
  const rows: TreeRow[] = [];
  const walk = (nodes: readonly Node[], depth: number): void => {
    let hidden: Node[] | null = null;
    let anyShown = false;
    for (const node of nodes) {
      if (shown !== null && !shown.has(node)) {
        hidden ??= [];
        hidden.push(node);
        continue;
      }
      anyShown = true;
      rows.push(stepRow(state, node));
      walk(node.children, depth + 1);
    }
    if (hidden !== null && (anyShown || depth === 0)) rows.push({ kind: 'hidden', depth, counts: countsOf(hidden) });
  };
  walk(tree.roots, 0);
  return rows;
}

interface Node {
  readonly step: StepState;
  readonly parent: Node | null;
  readonly depth: number;
  readonly children: Node[];
}

interface Tree {
  readonly roots: readonly Node[];
  readonly nodes: readonly Node[];
}

function treeOf(state: RunState): Tree {
  const byId = new Map<string, Node>();
  const roots: Node[] = [];
  for (const step of shownSteps(state)) {
    const parent = step.frame.owner === null ? null : (byId.get(step.frame.owner) ?? null);
    const node: Node = { step, parent, depth: parent === null ? 0 : parent.depth + 1, children: [] };
    byId.set(step.id, node);
    (parent === null ? roots : parent.children).push(node);
  }
  return { roots, nodes: [...byId.values()] };
}

/** The nodes that get a row; null: all. */
function chooseNodes(state: RunState, tree: Tree, rowsMax: number): ReadonlySet<Node> | null {
  if (tree.nodes.length <= rowsMax) return null;
  const ranked = byInterest(state, tree.nodes, rowsMax);
  for (let count = Math.min(rowsMax, ranked.length); count > 0; count--) {
    const shown = new Set<Node>();
    for (const chosen of ranked.slice(0, count)) {
      for (let node: Node | null = chosen; node !== null && !shown.has(node); node = node.parent) shown.add(node);
    }
    if (shown.size + hiddenRows(tree, shown) <= rowsMax) return shown;
  }
  return new Set();
}

/** Number of branches that need a row for hidden steps: those with both shown and hidden children, and the root. */
function hiddenRows({ roots }: Tree, shown: ReadonlySet<Node>): number {
  let count = roots.every((node) => shown.has(node)) ? 0 : 1;
  const shownBelow = new Map<Node, number>();
  for (const { parent } of shown) if (parent !== null) shownBelow.set(parent, (shownBelow.get(parent) ?? 0) + 1);
  for (const [parent, below] of shownBelow) if (below < parent.children.length) count += 1;
  return count;
}

/** Running, failed and retrying steps; then, alternating, those that ended last and those that may start next. */
function byInterest(state: RunState, nodes: readonly Node[], rowsMax: number): readonly Node[] {
  const running: Node[] = [];
  const failed: Node[] = [];
  const retrying: Node[] = [];
  const parents: Node[] = [];
  const finished: Node[] = [];
  const pending: Node[] = [];
  for (const node of nodes) {
    const { step } = node;
    if (step.status === 'running') (step.effect === null ? parents : running).push(node);
    else if (step.status === 'failed') failed.push(node);
    else if (step.status === 'pending') {
      if (state.timers.has(retryTimer(step.id))) retrying.push(node);
      else if (pending.length < rowsMax) pending.push(node);
    } else finished.push(node);
  }
  finished.sort((a, b) => (b.step.finishedAt ?? 0) - (a.step.finishedAt ?? 0));
  const alternating: Node[] = [];
  for (let index = 0; index < rowsMax; index++) {
    for (const list of [finished, pending]) {
      const node = list[index];
      if (node !== undefined) alternating.push(node);
    }
  }
  return [...running, ...failed, ...retrying, ...parents, ...alternating];
}

function stepRow(state: RunState, { step, parent, depth, children }: Node): StepRow {
  const { id, status, failure } = step;
  const prefix = parent === null ? '' : `${parent.step.id}.`;
  const retry = state.timers.get(retryTimer(id));
  const isRunning = status === 'running';
  const hasSpan = step.attempt > 0 && status !== 'pending';
  return {
    kind: 'step',
    id,
    name: id.startsWith(prefix) ? id.slice(prefix.length) : id,
    depth,
    status,
    sign: signOf(step, retry !== undefined),
    startedAt: hasSpan ? step.startedAt : null,
    finishedAt: hasSpan ? step.finishedAt : null,
    children: children.length,
    childrenFinished: children.filter(({ step: { status: now } }) => now !== 'pending' && now !== 'running').length,
    attempt: step.attempt,
    agent: isRunning ? step.agent : null,
    delivery: isRunning ? step.delivery : null,
    dialog: step.dialog?.name ?? null,
    queuedFor: step.queuedFor,
    stopping: step.stopping,
    failure:
      failure === null || status === 'skipped'
        ? null
        : { message: failure.message, lastLine: lastLine(failure.output), isHandled: step.settlement !== 'broken' },
    retryAt: retry?.at ?? null,
  };
}

function signOf({ status, effect }: StepState, isRetrying: boolean): StepSign {
  if (status === 'pending' && isRetrying) return 'retry';
  return status === 'running' && effect?.kind === 'gate' ? 'gate' : status;
}

function countsOf(nodes: readonly Node[]): Counts {
  const counts = { pending: 0, running: 0, done: 0, failed: 0, skipped: 0 };
  const count = (some: readonly Node[]): void => {
    for (const { step, children } of some) {
      counts[step.status === 'completing' ? 'running' : step.status] += 1;
      count(children);
    }
  };
  count(nodes);
  return counts;
}
