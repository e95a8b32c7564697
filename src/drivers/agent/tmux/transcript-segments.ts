// What a terminal prints, kept in files that do not grow for ever: the first part in the file itself, later ones beside it,
// each named for the byte that it begins with (`transcript.16777216`). Of those the last two are kept, and the one that is being written. So every byte has one
// place, that it keeps, and what was printed in between is forgotten.

import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ABSENT, isErrno } from '../../../sys/errno.ts';

export interface Segment {
  readonly path: string;
  /** The place of its first byte. */
  readonly at: number;
  readonly size: number;
}

/** Of the part that begins there, be it there or not. */
export function segmentPath(path: string, at: number): string {
  return `${path}.${at}`;
}

/** In their order; there may be a gap behind the first. */
export function segmentsOf(path: string): readonly Segment[] {
  const prefix = `${basename(path)}.`;
  const later = namesIn(dirname(path)).flatMap((name) => {
    const at = name.startsWith(prefix) ? name.slice(prefix.length) : '';
    return /^\d+$/.test(at) ? [{ path: join(dirname(path), name), at: Number(at) }] : [];
  });
  return [{ path, at: 0 }, ...later.toSorted((a, b) => a.at - b.at)].flatMap((part) => {
    const size = sizeOf(part.path);
    return size === null ? [] : [{ ...part, size }];
  });
}

/**
 * A script that keeps its stdin in parts of the file that is its first argument. `dd` writes what it reads at once, and
 * counts how often it has read: a part has 16 MiB at most, and less where a terminal prints little at a time.
 */
export const KEEP_PARTS = `umask 077
keep() { dd bs=4096 count=4096 2>/dev/null >>"$1"; }
keep "$1"
at=$(wc -c <"$1")
before= older=
while :; do
part=$1.$((at))
keep "$part"
size=$(wc -c <"$part")
if [ $((size)) -eq 0 ]; then rm -f "$part"; break; fi
at=$((at + size))
if [ -n "$older" ]; then rm -f "$older"; fi
older=$before before=$part
done`;

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return [];
    throw error;
  }
}

/** Null where it was forgotten meanwhile. */
function sizeOf(path: string): number | null {
  try {
    return statSync(path).size;
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}
