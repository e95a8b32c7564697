// Reads files that others have written: follows no links, waits for no pipes, and limits the size.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { ABSENT, isErrno } from './errno.ts';

export interface UntrustedFile {
  /** Null if the file is too large. */
  readonly text: string | null;
  readonly mtimeMs: number;
  readonly ino: number;
}

/** Null if the path is not a regular file that we may read. */
export function readUntrustedFile(path: string, bytesMax: number): UntrustedFile | null {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isErrno(error, ...ABSENT, 'ELOOP', 'EACCES', 'EPERM', 'ENXIO', 'EMLINK')) return null;
    throw error;
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) return null;
    const { size, mtimeMs, ino } = stats;
    if (size > bytesMax) return { text: null, mtimeMs, ino };
    const bytes = Buffer.alloc(size);
    let length = 0;
    for (let read = -1; read !== 0 && length < size; length += read)
      read = readSync(file, bytes, length, size - length, null);
    return { text: bytes.toString('utf8', 0, length), mtimeMs, ino };
  } finally {
    closeSync(file);
  }
}
