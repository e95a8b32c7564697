// Folders and files that are private to their user, whatever the umask.

import { chmodSync, fchmodSync, mkdirSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isErrno } from './errno.ts';

/** Read once: reading the umask changes it for a moment. */
export const UMASK = process.umask();

/** The umask takes permissions from the owner as well. */
export const OWNER_MASKED = (UMASK & 0o700) !== 0;

/** Creates the folder and its parents; succeeds if it exists. */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path, 0o700);
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return;
    if (!isErrno(error, 'ENOENT')) throw error;
    makeFolder(dirname(path));
    mkdirSync(path, 0o700);
  }
  if (OWNER_MASKED) chmodSync(path, 0o700);
}

/** Opens for appending: a second open destroys nothing, and a command that truncates its own output leaves no hole. */
export function openPrivate(path: string): number {
  const file = openSync(path, 'a', 0o600);
  if (OWNER_MASKED) fchmodSync(file, 0o600);
  return file;
}

export function writePrivate(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
  if (OWNER_MASKED) chmodSync(path, 0o600);
}

/** A reader finds the old contents or the new, never a part. */
export function replacePrivate(path: string, text: string): void {
  writePrivate(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
