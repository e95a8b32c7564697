// What the terminal can do: colours, redrawing, its size. A terminal that reports 0 × 0, as in CI and containers, counts as
// 80 × 24.

import pc from 'picocolors';

import type { Palette } from '../view/palette.ts';
import { plainPalette } from '../view/palette.ts';
import { padTo, widthOf } from '../view/row.ts';

/** Colours only on terminals, and not with NO_COLOR. */
export function paletteFor(stream: { readonly isTTY?: boolean }): Palette {
  const { NO_COLOR, TERM } = process.env;
  const wanted = stream.isTTY === true && (NO_COLOR === undefined || NO_COLOR === '') && TERM !== 'dumb';
  return wanted ? pc.createColors(true) : plainPalette;
}

/** Whether lines can be redrawn in place. */
export function canRedraw(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export function terminalSize(terminal: Partial<TerminalSize>): TerminalSize {
  return { columns: terminal.columns || 80, rows: terminal.rows || 24 };
}

/** The maximum width of a line; unlimited outside of terminals. */
export function lineWidth(stream: Partial<TerminalSize> & { readonly isTTY?: boolean }): number {
  return stream.isTTY === true ? terminalSize(stream).columns : Infinity;
}

/** A table with a head; empty if there are no rows. Cells must be sanitized. */
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
