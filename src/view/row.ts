// Text for one row of a terminal: its width in columns, cut and padded to fit.

import type { Style } from './palette.ts';

/** A part of a row. Its style is applied after cutting, so that escape codes are never cut or counted. */
export interface Segment {
  readonly text: string;
  readonly style: Style | null;
}

/** Number of terminal columns of a sanitized text. */
export function widthOf(text: string): number {
  if (PRINTABLE_ASCII.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += columnsOf(character.codePointAt(0) ?? 0);
  return width;
}

/** Cuts to the given width; an ellipsis replaces the rest. */
export function cut(text: string, width: number, ellipsis = '…'): string {
  if (widthOf(text) <= width) return text;
  const room = width - widthOf(ellipsis);
  if (room < 0) return '';
  let used = 0;
  let kept = '';
  for (const character of text) {
    used += columnsOf(character.codePointAt(0) ?? 0);
    if (used > room) break;
    kept += character;
  }
  return kept + ellipsis;
}

export function padTo(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

/** Joins the segments into one row. */
export function row(pieces: readonly Segment[], width: number, ellipsis = '…'): string {
  let left = width;
  let line = '';
  for (const { text, style } of pieces) {
    if (text === '') continue;
    const fitting = cut(text, left, ellipsis);
    line += style === null || fitting === '' ? fitting : style(fitting);
    if (fitting !== text) break;
    left -= widthOf(fitting);
  }
  return line;
}

const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;
/** First and last code point of each range that takes two columns. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x231a, 0x231b],
  [0x23e9, 0x23ec],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1f9ff],
  [0x1fa70, 0x1faff],
  [0x20000, 0x3fffd],
];

const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;

function columnsOf(code: number): number {
  if (code < 0x300) return 1;
  if (NO_WIDTH.test(String.fromCodePoint(code))) return 0;
  return WIDE.some(([first, last]) => code >= first && code <= last) ? 2 : 1;
}
