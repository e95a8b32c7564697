// Texts that an input would not take as they are: they are written into a file, and the agent is told to read it.
//
// B1  What would end a bracketed paste is never in one.
// B2  A program that takes no bracketed paste reads keys: control characters would be commands to it or to its terminal,
//     and a terminal that reads lines for it cuts those that are too long.
// B3  What the adapter says that the agent's input alters, or takes for something else than a prompt, is not put into it.

import { join } from 'node:path';
import type { Alteration, Injection } from '../../../ir/adapter.ts';
import { fileName } from '../../step-folder.ts';
import { makeFolder, writePrivate } from '../../../sys/private-file.ts';

/** `isBracketed`: the program has asked for pastes to be told from keys. */
export function needsFile(text: string, injection: Injection, isBracketed: boolean): boolean {
  const { method, alters } = injection;
  if (NEVER_PASTED.some((piece) => text.includes(piece))) return true;
  if (alters.some((alteration) => ALTERED[alteration](text))) return true;
  if (isMisread(text, injection)) return true;
  if (method === 'paste' && isBracketed) return false;
  return CONTROLS.test(text) || text.split('\n').some((line) => Buffer.byteLength(line) > LINE_BYTES_MAX);
}

/** The input would take it for something else than a prompt. */
export function isMisread(text: string, { misread }: Pick<Injection, 'misread'>): boolean {
  return misread.some((pattern) => new RegExp(pattern, 'mu').test(text));
}

/** The end of a paste, in both spellings; and what no terminal can be given. */
const NEVER_PASTED = ['\u001b[201~', '\u009b201~', '\0'];
/** All but what a terminal passes on to a program that reads lines. */
const CONTROLS = /[^\P{Cc}\n\t]/u;
/** A terminal keeps 4,095 of a line that it reads for a program. */
const LINE_BYTES_MAX = 4_000;

const ALTERED: Readonly<Record<Alteration, (text: string) => boolean>> = {
  tabs: (text) => text.includes('\t'),
  'carriage-returns': (text) => text.includes('\r'),
  controls: (text) => /[^\P{Cc}\t\n\r]/u.test(text),
  invisibles: (text) => /[\p{Cf}\u00ad\u115f\u1160\u2800\u3164\uffa0]/u.test(text),
  composition: (text) => text !== text.normalize('NFC'),
};

/** Returns what the agent is told instead: one line. */
export function putIntoFile(startFolder: string, id: string, text: string): string {
  const folder = join(startFolder, 'prompts');
  const path = join(folder, `${fileName(id)}.md`);
  makeFolder(folder);
  writePrivate(path, text);
  return `Your task is in the file ${path}: read all of it, and do what it says.`;
}
