// The end of a file, whatever is in it.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** At most so many bytes; what is cut in the middle of a character begins with a mark for that. Throws as the system does. */
export function readFileEnd(path: string, bytesMax: number): string {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, bytesMax));
    const length = readSync(file, bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(file);
  }
}
