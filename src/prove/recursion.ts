// Blocks that are entered inside themselves.
//
// recursion/1  If a block is entered inside itself more often than is explored, and the frames in between are all alike, then
//              the same things can happen as with one of them less. So the state is the same as one with fewer frames.
// recursion/2  They are alike if it makes no difference which of them are left out. The outermost frame always stays.

import { type FrameState, frameAround, type RunState } from '../kernel/state.ts';
import type { Omission } from './state-key.ts';

/** How often the block of a frame is entered inside itself. */
export function repetitions(state: RunState, frame: FrameState): number {
  return frame.steps.length === 0 ? 0 : occurrences(state, frame).length;
}

/**
 * Two ways to leave out what is deeper than `depthMax`: the frames next to the outermost one, or those next to the
 * innermost one. Null if nothing is so deep, or if there are not enough frames to compare.
 */
export function omissionsIn(state: RunState, depthMax: number): readonly [Omission, Omission] | null {
  const deepest = deepestIn(state);
  const surplus = deepest.length - depthMax;
  if (surplus < 1 || depthMax < 3) return null;
  return [omission(state, deepest, 1, 1 + surplus), omission(state, deepest, depthMax - 1, deepest.length - 1)];
}

/** Frames of the same block, outermost first. */
function occurrences(state: RunState, frame: FrameState): readonly FrameState[] {
  const block = frame.steps[0]?.definition;
  const found: FrameState[] = [];
  for (let at: FrameState | null = frame; at !== null; at = frameAround(state, at))
    if (at.steps[0]?.definition === block) found.push(at);
  return found.toReversed();
}

function deepestIn(state: RunState): readonly FrameState[] {
  let deepest: readonly FrameState[] = [];
  for (const frame of state.frames.values()) {
    if (frame.closed || frame.steps.length === 0) continue;
    const found = occurrences(state, frame);
    if (found.length > deepest.length) deepest = found;
  }
  return deepest;
}

function omission(state: RunState, all: readonly FrameState[], from: number, to: number): Omission {
  const [instead = null, inside = null] = [all[from], all[to]];
  const frames = new Set<FrameState>();
  for (let at = inside; at !== null && at !== instead; ) {
    at = frameAround(state, at);
    if (at !== null) frames.add(at);
  }
  return { frames, inside, instead };
}
