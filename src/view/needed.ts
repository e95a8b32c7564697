// Which steps of a run a need names: the same reading of `each.*`, `a.b` and patterns that the kernel has, for views that
// explain or draw it.

import { segmentMatcher } from '../base/segment-pattern.ts';
import type { IdTree } from '../kernel/id-tree.ts';
import { find } from '../kernel/id-tree.ts';
import type { RunState, StepState } from '../kernel/state.ts';

export interface ResolvedNeed {
  /** As an id of the run, or a pattern of them. */
  readonly need: string;
  /** The steps that it names by now. */
  readonly steps: readonly StepState[];
  /** Steps below which more may come into being that it names. */
  readonly mayGrow: readonly StepState[];
}

export function resolveNeeds(state: RunState, step: StepState): readonly ResolvedNeed[] {
  return step.definition.needs.map((need) => resolveNeed(state, step, need));
}

/** Whether it still keeps the step from starting. */
export function isOpen({ steps, mayGrow: hopes }: ResolvedNeed): boolean {
  return hopes.length > 0 || steps.some(({ settlement }) => settlement === 'open');
}

function resolveNeed(state: RunState, waiter: StepState, need: string): ResolvedNeed {
  const { prefix } = waiter.frame;
  const steps: StepState[] = [];
  const hopes: StepState[] = [];
  const top = prefix === '' ? state.tree : find(state.tree, prefix.slice(0, -1).split('.'));
  if (top !== null) collect(top, need.split('.'), steps, hopes);
  return { need: `${prefix}${need}`, steps: steps.filter((step) => step !== waiter), mayGrow: hopes };
}

function collect(node: IdTree<StepState>, segments: readonly string[], steps: StepState[], hopes: StepState[]): void {
  const [first, ...rest] = segments;
  if (first === undefined) return;
  for (const next of matchingNodes(node, first)) {
    if (rest.length === 0) {
      if (next.value === null) collectBelow(next, steps);
      else steps.push(next.value);
      continue;
    }
    const before = steps.length;
    collect(next, rest, steps, hopes);
    // One that is named outright and exists already leaves nothing to hope for.
    const exact = steps.length > before && !rest.some((segment) => segment.includes('*'));
    if (next.value !== null && !next.value.grown && !exact) hopes.push(next.value);
  }
}

function matchingNodes({ below }: IdTree<StepState>, pattern: string): readonly IdTree<StepState>[] {
  const only = below.get(pattern);
  if (!pattern.includes('*')) return only === undefined ? [] : [only];
  const fits = segmentMatcher(pattern);
  return [...below].filter(([segment]) => fits(segment)).map(([, node]) => node);
}

/** Of a prefix without a step of its own (`each.0`): all that stands right below it. */
function collectBelow(node: IdTree<StepState>, steps: StepState[]): void {
  for (const next of node.below.values()) {
    if (next.value === null) collectBelow(next, steps);
    else steps.push(next.value);
  }
}
