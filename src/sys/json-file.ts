// Small JSON files, private to their user and replaced as a whole.

import { existsSync, readFileSync } from 'node:fs';
import { ABSENT, isErrno } from './errno.ts';
import { replacePrivate } from './private-file.ts';

export function writeJsonFile(path: string, value: unknown): void {
  replacePrivate(path, `${JSON.stringify(value)}\n`);
}

/** Does nothing if the folder is gone: the run was deleted meanwhile. */
export function writeJsonFileIfWanted(path: string, value: unknown): void {
  try {
    writeJsonFile(path, value);
  } catch (error) {
    if (!isErrno(error, ...ABSENT)) throw error;
  }
}

/** Null if absent or truncated by a machine crash: then nothing that it describes survived the machine. */
export function readJsonFile(path: string): unknown {
  // Most are absent, and exceptions are slow.
  if (!existsSync(path)) return null;
  try {
    return parseIfWhole(readFileSync(path, 'utf8'));
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}

/** Null if the text is not JSON. */
export function parseIfWhole(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
