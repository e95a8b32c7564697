// Prints a diagnostic: a line that editors can jump to, the source line with an underline, the hint, and related
// positions.

import type { Diagnostic, Span } from '../base/diagnostic.ts';
import type { Json } from '../base/json.ts';
import type { Palette } from './palette.ts';
import { widthOf } from './row.ts';
import { sanitize } from './sanitize.ts';

const WINDOW = 100;
const TAB = 4;

/** Several lines, without a line end after the last. */
export function renderDiagnostic(diagnostic: Diagnostic, palette: Palette): string {
  const { severity, code, message, span, hint, related } = diagnostic;
  const style = severity === 'error' ? palette.red : palette.yellow;
  const gutter = ' '.repeat(String(span.line).length);
  const { source, squiggle } = excerpt(diagnostic);
  const lines = [
    `${palette.bold(`${positionText(span)}:`)} ${style(`${severity} ${code}:`)} ${sanitize(message)}`,
    `  ${palette.dim(`${span.line} |`)} ${source}`.trimEnd(),
    `  ${gutter} ${palette.dim('|')} ${style(squiggle)}`,
  ];
  if (hint !== null) lines.push(`  ${palette.cyan('hint:')} ${sanitize(hint)}`);
  for (const other of related)
    lines.push(`  ${palette.dim(`${positionText(other.span)}:`)} ${sanitize(other.message)}`);
  return lines.join('\n');
}

export function diagnosticJson(diagnostic: Diagnostic): Json {
  const { severity, code, message, span, sourceLine, sourceColumn, hint, related } = diagnostic;
  return {
    severity,
    code,
    message,
    ...spanJson(span),
    source_line: sourceLine,
    source_column: sourceColumn,
    hint,
    related: related.map((other) => ({ message: other.message, ...spanJson(other.span) })),
  };
}

function spanJson({ file, line, column, length }: Span): { readonly [key: string]: Json } {
  return { path: file, line, column, length };
}

function positionText({ file, line, column }: Span): string {
  return `${sanitize(file)}:${line}:${column}`;
}

/** The part of the source line around the span, and the underline. */
function excerpt(diagnostic: Diagnostic): { readonly source: string; readonly squiggle: string } {
  const { sourceLine, sourceColumn, span } = diagnostic;
  const cells = cellsOf(sourceLine);
  const from = Math.min(span.column - sourceColumn, cells.length);
  const to = Math.max(from + 1, Math.min(from + span.length, cells.length));
  // The span in the middle, as much of it as fits; room for an ellipsis on either side.
  let first = 0;
  let last = cells.length;
  if (columns(cells, 0, cells.length) > WINDOW) {
    const room = WINDOW - 2;
    first = from;
    last = from;
    let used = 0;
    const take = (index: number): boolean => {
      const width = widthOf(cells[index] ?? '');
      if (used + width > room) return false;
      used += width;
      return true;
    };
    while (last < to && last < cells.length && take(last)) last += 1;
    for (let grows = true; grows; ) {
      grows = false;
      if (first > 0 && take(first - 1)) {
        first -= 1;
        grows = true;
      }
      if (last < cells.length && take(last)) {
        last += 1;
        grows = true;
      }
    }
  }
  const head = first > 0 || sourceColumn > 1 ? '…' : '';
  const tail = last < cells.length ? '…' : '';
  const lead = widthOf(head) + columns(cells, first, from);
  const length = Math.max(1, columns(cells, from, Math.min(to, last)));
  return {
    source: head + cells.slice(first, last).join('') + tail,
    squiggle: `${' '.repeat(lead)}^${'~'.repeat(length - 1)}`,
  };
}

/** One cell per character: tabs reach to the next stop, control characters become blanks. */
function cellsOf(line: string): readonly string[] {
  const cells: string[] = [];
  let column = 0;
  for (const character of line) {
    const cell = character === '\t' ? ' '.repeat(TAB - (column % TAB)) : sanitize(character) || ' ';
    cells.push(cell);
    column += widthOf(cell);
  }
  return cells;
}

function columns(cells: readonly string[], from: number, to: number): number {
  let width = 0;
  for (let index = from; index < to; index++) width += widthOf(cells[index] ?? '');
  return width;
}

/** `2 errors, 1 warning` */
export function countText(diagnostics: readonly Diagnostic[]): string {
  const counts = (['error', 'warning'] as const).map((severity) => ({
    severity,
    count: diagnostics.filter((diagnostic) => diagnostic.severity === severity).length,
  }));
  const named = counts.filter(({ count }) => count > 0);
  return named.map(({ severity, count }) => `${count} ${severity}${count === 1 ? '' : 's'}`).join(', ');
}
