// What an author has written: each step and route of a compiled workflow with its position. `meow test --coverage` compares
// it with what happened.

import { type Place, type Source, spanOf } from '../base/source.ts';
import type { TransitionTag } from '../ir/tags.ts';

export interface WrittenStep {
  /** Names in the Program. */
  readonly block: string;
  readonly step: string;
  /** As the author knows it, whatever workflow enters it. */
  readonly name: string;
  readonly place: WrittenPlace;
  readonly routes: readonly WrittenRoute[];
}

export interface WrittenPlace {
  /** The path in messages. */
  readonly file: string;
  readonly line: number;
}

export interface WrittenRoute {
  /** As the author knows it: `on_true`, `completed`, `goto REVIEW.md`. */
  readonly label: string;
  readonly place: WrittenPlace;
  readonly taken: RouteTaken;
}

/** What shows that a route was taken. */
export type RouteTaken =
  /** One of these outcomes of the step. */
  | { readonly kind: 'outcome'; readonly words: readonly string[] }
  | { readonly kind: 'recovery' }
  /** A transition of a state machine. Blocks; null: any, or none. */
  | {
      readonly kind: 'transition';
      readonly tag: TransitionTag;
      readonly to: string | null;
      readonly back: string | null;
    }
  /** Another block is entered instead of this one, whose limit of visits is reached. */
  | { readonly kind: 'instead'; readonly block: string };

export function placeIn(source: Source, place: Place): WrittenPlace {
  const { file, line } = spanOf(source, place);
  return { file, line };
}

/** The outline of a workflow whose blocks are renamed. */
export function renamedOutline(
  outline: readonly WrittenStep[],
  rename: (block: string) => string,
): readonly WrittenStep[] {
  const renamed = (block: string | null): string | null => (block === null ? null : rename(block));
  const takenOf = (taken: RouteTaken): RouteTaken => {
    if (taken.kind === 'transition') return { ...taken, to: renamed(taken.to), back: renamed(taken.back) };
    return taken.kind === 'instead' ? { ...taken, block: rename(taken.block) } : taken;
  };
  return outline.map((step) => ({
    ...step,
    block: rename(step.block),
    routes: step.routes.map((route) => ({ ...route, taken: takenOf(route.taken) })),
  }));
}
