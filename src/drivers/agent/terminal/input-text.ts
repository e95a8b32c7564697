// Finds a text in an agent's input on the screen. Inputs wrap lines, draw frames and show only the end of a long text:
// so this looks for the end of the text at the cursor, ignoring white space and frames. Pure.

import type { PaneCapture } from '../tmux/terminal-pane.ts';

/** The text left of the cursor in its row. */
export function rowAtCursor({ lines, cursor }: PaneCapture): string {
  return upToColumn(lines[cursor.row] ?? '', cursor.column).trimEnd();
}

/** Whether the text ends at the cursor. */
export function endsAtCursor(capture: PaneCapture, text: string): boolean {
  // The end of a long text is enough.
  const wanted = withoutFrame(text.slice(-TEXT_MAX)).slice(-TAIL_MAX);
  const row = withoutFrame(withoutPromptMark(rowAtCursor(capture)));
  // A cursor in an empty row follows anything above it, so it proves nothing.
  if (wanted === '' || row === '') return false;
  if (row.length >= wanted.length) return row.endsWith(wanted);
  const { lines, cursor } = capture;
  const above = lines.slice(Math.max(0, cursor.row - ROWS_MAX), cursor.row).map(withoutPromptMark);
  return withoutFrame([...above, withoutPromptMark(rowAtCursor(capture))].join('')).endsWith(wanted);
}

const TEXT_MAX = 1_000;
const TAIL_MAX = 40;
const ROWS_MAX = 6;

/** Removes the frame and the prompt character. */
function withoutPromptMark(row: string): string {
  return row.replace(/^[\s│┃║▏▎▌|]*[>❯›»$%#*•]?[\s]/u, '');
}

function withoutFrame(text: string): string {
  return text.normalize('NFC').replaceAll(/[\s\p{C}│┃║▏▎▌▕▐|]+/gu, '');
}

/**
 * Whether the text that an agent reports is this text or contains it, ignoring harmless changes by the input. A short
 * text must be equal, since it could be part of anything.
 */
export function containsPrompt(told: string, text: string): boolean {
  const [whole, part] = [essence(told), essence(text)];
  return whole === part || (part.length >= FOUND_MIN && whole.includes(part));
}

const FOUND_MIN = 20;

function essence(text: string): string {
  return text.normalize('NFC').replaceAll(/[\s\p{C}]+/gu, '');
}

/** Counts screen columns: wide characters take two, combining marks none. */
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
