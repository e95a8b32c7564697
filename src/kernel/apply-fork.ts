// What `apply` knows about forks: which steps are kept, and which frame comes before another in a lane.

import type { FrameSpec } from './decision.ts';
import { type FrameState, type RunState, stepOf, type StepState } from './state.ts';

/** The frame that the lane leaves, or that the lane is forked from: the outermost one, below which others may be open. */
export function currentFrame(state: RunState, { lane, forkedFrom }: FrameSpec): FrameState | null {
  let now = state.lanes.get(forkedFrom ?? lane)?.frame ?? null;
  for (let outer = now; outer !== null && outer.lane === now?.lane; outer = ownerFrame(state, outer)) now = outer;
  return now;
}

function ownerFrame(state: RunState, { owner, replaces, caller }: FrameState): FrameState | null {
  return owner === null || replaces !== null || caller !== null ? null : stepOf(state, owner).frame;
}

/** If a step runs, those above it are not kept either. */
export function keep(state: RunState, step: StepState, from: string | null): void {
  step.keptFrom = from;
  if (state.fork === null) return;
  if (from !== null) {
    step.notes = state.fork.results[step.id]?.notes ?? null;
    return;
  }
  for (let owner = step.frame.owner; owner !== null; ) {
    const above = stepOf(state, owner);
    if (above.settlement === 'open') above.keptFrom = null;
    owner = above.frame.owner;
  }
}

export function hasItems({ fork }: RunState, { id, items }: StepState): boolean {
  return JSON.stringify(fork?.results[id]?.items) === JSON.stringify(items);
}
