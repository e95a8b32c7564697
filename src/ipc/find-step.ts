// Resolves the name of a step. Inside `a.0.b`, `check` means `a.0.check`, else `a.check`, else `check`.

import type { RunState, StepState } from '../kernel/state.ts';

/** `asker`: the step that asks; null if it is asked from outside of any step. */
export function findStep(state: RunState, name: string, asker: string | null): StepState | null {
  const segments = asker?.split('.') ?? [];
  for (let depth = Math.max(0, segments.length - 1); depth >= 0; depth--) {
    const found = state.steps.get([...segments.slice(0, depth), name].join('.'));
    if (found !== undefined) return found;
  }
  return null;
}
