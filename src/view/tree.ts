// The steps of a run as rows of a tree: each step below the step it grew from, except earlier rounds of loops. Data only;
// `tree-lines.ts` draws it on a terminal. If the rows are limited, running and failed steps come first, then those that
// ended last or may start next; each branch counts the steps it hides.

import {
  type FrameState,
  presentRound,
  retryTimer,
  roundTimer,
  type RunState,
  type StepState,
  type StepStatus,
} from '../kernel/state.ts';
import { failedSteps, isHandled, shownSteps } from './cause.ts';
import { type Counts, countsOf, refusalOf } from './status.ts';

export interface StepRow {
  readonly kind: 'step';
  readonly step: StepState;
  /** The id without the prefix of the parent step. */
  readonly name: string;
  readonly depth: number;
  /**
   * `gate`: waits for a person. `retry`: for its next attempt. `rejected`: by a person. `false`: its condition.
   * `handled`: it failed, and the workflow continues.
   */
  readonly sign: StepSign;
  /** Steps directly below it, without those of a recovery; for a foreach, all its iterations. */
  readonly children: number;
  readonly childrenFinished: number;
  readonly retryAt: number | null;
}

export type StepSign = StepStatus | 'gate' | 'retry' | 'rejected' | 'false' | 'handled';

/** Steps of one branch that have no row. */
export interface HiddenRow {
  readonly kind: 'hidden';
  readonly depth: number;
  readonly counts: Counts;
}

/** At most `rowsMax` rows; Infinity shows every step. */
export function treeRows(state: RunState, rowsMax: number): readonly (StepRow | HiddenRow)[] {
  const nodes = nodesOf(state);
  const roots = nodes.filter(({ parent }) => parent === null);
  const shown = nodes.length <= rowsMax ? new Set(nodes) : choose(state, nodes, roots, rowsMax);
  const rows: (StepRow | HiddenRow)[] = [];
  const causes = new Set(failedSteps(state));
  const walk = (siblings: readonly Node[], depth: number): void => {
    const hidden = siblings.filter((node) => !shown.has(node));
    for (const node of siblings) {
      if (!shown.has(node)) continue;
      rows.push(stepRow(state, node, depth, causes));
      walk(node.children, depth + 1);
    }
    if (hidden.length > 0 && (hidden.length < siblings.length || depth === 0)) {
      rows.push({ kind: 'hidden', depth, counts: countsOf(stepsUnder(hidden)) });
    }
  };
  walk(roots, 0);
  return rows;
}

interface Node {
  readonly step: StepState;
  readonly parent: Node | null;
  readonly children: Node[];
}

function nodesOf(state: RunState): readonly Node[] {
  const byId = new Map<string, Node>();
  for (const step of shownSteps(state)) {
    const { owner, round } = step.frame;
    const parent = byId.get(owner ?? '') ?? null;
    // An earlier round of a loop is folded, with everything below it.
    if (owner !== null && parent === null) continue;
    if (round !== undefined && parent !== null && round < (presentRound(parent.step) ?? 0)) continue;
    const node: Node = { step, parent, children: [] };
    byId.set(step.id, node);
    parent?.children.push(node);
  }
  return [...byId.values()];
}

function choose(state: RunState, nodes: readonly Node[], roots: readonly Node[], rowsMax: number): ReadonlySet<Node> {
  const ranked = byInterest(state, nodes, rowsMax);
  for (let count = Math.min(rowsMax, ranked.length); count > 0; count--) {
    const shown = new Set<Node>();
    for (const chosen of ranked.slice(0, count)) {
      for (let node: Node | null = chosen; node !== null && !shown.has(node); node = node.parent) shown.add(node);
    }
    if (shown.size + hiddenRows(roots, shown) <= rowsMax) return shown;
  }
  return new Set();
}

/** Number of branches that need a row for hidden steps: those with both shown and hidden children, and the root. */
function hiddenRows(roots: readonly Node[], shown: ReadonlySet<Node>): number {
  const parents = new Set([...shown].flatMap(({ parent }) => parent ?? []));
  const branches = [roots, ...[...parents].map(({ children }) => children)];
  return branches.filter((siblings) => siblings.some((node) => !shown.has(node))).length;
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
    else if (step.status !== 'pending') finished.push(node);
    else if (state.timers.has(retryTimer(step.id))) retrying.push(node);
    else if (pending.length < rowsMax) pending.push(node);
  }
  finished.sort((a, b) => (b.step.finishedAt ?? 0) - (a.step.finishedAt ?? 0));
  const ranked = [...running, ...failed, ...retrying, ...parents];
  for (let index = 0; index < rowsMax; index++) {
    ranked.push(...finished.slice(index, index + 1), ...pending.slice(index, index + 1));
  }
  return ranked;
}

function stepRow(
  state: RunState,
  { step, parent, children }: Node,
  depth: number,
  causes: ReadonlySet<StepState>,
): StepRow {
  const { id } = step;
  const prefix = parent === null ? '' : `${parent.step.id}.`;
  const retryAt = (state.timers.get(retryTimer(id)) ?? state.timers.get(roundTimer(id)))?.at ?? null;
  const isFinished = ({ step: { status } }: Node): boolean => status !== 'pending' && status !== 'running';
  const iterations = step.definition.act.kind === 'each' ? step.items : null;
  const parts = children.filter((child) => child.step.frame.join !== 'recover');
  const isEnded = ({ join, closed }: FrameState): boolean => join !== 'recover' && closed;
  return {
    kind: 'step',
    step,
    name: id.startsWith(prefix) ? id.slice(prefix.length) : id,
    depth,
    sign: isHandledFailure(state, step, causes) ? 'handled' : signOf(state, step, retryAt !== null),
    children: iterations?.length ?? parts.length,
    childrenFinished: iterations === null ? parts.filter(isFinished).length : step.children.filter(isEnded).length,
    retryAt,
  };
}

/** `causes`: of the end of the run. */
function isHandledFailure(state: RunState, step: StepState, causes: ReadonlySet<StepState>): boolean {
  const isFailure = step.status === 'failed' && refusalOf(state, step) === null;
  return isFailure && !causes.has(step) && isHandled(state, step);
}

function signOf(state: RunState, step: StepState, isRetrying: boolean): StepSign {
  const { status, effect } = step;
  if (status === 'pending' && isRetrying) return 'retry';
  return status === 'running' && effect?.kind === 'gate' ? 'gate' : (refusalOf(state, step) ?? status);
}

/** With all steps below them. */
function stepsUnder(nodes: readonly Node[]): readonly StepState[] {
  const steps: StepState[] = [];
  const collect = ({ step, children }: Node): void => {
    steps.push(step);
    children.forEach(collect);
  };
  nodes.forEach(collect);
  return steps;
}
