// Small files of JSON. Each gets its name when it is complete, and is private to its user.

import { existsSync, readFileSync, renameSync } from 'node:fs';
import { ABSENT, isErrno } from './errno.ts';
import { writePrivate } from './private-file.ts';

export function writeJsonFile(path: string, value: unknown): void {
  writePrivate(`${path}.new`, `${JSON.stringify(value)}\n`);
  renameSync(`${path}.new`, path);
}

/** The same for what comes late: a run whose folder has been taken away meanwhile needs it no more. */
export function writeJsonFileIfWanted(path: string, value: unknown): void {
  try {
    writeJsonFile(path, value);
  } catch (error) {
    if (!isErrno(error, ...ABSENT)) throw error;
  }
}

/** Null where it is absent, or the machine has lost its end: then nothing that it tells of has outlived the machine. */
export function readJsonFile(path: string): unknown {
  // Most are absent, and exceptions are dear.
  if (!existsSync(path)) return null;
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    if (isErrno(error, ...ABSENT) || error instanceof SyntaxError) return null;
    throw error;
  }
}
