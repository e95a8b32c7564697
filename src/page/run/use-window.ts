// Which rows of a long list are in the document: those that can be seen, and some above and below. All rows have one height.

import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface RowWindow {
  readonly first: number;
  /** Exclusive. */
  readonly end: number;
  readonly container: RefObject<HTMLDivElement | null>;
  /** Scrolls as little as possible. */
  readonly show: (index: number) => void;
}

const AROUND = 12;
/** Never more rows than this, however high the window is. */
const ROWS_MAX = 150;

/** `head`: height of what sticks to the upper edge of the container. */
export function useWindow(count: number, rowHeight: number, head: number): RowWindow {
  const container = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const { current } = container;
    if (current === null) return undefined;
    const measure = (): void => {
      // Only what changes the rows is drawn.
      const top = Math.floor(current.scrollTop / rowHeight) * rowHeight;
      const height = current.clientHeight;
      setPlace((before) => (before.top === top && before.height === height ? before : { top, height }));
    };
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    current.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      current.removeEventListener('scroll', measure);
    };
  }, [rowHeight]);
  const top = Math.min(place.top, Math.max(0, count * rowHeight - place.height));
  const first = Math.max(0, Math.floor(top / rowHeight) - AROUND);
  const end = Math.min(count, first + ROWS_MAX, Math.ceil((top + place.height) / rowHeight) + AROUND);
  const show = (index: number): void => {
    const { current } = container;
    if (current === null) return;
    const [above, below] = [index * rowHeight, (index + 1) * rowHeight + head];
    if (above < current.scrollTop) current.scrollTop = above;
    else if (below > current.scrollTop + current.clientHeight) current.scrollTop = below - current.clientHeight;
  };
  return { first, end, container, show };
}
