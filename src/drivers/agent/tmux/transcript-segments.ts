// The output of a terminal in files of bounded size: the first segment in the file itself, later ones beside it, each
// named after the offset of its first byte (`transcript.16777216`). The last two complete segments and the current one
// are kept. So every byte keeps its offset, and output in the middle is deleted.

import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { ABSENT, tolerate } from '../../../sys/errors.ts';

export interface Segment {
  readonly path: string;
  /** Offset of its first byte. */
  readonly at: number;
  readonly size: number;
}

/** Whether a segment starts at the offset. */
export function hasSegment(path: string, at: number): boolean {
  return at > 0 && existsSync(`${path}.${at}`);
}

/** In order; a gap may follow the first. */
export function segmentsOf(path: string): readonly Segment[] {
  const folder = dirname(path);
  const names = tolerate(ABSENT, [], () => readdirSync(folder));
  return segmentNames(names, basename(path)).flatMap(({ name, at }) => {
    const segment = join(folder, name);
    // It may have been deleted meanwhile.
    const size = tolerate(ABSENT, null, () => statSync(segment).size);
    return size === null ? [] : [{ path: segment, at, size }];
  });
}

/** Those among the names of a folder that are segments of the file `base`, in order. */
export function segmentNames(
  names: readonly string[],
  base: string,
): readonly { readonly name: string; readonly at: number }[] {
  const segments = names.flatMap((name) => {
    if (name === base) return [{ name, at: 0 }];
    const at = name.startsWith(`${base}.`) ? name.slice(base.length + 1) : '';
    return /^\d+$/.test(at) ? [{ name, at: Number(at) }] : [];
  });
  return segments.toSorted((a, b) => a.at - b.at);
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
