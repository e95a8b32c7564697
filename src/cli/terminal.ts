// What the terminal can do: colours, redrawing, its size. A terminal that reports 0 × 0, as in CI and containers, counts as
// 80 × 24.

import pc from 'picocolors';

import type { Diagnostic } from '../base/source.ts';
import { countText, renderDiagnostic } from '../view/diagnostics.ts';
import { padTo, type Palette, plainPalette, widthOf } from '../view/row.ts';
import { warn } from './output.ts';

/** Colours only on terminals, and not with NO_COLOR; FORCE_COLOR overrides both, as in Node. */
export function paletteFor(stream: { readonly isTTY?: boolean }): Palette {
  const { FORCE_COLOR = '', NO_COLOR = '', TERM } = process.env;
  const byDefault = stream.isTTY === true && NO_COLOR === '' && TERM !== 'dumb';
  const wanted = FORCE_COLOR === '' ? byDefault : FORCE_COLOR !== '0' && FORCE_COLOR !== 'false';
  return wanted ? pc.createColors(true) : plainPalette;
}

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

/** Prints all of them on stderr, and their number. */
export function printDiagnostics(diagnostics: readonly Diagnostic[], palette: Palette): void {
  for (const diagnostic of diagnostics) warn(renderDiagnostic(diagnostic, palette));
  if (diagnostics.length > 0) warn(countText(diagnostics));
}
