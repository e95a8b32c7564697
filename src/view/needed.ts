// Resolves needs to steps, for views that explain or draw them. Reads `each.*`, `a.b` and patterns like the kernel
// does.

import { segmentMatcher } from '../base/segment-pattern.ts';
import type { IdTree } from '../kernel/id-tree.ts';
import { find } from '../kernel/id-tree.ts';
import type { RunState, StepState } from '../kernel/state.ts';

export interface ResolvedNeed {
  /** A step id, or a pattern. */
  readonly need: string;
  /** Matching steps that exist now. */
  readonly steps: readonly StepState[];
  /** Steps below which more matches may appear. */
  readonly mayGrow: readonly StepState[];
}

export function resolveNeeds(state: RunState, step: StepState): readonly ResolvedNeed[] {
  return step.definition.needs.map((need) => resolveNeed(state, step, need));
}

/** Whether it still prevents the step from starting. */
export function isOpen({ steps, mayGrow }: ResolvedNeed): boolean {
  return mayGrow.length > 0 || steps.some(({ settlement }) => settlement === 'open');
}

function resolveNeed(state: RunState, waiter: StepState, need: string): ResolvedNeed {
  const { prefix } = waiter.frame;
  const steps: StepState[] = [];
  const mayGrow: StepState[] = [];
  const top = prefix === '' ? state.tree : find(state.tree, prefix.slice(0, -1).split('.'));
  if (top !== null) collect(top, need.split('.'), steps, mayGrow);
  return { need: `${prefix}${need}`, steps: steps.filter((step) => step !== waiter), mayGrow };
}

function collect(node: IdTree<StepState>, segments: readonly string[], steps: StepState[], mayGrow: StepState[]): void {
  const [first, ...rest] = segments;
  if (first === undefined) return;
  for (const next of matchingNodes(node, first)) {
    if (rest.length === 0) {
      if (next.value === null) collectBelow(next, steps);
      else steps.push(next.value);
      continue;
    }
    const before = steps.length;
    collect(next, rest, steps, mayGrow);
    // An exact name that exists can have no further match.
    const exact = steps.length > before && !rest.some((segment) => segment.includes('*'));
    if (next.value !== null && !next.value.grown && !exact) mayGrow.push(next.value);
  }
}

function matchingNodes({ below }: IdTree<StepState>, pattern: string): readonly IdTree<StepState>[] {
  const only = below.get(pattern);
  if (!pattern.includes('*')) return only === undefined ? [] : [only];
  const fits = segmentMatcher(pattern);
  return [...below].filter(([segment]) => fits(segment)).map(([, node]) => node);
}

/** A prefix that is not a step (`each.0`) means the steps directly below it. */
function collectBelow(node: IdTree<StepState>, steps: StepState[]): void {
  for (const next of node.below.values()) {
    if (next.value === null) collectBelow(next, steps);
    else steps.push(next.value);
  }
}
