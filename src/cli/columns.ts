// Rows of cells, set in columns under a head.

import { padTo, widthOf } from '../view/row.ts';

/** Nothing where there are no rows. Cells are tame already. */
export function inColumns(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  const all = [head, ...rows];
  const widths = head.map((_, column) =>
    all.reduce((widest, cells) => Math.max(widest, widthOf(cells[column] ?? '')), 0),
  );
  return all.map((cells) =>
    cells
      .map((cell, column) => padTo(cell, widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
