// How a route of the layout is drawn.

import type { Point, Route } from '../view/layout.ts';

/** Straight and curved in turn. */
export function pathOf({ points, isSelfLoop }: Route<unknown>): string {
  const [from, turn, to] = points;
  if (from === undefined) return '';
  if (isSelfLoop && turn !== undefined && to !== undefined) {
    // A cubic curve reaches three quarters of the way to its control points.
    const reach = from.x + (turn.x - from.x) / 0.75;
    return `M${at(from)}C${reach} ${from.y} ${reach} ${to.y} ${at(to)}`;
  }
  const parts = points.slice(1).map((point, index) => {
    const before = points[index] ?? point;
    const middle = (before.y + point.y) / 2;
    return index % 2 === 0 ? `L${at(point)}` : `C${before.x} ${middle} ${point.x} ${middle} ${at(point)}`;
  });
  return `M${at(from)}${parts.join('')}`;
}

function at({ x, y }: Point): string {
  return `${x} ${y}`;
}
