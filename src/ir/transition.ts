// The ways to ask for growth: which block is entered, with what, and how it stands to the step that asked.

import type { Text, ValueTemplate } from './text.ts';

export interface Target {
  /** The block's name; or a text with holes, which is looked up among `names` when it is filled. */
  readonly block: Text;
  /** What a text with holes may come to, and the block that it then means. Empty where the block is known. */
  readonly names: Readonly<Record<string, string>>;
  readonly variables: Readonly<Record<string, ValueTemplate>>;
}

/** A target that is known beforehand. */
export function targetOf(block: string, variables: Readonly<Record<string, ValueTemplate>> = {}): Target {
  return { block, names: {}, variables };
}

/** Names of the blocks that a target may enter. */
export function blocksOfTarget({ block, names }: Target): readonly string[] {
  return typeof block === 'string' ? [block] : Object.values(names);
}

export type Transition =
  /** The step is over, and nothing comes of it. */
  | { readonly kind: 'end' }
  /** A block below the step. `wait`: the step is over when the block is. `inline`: the step is over at once. */
  | { readonly kind: 'expand'; readonly target: Target; readonly join: 'wait' | 'inline' }
  /** The line of control goes on in another block. */
  | {
      readonly kind: 'goto';
      readonly target: Target;
      readonly session: 'resume' | 'fresh';
      readonly dropCallers: boolean;
    }
  /** A block is entered that will return here. */
  | { readonly kind: 'call'; readonly target: Target; readonly returnTo: Target; readonly session: 'fork' | 'fresh' }
  /** Back to the caller with a value; without a caller the line of control ends. */
  | { readonly kind: 'return'; readonly value: ValueTemplate }
  /** A new line of control, beside this one. */
  | { readonly kind: 'fork'; readonly target: Target; readonly name: string }
  /** The step fails, whatever its effect came to. */
  | { readonly kind: 'fail'; readonly message: string }
  /** The run ends here, whatever else is going on. */
  | { readonly kind: 'stop'; readonly verdict: 'done' | 'failed'; readonly reason: string | null };

/** Names of the blocks that are entered. */
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
