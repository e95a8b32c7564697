// Transitions: which block is entered, with which variables, and how that relates to the current step.

import type { Text, ValueTemplate } from './text.ts';

export interface Target {
  /** Name of the block; or a text with placeholders, looked up in `names` once filled. */
  readonly block: Text;
  /** Possible values of a text with placeholders, and their blocks. Empty if the block is known. */
  readonly names: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, ValueTemplate>>;
}

/** A target known at compile time. */
export function targetOf(block: string, variables: Readonly<Record<string, ValueTemplate>> = {}): Target {
  return { block, names: {}, variables };
}

/** Names of the blocks that a target may enter. */
export function blocksOfTarget({ block, names }: Target): readonly string[] {
  return typeof block === 'string' ? [block] : Object.values(names);
}

export type Transition = Readonly<
  /** Ends the step without a transition. */
  | { kind: 'end' }
  /** A block below the step. `wait`: the step ends with the block. `inline`: the step ends at once. */
  | { kind: 'expand'; target: Target; join: 'wait' | 'inline' }
  /** The lane continues in another block. */
  | { kind: 'goto'; target: Target; session: 'resume' | 'fresh'; dropCallers: boolean }
  /** Enters a block that returns here. */
  | { kind: 'call'; target: Target; returnTo: Target; session: 'fork' | 'fresh' }
  /** Returns a value to the caller; without a caller the lane ends. */
  | { kind: 'return'; value: ValueTemplate }
  /** Starts a new lane. */
  | { kind: 'fork'; target: Target; name: string }
  /** Fails the step, whatever its outcome. */
  | { kind: 'fail'; message: string }
  /** Fails the step, because a person rejected the gate that it waited for. */
  | { kind: 'reject' }
  /** Ends the run, whatever else is running. */
  | { kind: 'stop'; verdict: 'done' | 'failed'; reason: string | null }
>;

/** Names of the blocks that a transition enters. */
export function blocksOf(follow: Transition): readonly string[] {
  if (!('target' in follow)) return [];
  const back = follow.kind === 'call' ? blocksOfTarget(follow.returnTo) : [];
  return [...blocksOfTarget(follow.target), ...back];
}
