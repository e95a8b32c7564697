// Text for one row of a terminal: its colours, and its width in columns, cut and padded to fit.

export type Style = (text: string) => string;

export type Palette = Readonly<
  Record<'bold' | 'dim' | 'inverse' | 'red' | 'green' | 'yellow' | 'cyan' | 'magenta', Style>
>;

const plain: Style = (text) => text;
export const plainPalette: Palette = {
  bold: plain,
  dim: plain,
  inverse: plain,
  red: plain,
  green: plain,
  yellow: plain,
  cyan: plain,
  magenta: plain,
};

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

/** `1 step`, `2 steps`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

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
/** First code points of ranges that take two columns and one column, alternately. */
const WIDTH_CHANGES = [
  0x1100, 0x1160, 0x231a, 0x231c, 0x23e9, 0x23ed, 0x2e80, 0x303f, 0x3041, 0x4dc0, 0x4e00, 0xa4d0, 0xa960, 0xa97d,
  0xac00, 0xd7a4, 0xf900, 0xfb00, 0xfe30, 0xfe70, 0xff01, 0xff61, 0xffe0, 0xffe7, 0x1f300, 0x1f650, 0x1f680, 0x1f700,
  0x1f900, 0x1fa00, 0x1fa70, 0x1fb00, 0x20000, 0x3fffe,
];
const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;

function columnsOf(code: number): number {
  if (code < 0x300) return 1;
  if (NO_WIDTH.test(String.fromCodePoint(code))) return 0;
  return WIDTH_CHANGES.findLastIndex((first) => code >= first) % 2 === 0 ? 2 : 1;
}
