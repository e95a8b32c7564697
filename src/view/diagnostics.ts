// Prints a diagnostic: a line that editors can jump to, the source line with an underline, the hint, and related
// positions.

import type { Json } from '../base/json.ts';
import { sanitize } from '../base/sanitize.ts';
import type { Diagnostic, Span } from '../base/source.ts';
import { counted, type Palette, widthOf } from './row.ts';

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
  const text = (start: number, end: number): string => cells.slice(start, end).join('');
  let first = 0;
  let last = cells.length;
  if (widthOf(text(first, last)) > WINDOW) {
    // The span in the middle, as much of it as fits; room for an ellipsis on either side.
    let room = WINDOW - 2;
    first = from;
    last = from;
    const take = (index: number): boolean => {
      const cell = cells[index];
      if (cell === undefined || widthOf(cell) > room) return false;
      room -= widthOf(cell);
      return true;
    };
    while (last < to && take(last)) last += 1;
    for (let grows = true; grows; ) {
      const growsLeft = take(first - 1);
      if (growsLeft) first -= 1;
      const growsRight = take(last);
      if (growsRight) last += 1;
      grows = growsLeft || growsRight;
    }
  }
  const head = first > 0 || sourceColumn > 1 ? '…' : '';
  const tail = last < cells.length ? '…' : '';
  const lead = widthOf(head + text(first, from));
  const length = Math.max(1, widthOf(text(from, Math.min(to, last))));
  return {
    source: head + text(first, last) + tail,
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

/** `2 errors, 1 warning` */
export function countText(diagnostics: readonly Diagnostic[]): string {
  const counts = (['error', 'warning'] as const).flatMap((severity) => {
    const count = diagnostics.filter((diagnostic) => diagnostic.severity === severity).length;
    return count === 0 ? [] : [counted(count, severity)];
  });
  return counts.join(', ');
}
