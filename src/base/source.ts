// A text that somebody wrote, and where things stand in it. Parsers count offsets; people read lines and columns.

import type { Span } from './diagnostic.ts';

export interface Source {
  /** Path as the user wrote it. */
  readonly file: string;
  readonly text: string;
  /** Offset of the first character of each line. */
  readonly lineStarts: readonly number[];
  /** The place whose column was counted last: problems come in the order of the text, also those of a very long line. */
  readonly counted: { line: number; offset: number; column: number };
}

/** Offsets in the text: the first character, and the one after the last. */
export interface Place {
  readonly from: number;
  readonly to: number;
}

/** A byte order mark is no part of the text. */
export function makeSource(file: string, written: string): Source {
  const text = written.startsWith('\uFEFF') ? written.slice(1) : written;
  const lineStarts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lineStarts.push(at + 1);
  return { file, text, lineStarts, counted: { line: 0, offset: 0, column: 1 } };
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
    length: Math.max(1, characters(source.text, from, Math.min(place.to, end))),
  };
}

/** How much of a line is kept on either side of the place where something begins in it. */
const EXCERPT = 500;

/** The line a place begins on, without its line end; of a very long one the part around it, and where that begins. */
export function excerptOf(source: Source, place: Place): { readonly text: string; readonly column: number } {
  const index = lineIndexAt(source, place.from);
  const start = source.lineStarts[index] ?? 0;
  const line = lineText(source, index);
  const at = Math.min(place.from - start, line.length);
  const from = wholeCharacter(line, Math.max(0, at - EXCERPT));
  const to = wholeCharacter(line, Math.min(line.length, at + EXCERPT));
  return {
    text: line.slice(from, to),
    column: columnAt(source, index, start + at) - characters(source.text, start + from, start + at),
  };
}

function columnAt({ text, lineStarts, counted }: Source, line: number, offset: number): number {
  const goesOn = counted.line === line && counted.offset <= offset;
  const column = goesOn
    ? counted.column + characters(text, counted.offset, offset)
    : 1 + characters(text, lineStarts[line] ?? 0, offset);
  Object.assign(counted, { line, offset, column });
  return column;
}

/** Not between the halves of a pair of surrogates. */
function wholeCharacter(text: string, at: number): number {
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

/** As people count them: a pair of surrogates is one. */
function characters(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0xdc00 || unit > 0xdfff) count += 1;
  }
  return count;
}
