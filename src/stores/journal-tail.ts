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

import type { FileHandle } from 'node:fs/promises';
import { constants, open, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import type { UsageError } from '../base/usage-error.ts';
import type { JournalEvent } from '../engine/ports.ts';
import { ABSENT, isErrno, REFUSED } from '../sys/errno.ts';
import { watchChanges } from '../sys/watch.ts';
import type { JournalDamage } from './journal-lines.ts';
import { CRC_LENGTH, decodeRecords, LINE_END } from './journal-lines.ts';
import { readFrom } from './read-bytes.ts';

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
  const opened = await openJournal(path);
  if ('kind' in opened) {
    yield lose(opened);
    return;
  }
  const journal = basename(path);
  // The folder, because a file that replaces the journal must be noticed too.
  const changes = watchChanges(dirname(path), { signal, only: (name) => name === journal });
  try {
    const tail = new Tail(path, opened.file, request.fromSeq);
    while (!signal.aborted) {
      const found = await tail.look();
      if (found === null) await changes.next();
      else if (found.kind === 'records' || found.kind === 'cut') yield found;
      else {
        yield lose(found);
        return;
      }
    }
  } finally {
    changes.close();
    await opened.file.close();
  }
}

type Look = Extract<JournalEvent, { kind: 'records' | 'cut' }> | JournalLossDetail | null;

class Tail {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #fromSeq: number;
  /** The checksum of each record before `#offset`. Those have been reported, or were not asked for. */
  #seals: string[] = [];
  #offset = 0;
  /** How long the file was at the last look: longer than `#offset` if a write was not complete. */
  #size = 0;
  #started: boolean;

  constructor(path: string, file: FileHandle, fromSeq: number) {
    this.#path = path;
    this.#file = file;
    this.#fromSeq = fromSeq;
    this.#started = fromSeq <= 1;
  }

  /** Null if there is nothing new. */
  async look(): Promise<Look> {
    const { size, ino, dev } = await this.#file.stat();
    const there = await statIfReachable(this.#path);
    if ('kind' in there) return there;
    if (there.ino !== ino || there.dev !== dev) return { kind: 'replaced' };
    if (!this.#started) return this.#start(size);

    const checked = this.#offset === 0 ? 0 : SEAL_LENGTH;
    const bytes = await readFrom(this.#file, this.#offset - checked, Math.max(0, size - this.#offset) + checked);
    if (checked > 0 && sealBefore(bytes, checked) !== this.#seals.at(-1)) return this.#rewind(size);
    const fresh = bytes.subarray(checked);
    const decoded = decodeRecords(fresh, this.#seals.length + 1);
    if (!decoded.ok) return decoded.error;
    const { records, wholeBytes } = decoded.value;
    const wasCut = size < this.#size;
    this.#size = size;
    this.#advance(fresh.subarray(0, wholeBytes));
    if (records.length > 0) return { kind: 'records', records };
    return wasCut ? { kind: 'cut', lastSeq: this.#seals.length } : null;
  }

  /** Finds where the first wanted record begins, without reading what the records before it say. */
  async #start(size: number): Promise<Look> {
    this.#started = true;
    const bytes = await readFrom(this.#file, 0, size);
    const end = endOfLines(bytes, this.#fromSeq - 1);
    if (end !== null) {
      this.#advance(bytes.subarray(0, end));
      return this.look();
    }
    const decoded = decodeRecords(bytes);
    if (!decoded.ok) return decoded.error;
    const { records, wholeBytes } = decoded.value;
    this.#advance(bytes.subarray(0, wholeBytes));
    return records.length === 0 ? { kind: 'deleted' } : { kind: 'cut', lastSeq: records.length };
  }

  /** Reported records no longer exist: goes back to the last one that does. */
  async #rewind(size: number): Promise<Look> {
    const bytes = await readFrom(this.#file, 0, size);
    const known = this.#seals;
    this.#seals = [];
    this.#offset = 0;
    this.#size = size;
    this.#advance(bytes.subarray(0, endOfLines(bytes, known.length) ?? bytes.lastIndexOf(LINE_END) + 1));
    let same = 0;
    while (same < this.#seals.length && this.#seals[same] === known[same]) same += 1;
    if (same === 0) return { kind: size === 0 ? 'deleted' : 'replaced' };
    this.#seals.length = same;
    this.#offset = endOfLines(bytes, same) ?? 0;
    return { kind: 'cut', lastSeq: same };
  }

  /** `lines`: whole ones that begin at the offset. */
  #advance(lines: Buffer): void {
    for (let end = lines.indexOf(LINE_END); end !== -1; end = lines.indexOf(LINE_END, end + 1)) {
      this.#seals.push(sealBefore(lines, end + 1));
    }
    this.#offset += lines.length;
  }
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

async function openJournal(path: string): Promise<{ readonly file: FileHandle } | JournalLossDetail> {
  try {
    return { file: await open(path, constants.O_RDONLY) };
  } catch (error) {
    return lossBy(error);
  }
}

async function statIfReachable(
  path: string,
): Promise<{ readonly ino: number; readonly dev: number } | JournalLossDetail> {
  try {
    const { ino, dev } = await stat(path);
    return { ino, dev };
  } catch (error) {
    return lossBy(error);
  }
}

function lossBy(error: unknown): JournalLossDetail {
  if (isErrno(error, ...ABSENT)) return { kind: 'deleted' };
  if (isErrno(error, ...REFUSED)) return { kind: 'denied', error };
  throw error;
}
