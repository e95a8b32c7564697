// Finds a text in an agent's input on the screen. Inputs wrap lines, draw frames and show only the end of a long text:
// so this looks for the end of the text at the cursor, ignoring white space and frames. Pure.

import { join } from 'node:path';

import type { Alteration, Injection } from '../../../ir/adapter.ts';
import { makeFolder, writePrivate } from '../../../sys/files.ts';
import { fileName } from '../../step-folder.ts';
import type { PaneCapture } from '../tmux/terminal-pane.ts';

/** The text left of the cursor in its row. */
export function rowAtCursor({ lines, cursor }: PaneCapture): string {
  return upToColumn(lines[cursor.row] ?? '', cursor.column).trimEnd();
}

/** Whether the text ends at the cursor. */
export function endsAtCursor(capture: PaneCapture, text: string): boolean {
  // The end of a long text is enough.
  const wanted = withoutFrame(text.slice(-TEXT_MAX)).slice(-TAIL_MAX);
  const last = rowAtCursor(capture);
  const row = withoutFrame(withoutPromptMark(last));
  // A cursor in an empty row follows anything above it, so it proves nothing.
  if (wanted === '' || row === '') return false;
  if (row.length >= wanted.length) return row.endsWith(wanted);
  const { lines, cursor } = capture;
  const rows = [...lines.slice(Math.max(0, cursor.row - ROWS_MAX), cursor.row), last];
  return withoutFrame(rows.map(withoutPromptMark).join('')).endsWith(wanted);
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
 * Whether a screen differs from an earlier one by nothing but the text itself: echoed at the end, where the screen may
 * have scrolled, or shown anywhere in it. Terminals echo control characters like `^[`.
 */
export function isEcho(before: string, now: string, text: string): boolean {
  const [old, shown, put] = [before, now, text].map((each) => withoutFrame(each).replaceAll(/\^[@-_]/g, ''));
  if (old === undefined || shown === undefined || put === undefined) return false;
  return shown === old || `${old}${put}`.endsWith(shown) || shown.replace(put, () => '') === old;
}

/** Whether the text that an agent reports is this text or contains it, ignoring harmless changes by the input. */
export function containsPrompt(reported: string, text: string): boolean {
  const [whole, part] = [essence(reported), essence(text)];
  return whole === part || (part.length >= FOUND_MIN && whole.includes(part));
}

/** A shorter text must be equal, since it could be part of anything. */
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
  return WIDE.test(character) ? 2 : 1;
}

const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u;

// Texts that an input would not accept unchanged: they are written to a file, and the agent is told to read it.
//
// prompt-file/1  A text that contains the end of a bracketed paste is never pasted.
// prompt-file/2  A program without bracketed paste reads keys: control characters would be commands for it or its
//                terminal, and a terminal that reads lines truncates long ones.
// prompt-file/3  A text that the agent's input alters or misreads, according to the adapter, is never put into it.

/** `isBracketed`: the program enabled bracketed paste. */
export function needsFile(text: string, injection: Injection, isBracketed: boolean): boolean {
  if (NEVER_PASTED.some((piece) => text.includes(piece))) return true;
  if (injection.alters.some((alteration) => ALTERED[alteration](text))) return true;
  if (isMisread(text, injection)) return true;
  if (isBracketed) return false;
  return CONTROLS.test(text) || text.split('\n').some((line) => Buffer.byteLength(line) > LINE_BYTES_MAX);
}

/** The input would not treat the text as a prompt. */
export function isMisread(text: string, { misread }: Pick<Injection, 'misread'>): boolean {
  return misread.some((pattern) => new RegExp(pattern, 'mu').test(text));
}

/** The end of a paste in both encodings, and NUL. */
const NEVER_PASTED = ['\u001b[201~', '\u009b201~', '\0'];
/** All control characters except those that a terminal passes to a program that reads lines. */
const CONTROLS = /[^\P{Cc}\n\t]/u;
/** A terminal in line mode keeps 4,095 bytes of a line. */
const LINE_BYTES_MAX = 4_000;

const ALTERED: Readonly<Record<Alteration, (text: string) => boolean>> = {
  tabs: (text) => text.includes('\t'),
  'carriage-returns': (text) => text.includes('\r'),
  controls: (text) => /[^\P{Cc}\t\n\r]/u.test(text),
  invisibles: (text) => /[\p{Cf}\u00ad\u115f\u1160\u2800\u3164\uffa0]/u.test(text),
  composition: (text) => text !== text.normalize('NFC'),
};

/** Returns the single line that the agent is told instead. */
export function putIntoFile(startFolder: string, id: string, text: string): string {
  const folder = join(startFolder, 'prompts');
  const path = join(folder, `${fileName(id)}.md`);
  makeFolder(folder);
  writePrivate(path, text);
  return `Your task is in the file ${path}: read all of it, and do what it says.`;
}
