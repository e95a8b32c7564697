// The order of a list that changes by itself. While the pointer is over it, nothing moves: a row must not jump away from a
// click. What is new comes last until the pointer leaves.

import { useRef, useState } from 'preact/hooks';

export interface SteadyOrder<T> {
  readonly items: readonly T[];
  /** For the element around the list. */
  readonly pointer: { readonly onPointerEnter: () => void; readonly onPointerLeave: () => void };
}

export function useSteadyOrder<T>(items: readonly T[], keyOf: (item: T) => string): SteadyOrder<T> {
  const shown = useRef<readonly string[]>([]);
  const [isHeld, setHeld] = useState(false);
  const places = new Map(shown.current.map((key, index) => [key, index]));
  const placeOf = (item: T): number => places.get(keyOf(item)) ?? Infinity;
  const steady = isHeld ? items.toSorted((a, b) => compare(placeOf(a), placeOf(b))) : items;
  shown.current = steady.map(keyOf);
  return {
    items: steady,
    pointer: { onPointerEnter: () => setHeld(true), onPointerLeave: () => setHeld(false) },
  };
}

/** Two new ones keep their order. */
function compare(a: number, b: number): number {
  return a === b ? 0 : a - b;
}
