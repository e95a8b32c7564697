// A text in the input of an agent, as far as a screen tells. Inputs wrap, draw frames and show no more than the end of a long
// text: so its end is looked for, where the cursor is, and white space and frames count for nothing. Pure.

import type { Look } from '../tmux/terminal-pane.ts';

/** What is left of the cursor, in its row. */
export function rowAtCursor({ lines, cursor }: Look): string {
  return upToColumn(lines[cursor.row] ?? '', cursor.column).trimEnd();
}

/** Whether a text ends at the cursor. */
export function endsAtCursor(look: Look, text: string): boolean {
  // Of a long text, most need not be looked at.
  const wanted = bare(text.slice(-TEXT_MAX)).slice(-TAIL_MAX);
  const row = bare(unprompted(rowAtCursor(look)));
  // A cursor in an empty row is behind whatever is above it, and in it stands nothing.
  if (wanted === '' || row === '') return false;
  if (row.length >= wanted.length) return row.endsWith(wanted);
  const { lines, cursor } = look;
  const above = lines.slice(Math.max(0, cursor.row - ROWS_MAX), cursor.row).map(unprompted);
  return bare([...above, unprompted(rowAtCursor(look))].join('')).endsWith(wanted);
}

const TEXT_MAX = 1_000;
const TAIL_MAX = 40;
const ROWS_MAX = 6;

/** Without the frame, and without the mark that an input begins with. */
function unprompted(row: string): string {
  return row.replace(/^[\s│┃║▏▎▌|]*[>❯›»$%#*•]?[\s]/u, '');
}

function bare(text: string): string {
  return text.normalize('NFC').replaceAll(/[\s\p{C}│┃║▏▎▌▕▐|]+/gu, '');
}

/**
 * Whether what an agent says that it was given is this text, or has it in it together with more. What an input may change
 * without harm makes no difference; a short text could be in anything, and is in nothing but itself.
 */
export function wasGiven(told: string, text: string): boolean {
  const [whole, part] = [essence(told), essence(text)];
  return whole === part || (part.length >= FOUND_MIN && whole.includes(part));
}

const FOUND_MIN = 20;

function essence(text: string): string {
  return text.normalize('NFC').replaceAll(/[\s\p{C}]+/gu, '');
}

/** Columns are those of a screen, of which wide characters take two and marks none. */
function upToColumn(row: string, column: number): string {
  let taken = 0;
  let text = '';
  for (const character of row) {
    if (taken >= column && !/\p{M}/u.test(character)) break;
    text += character;
    taken += widthOf(character);
  }
  return text;
}

function widthOf(character: string): number {
  if (/[\p{M}\p{Cf}]/u.test(character)) return 0;
  return /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u.test(
    character,
  )
    ? 2
    : 1;
}
