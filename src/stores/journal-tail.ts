// Follows a journal on disk while an engine writes it.
//
//   tail/1  Only whole lines with a correct checksum are reported, in sequence. A line that is incomplete or wrong at the end
//           of the file may still become whole, or be cut away: the tail waits.
//   tail/2  After the first look, a look reads only bytes that were not reported before. The operating system says when to
//           look.
//   tail/3  Before new bytes are trusted, the tail checks that the path still names the open file, and that the end of the
//           last reported line is still where it was. So a journal that was deleted, replaced, or rewritten in place is
//           distinguished from one that grew.
//   tail/4  If reported records are no longer there, the whole file is read once. If its first records are the reported ones,
//           its end was cut (a failed write); else it was replaced.

import { constants, type FileHandle, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';

import type { UsageError } from '../base/errors.ts';
import type { JournalEvent } from '../engine/ports.ts';
import { ABSENT, isErrno, REFUSED } from '../sys/errors.ts';
import { openRegular, readFrom } from '../sys/files.ts';
import { watchChanges } from '../sys/watch.ts';
import { CRC_LENGTH, decodeRecords, type JournalDamage, LINE_END } from './journal-lines.ts';

export interface TailRequest {
  readonly path: string;
  readonly fromSeq: number;
  readonly signal: AbortSignal;
  /** What to tell the operator about a journal that can no longer be followed. */
  refusal(loss: JournalLossDetail): UsageError;
}

export type JournalLossDetail =
  | { readonly kind: 'deleted' | 'replaced' }
  | { readonly kind: 'denied'; readonly error: Error }
  | JournalDamage;

export async function* tailJournal(request: TailRequest): AsyncGenerator<JournalEvent> {
  const { path, signal } = request;
  const lose = (loss: JournalLossDetail): JournalEvent => ({
    kind: 'lost',
    why: loss.kind,
    refusal: request.refusal(loss),
  });
  const file = await orLoss(openRegular(path, constants.O_RDONLY));
  if ('kind' in file) {
    yield lose(file);
    return;
  }
  const journal = basename(path);
  // The folder, because a file that replaces the journal must be noticed too.
  const changes = watchChanges(dirname(path), signal, (name) => name === journal);
  try {
    const look = lookAt(path, file, request.fromSeq);
    while (!signal.aborted) {
      const found = await look();
      if (found === null) await changes.next();
      else if (found.kind === 'records' || found.kind === 'cut') yield found;
      else {
        yield lose(found);
        return;
      }
    }
  } finally {
    changes.close();
    await file.close();
  }
}

type Look = Extract<JournalEvent, { kind: 'records' | 'cut' }> | JournalLossDetail | null;

/** Returns a function that looks for new records; its result is null if there are none. */
function lookAt(path: string, file: FileHandle, fromSeq: number): () => Promise<Look> {
  /** The checksum of each record before `offset`. Those have been reported, or were not asked for. */
  let seals: string[] = [];
  let offset = 0;
  /** How long the file was at the last look: longer than `offset` if a write was not complete. */
  let lastSize = 0;
  let started = fromSeq <= 1;

  /** `lines`: whole ones that begin at the offset. */
  function advance(lines: Buffer): void {
    for (let end = lines.indexOf(LINE_END); end !== -1; end = lines.indexOf(LINE_END, end + 1)) {
      seals.push(sealBefore(lines, end + 1));
    }
    offset += lines.length;
  }

  async function look(): Promise<Look> {
    const { size, ino, dev } = await file.stat();
    const there = await orLoss(stat(path));
    if ('kind' in there) return there;
    if (there.ino !== ino || there.dev !== dev) return { kind: 'replaced' };
    if (!started) return start(size);

    const checked = offset === 0 ? 0 : SEAL_LENGTH;
    const bytes = await readFrom(file, offset - checked, Math.max(0, size - offset) + checked);
    if (checked > 0 && sealBefore(bytes, checked) !== seals.at(-1)) return rewind(size);
    const fresh = bytes.subarray(checked);
    const decoded = decodeRecords(fresh, seals.length + 1);
    if (!decoded.ok) return decoded.error;
    const { records, wholeBytes } = decoded.value;
    const wasCut = size < lastSize;
    lastSize = size;
    advance(fresh.subarray(0, wholeBytes));
    if (records.length > 0) return { kind: 'records', records };
    return wasCut ? { kind: 'cut', lastSeq: seals.length } : null;
  }

  /** Finds where the first wanted record begins, without reading what the records before it say. */
  async function start(size: number): Promise<Look> {
    started = true;
    const bytes = await readFrom(file, 0, size);
    const end = endOfLines(bytes, fromSeq - 1);
    if (end !== null) {
      advance(bytes.subarray(0, end));
      return look();
    }
    const decoded = decodeRecords(bytes);
    if (!decoded.ok) return decoded.error;
    const { records, wholeBytes } = decoded.value;
    advance(bytes.subarray(0, wholeBytes));
    return records.length === 0 ? { kind: 'deleted' } : { kind: 'cut', lastSeq: records.length };
  }

  /** Reported records no longer exist: goes back to the last one that does. */
  async function rewind(size: number): Promise<Look> {
    const bytes = await readFrom(file, 0, size);
    const known = seals;
    seals = [];
    offset = 0;
    lastSize = size;
    advance(bytes.subarray(0, endOfLines(bytes, known.length) ?? bytes.lastIndexOf(LINE_END) + 1));
    let same = 0;
    while (same < seals.length && seals[same] === known[same]) same += 1;
    if (same === 0) return { kind: size === 0 ? 'deleted' : 'replaced' };
    seals.length = same;
    offset = endOfLines(bytes, same) ?? 0;
    return { kind: 'cut', lastSeq: same };
  }

  return look;
}

/** The checksum of a line, and its end. */
const SEAL_LENGTH = CRC_LENGTH + 1;

function sealBefore(bytes: Buffer, end: number): string {
  return bytes.toString('latin1', Math.max(0, end - SEAL_LENGTH), end);
}

/** Where so many lines end; null if there are fewer. */
function endOfLines(bytes: Buffer, count: number): number | null {
  let end = 0;
  for (let seen = 0; seen < count; seen++) {
    end = bytes.indexOf(LINE_END, end) + 1;
    if (end === 0) return null;
  }
  return end;
}

async function orLoss<T>(reaching: Promise<T>): Promise<T | JournalLossDetail> {
  try {
    return await reaching;
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return { kind: 'deleted' };
    if (isErrno(error, ...REFUSED)) return { kind: 'denied', error };
    throw error;
  }
}
