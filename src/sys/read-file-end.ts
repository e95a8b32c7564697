// Reads the end of a file.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** A character that the cut splits becomes U+FFFD. Throws system errors. */
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
