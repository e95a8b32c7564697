// The ways to ask for growth: which block is entered, with what, and how it stands to the step that asked.

import type { ValueTemplate } from './text.ts';

export interface Target {
  readonly block: string;
  readonly variables: Readonly<Record<string, ValueTemplate>>;
}

export type Follow =
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
  /** The run ends here, whatever else is going on. */
  | { readonly kind: 'stop'; readonly verdict: 'done' | 'failed'; readonly reason: string | null };

/** Names of the blocks that are entered. */
export function blocksOf(follow: Follow): readonly string[] {
  switch (follow.kind) {
    case 'expand':
    case 'goto':
    case 'fork':
      return [follow.target.block];
    case 'call':
      return [follow.target.block, follow.returnTo.block];
    case 'end':
    case 'return':
    case 'stop':
      return [];
  }
}
