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

/** What the input shows of a text. `submitsLines`: each line is submitted as it is put in, so only the last is left. */
export function leftInInput(text: string, submitsLines: boolean): string {
  return submitsLines ? (text.trimEnd().split('\n').at(-1) ?? '') : text;
}

/** Blank columns between that text and the cursor; 0 if there is no text. */
export function blanksAtCursor(capture: PaneCapture): number {
  const row = rowAtCursor(capture);
  let columns = 0;
  for (const character of row) columns += widthOf(character);
  return row === '' ? 0 : Math.max(0, capture.cursor.column - columns);
}

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

function withoutPromptMark(row: string): string {
  return row.replace(/^[\s│┃║▏▎▌|]*[>❯›»$%#*•]?[\s]/u, '');
}

function withoutFrame(text: string): string {
  return text.normalize('NFC').replaceAll(/[\s\p{C}│┃║▏▎▌▕▐|]+/gu, '');
}

/**
 * Where the end of a text is on a screen, as the number of rows with text below it; null if it is not there. Finds a text
 * in an input whose cursor is elsewhere. A short text could be part of anything.
 */
export function rowsBelow(screen: string, text: string): number | null {
  const wanted = withoutFrame(text.slice(-TEXT_MAX)).slice(-TAIL_MAX);
  if (wanted.length < SHORT) return null;
  const rows = screen.split('\n').map((row) => withoutFrame(withoutPromptMark(row)));
  const at = rows.join('').lastIndexOf(wanted);
  if (at === -1) return null;
  let end = 0;
  const last = rows.findIndex((row) => (end += row.length) >= at + wanted.length);
  return rows.slice(last + 1).filter((row) => row !== '').length;
}

const SHORT = 8;

/**
 * Whether this is the beginning of a text, as a slow program echoes it, or a placeholder for a pasted text. Anything else
 * in an input may be output that the program makes by itself.
 */
export function standsFor(shown: string, text: string): boolean {
  const part = withoutFrame(shown);
  return part !== '' && (withoutFrame(text).startsWith(part) || PLACEHOLDER.test(shown));
}

const PLACEHOLDER = /\[[^\]]+\]|\bpast(?:e|ed)\b/iu;

/**
 * Whether a screen differs from an earlier one by nothing but the text itself: echoed at the end, where the screen may
 * have scrolled, or shown anywhere in it. Terminals echo control characters like `^[`.
 */
export function isEcho(before: string, now: string, text: string): boolean {
  const plain = (each: string): string => withoutFrame(each).replaceAll(/\^[@-_]/g, '');
  const [old, shown, put] = [plain(before), plain(now), plain(text)];
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
  if (NEVER_PASTED.some((piece) => text.includes(piece)) || isMisread(text, injection)) return true;
  if (injection.alters.some((alteration) => ALTERED[alteration](text))) return true;
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
