// Files that others have written, read without trust: no link is followed, no pipe is waited for, and nothing large is
// taken in.

import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { ABSENT, isErrno } from './errno.ts';

export interface UntrustedFile {
  /** Null where it is larger than allowed. */
  readonly text: string | null;
  readonly mtimeMs: number;
  readonly ino: number;
}

/** Null where there is no plain file of that name that we may read. */
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
