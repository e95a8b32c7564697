// Texts that an input would not accept unchanged: they are written to a file, and the agent is told to read it.
//
// prompt-file/1  A text that contains the end of a bracketed paste is never pasted.
// prompt-file/2  A program without bracketed paste reads keys: control characters would be commands for it or its
//                terminal, and a terminal that reads lines truncates long ones.
// prompt-file/3  A text that the agent's input alters or misreads, according to the adapter, is never put into it.

import { join } from 'node:path';
import type { Alteration, Injection } from '../../../ir/adapter.ts';
import { fileName } from '../../step-folder.ts';
import { makeFolder, writePrivate } from '../../../sys/private-file.ts';

/** `isBracketed`: the program enabled bracketed paste. */
export function needsFile(text: string, injection: Injection, isBracketed: boolean): boolean {
  const { method, alters } = injection;
  if (NEVER_PASTED.some((piece) => text.includes(piece))) return true;
  if (alters.some((alteration) => ALTERED[alteration](text))) return true;
  if (isMisread(text, injection)) return true;
  if (method === 'paste' && isBracketed) return false;
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
