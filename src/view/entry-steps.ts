// How the steps of a block depend on each other, as written.

import { segmentMatcher } from '../base/names.ts';
import type { Block, Step } from '../ir/program.ts';
/** A need on something below a step (`each.*`, `x.child`) is drawn from that step. */
export function neededInBlock(block: Block, step: Step): readonly Step[] {
  return step.needs.flatMap((need) => {
    const fits = segmentMatcher(need.split('.')[0] ?? '');
    return block.steps.filter((other) => other !== step && fits(other.id));
  });
}

/** Those that start first. */
export function entrySteps(block: Block): readonly Step[] {
  return block.steps.filter((step) => neededInBlock(block, step).length === 0);
}
