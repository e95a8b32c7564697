// Resolves needs to steps, for views that explain or draw them. Reads `each.*`, `a.b` and patterns like the kernel
// does.

import { find, type IdTree, matches } from '../kernel/collections.ts';
import type { RunState, StepState } from '../kernel/state.ts';

export interface ResolvedNeed {
  /** A step id, or a pattern. */
  readonly need: string;
  readonly steps: readonly StepState[];
  /** Steps below which more matches may appear. */
  readonly mayGrow: readonly StepState[];
}

export function resolveNeeds(state: RunState, waiter: StepState): readonly ResolvedNeed[] {
  const { prefix } = waiter.frame;
  const top = prefix === '' ? state.tree : find(state.tree, prefix.slice(0, -1).split('.'));
  return waiter.definition.needs.map((need) => {
    const steps: StepState[] = [];
    const mayGrow: StepState[] = [];
    if (top !== null) collect(top, need.split('.'), steps, mayGrow);
    return { need: `${prefix}${need}`, steps: steps.filter((step) => step !== waiter), mayGrow };
  });
}

/** Whether it still prevents the step from starting. */
export function isOpen({ steps, mayGrow }: ResolvedNeed): boolean {
  return mayGrow.length > 0 || steps.some(({ settlement }) => settlement === 'open');
}

function collect(node: IdTree<StepState>, segments: readonly string[], steps: StepState[], mayGrow: StepState[]): void {
  const [first, ...rest] = segments;
  if (first === undefined) return;
  for (const next of matches(node, first)) {
    if (rest.length === 0) {
      steps.push(...stepsAt(next));
      continue;
    }
    const before = steps.length;
    collect(next, rest, steps, mayGrow);
    // An exact name that exists can have no further match.
    const exact = steps.length > before && !rest.some((segment) => segment.includes('*'));
    if (next.value !== null && !next.value.grown && !exact) mayGrow.push(next.value);
  }
}

/** A prefix that is not a step (`each.0`) means the steps directly below it. */
function stepsAt({ value, below }: IdTree<StepState>): readonly StepState[] {
  return value === null ? [...below.values()].flatMap(stepsAt) : [value];
}
