// The output of a terminal in files of bounded size: the first segment in the file itself, later ones beside it, each
// named after the offset of its first byte (`transcript.16777216`). The last two complete segments and the current one
// are kept. So every byte keeps its offset, and output in the middle is deleted.

import { readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ABSENT, isErrno } from '../../../sys/errno.ts';

export interface Segment {
  readonly path: string;
  /** Offset of its first byte. */
  readonly at: number;
  readonly size: number;
}

/** Path of the segment that starts there, whether or not it exists. */
export function segmentPath(path: string, at: number): string {
  return `${path}.${at}`;
}

/** In order; a gap may follow the first. */
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
 * A shell script that stores its stdin in segments of the file given as first argument. `dd` writes each read at once
 * and counts reads: a segment has at most 16 MiB, and less if the terminal prints little at a time.
 */
export const KEEP_SEGMENTS = `umask 077
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

/** Null if it was deleted meanwhile. */
function sizeOf(path: string): number | null {
  try {
    return statSync(path).size;
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}
