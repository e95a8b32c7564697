// A source text with positions, and the problems found in it. Parsers count offsets; people read lines and columns.

export interface Source {
  /** Path as the user wrote it. */
  readonly file: string;
  readonly text: string;
  /** Offset of the first character of each line. */
  readonly lineStarts: readonly number[];
  /** The column computed last. Diagnostics come in text order, so the next column is counted from here. */
  readonly lastColumn: { line: number; offset: number; column: number };
}

/** Offsets in the text: the first character, and the one after the last. */
export interface Place {
  readonly from: number;
  readonly to: number;
}

/** Drops a byte order mark. */
export function makeSource(file: string, written: string): Source {
  const text = written.startsWith('\uFEFF') ? written.slice(1) : written;
  const lineStarts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lineStarts.push(at + 1);
  return { file, text, lineStarts, lastColumn: { line: 0, offset: 0, column: 1 } };
}

export function spanOf(source: Source, place: Place): Span {
  const line = lineIndexAt(source, place.from);
  const start = source.lineStarts[line] ?? 0;
  const end = start + lineText(source, line).length;
  const from = Math.min(place.from, end);
  return {
    file: source.file,
    line: line + 1,
    column: columnAt(source, line, from),
    length: Math.max(1, countCharacters(source.text, from, Math.min(place.to, end))),
  };
}

/** Inverse of `spanOf`, in the same text. If the text has changed since, the place is still inside it. */
export function placeOf(source: Source, { line, column, length }: Span): Place {
  const start = source.lineStarts[line - 1];
  if (start === undefined) return { from: source.text.length, to: source.text.length };
  const text = lineText(source, line - 1);
  const from = skipCharacters(text, 0, column - 1);
  return { from: start + from, to: start + skipCharacters(text, from, length) };
}

/** Characters of a long line shown before and after a position. */
const EXCERPT_CHARACTERS = 500;

/** The line where the range starts, without its line end. For a very long line, an excerpt and its start column. */
export function excerptOf(source: Source, place: Place): { readonly text: string; readonly column: number } {
  const index = lineIndexAt(source, place.from);
  const start = source.lineStarts[index] ?? 0;
  const line = lineText(source, index);
  const at = Math.min(place.from - start, line.length);
  const from = characterStart(line, Math.max(0, at - EXCERPT_CHARACTERS));
  const to = characterStart(line, Math.min(line.length, at + EXCERPT_CHARACTERS));
  return {
    text: line.slice(from, to),
    column: columnAt(source, index, start + at) - countCharacters(source.text, start + from, start + at),
  };
}

function columnAt({ text, lineStarts, lastColumn: counted }: Source, line: number, offset: number): number {
  const continues = counted.line === line && counted.offset <= offset;
  const column = continues
    ? counted.column + countCharacters(text, counted.offset, offset)
    : 1 + countCharacters(text, lineStarts[line] ?? 0, offset);
  Object.assign(counted, { line, offset, column });
  return column;
}

/** Moves off the middle of a surrogate pair. */
function characterStart(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? Math.max(0, at - 1) : at;
}

function lineIndexAt({ lineStarts }: Source, offset: number): number {
  let low = 0;
  let high = lineStarts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((lineStarts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}

function lineText({ text, lineStarts }: Source, index: number): string {
  const next = lineStarts[index + 1];
  const line = text.slice(lineStarts[index], next === undefined ? text.length : next - 1);
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

/** Counts a surrogate pair as one. */
function countCharacters(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0xdc00 || unit > 0xdfff) count += 1;
  }
  return count;
}

/** Offset after so many characters, at most the length of the text. */
function skipCharacters(text: string, from: number, count: number): number {
  let at = from;
  for (let skipped = 0; skipped < count && at < text.length; skipped++)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return at;
}

/** Diagnostics: an error or warning in an author's text, with its position and a fix. Data only; faces render it. */
export interface Span {
  /** Path as the user wrote it. */
  readonly file: string;
  /** Both count from 1. */
  readonly line: number;
  readonly column: number;
  /** Length of the underline in characters; at least 1, cut at the end of the line. */
  readonly length: number;
}

export interface Diagnostic {
  readonly severity: 'error' | 'warning';
  /** Stable, kebab-case: `unknown-need`. */
  readonly code: string;
  readonly message: string;
  readonly span: Span;
  /** The source line without its line end; an excerpt if it is very long. */
  readonly sourceLine: string;
  /** The column where `sourceLine` starts: 1 unless it is an excerpt. */
  readonly sourceColumn: number;
  /** How to fix it, as a sentence; null if the message is enough. */
  readonly hint: string | null;
  readonly related: readonly { readonly message: string; readonly span: Span }[];
}

export function hasErrors(diagnostics: readonly Diagnostic[]): boolean {
  return diagnostics.some(({ severity }) => severity === 'error');
}
