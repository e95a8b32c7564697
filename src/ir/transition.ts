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

export type Transition =
  /** Ends the step without a transition. */
  | { readonly kind: 'end' }
  /** A block below the step. `wait`: the step ends with the block. `inline`: the step ends at once. */
  | { readonly kind: 'expand'; readonly target: Target; readonly join: 'wait' | 'inline' }
  /** The lane continues in another block. */
  | {
      readonly kind: 'goto';
      readonly target: Target;
      readonly session: 'resume' | 'fresh';
      readonly dropCallers: boolean;
    }
  /** Enters a block that returns here. */
  | { readonly kind: 'call'; readonly target: Target; readonly returnTo: Target; readonly session: 'fork' | 'fresh' }
  /** Returns a value to the caller; without a caller the lane ends. */
  | { readonly kind: 'return'; readonly value: ValueTemplate }
  /** Starts a new lane. */
  | { readonly kind: 'fork'; readonly target: Target; readonly name: string }
  /** Fails the step, whatever its outcome. */
  | { readonly kind: 'fail'; readonly message: string }
  /** Ends the run, whatever else is running. */
  | { readonly kind: 'stop'; readonly verdict: 'done' | 'failed'; readonly reason: string | null };

/** Names of the blocks that a transition enters. */
export function blocksOf(follow: Transition): readonly string[] {
  switch (follow.kind) {
    case 'expand':
    case 'goto':
    case 'fork':
      return blocksOfTarget(follow.target);
    case 'call':
      return [...blocksOfTarget(follow.target), ...blocksOfTarget(follow.returnTo)];
    case 'end':
    case 'return':
    case 'fail':
    case 'stop':
      return [];
  }
}
