// Appends records to a journal on disk.
//
//   append/1  Appends are written in order. Those that wait while the disk works are written together, with one write and one
//             datasync. On Linux the write is durable by itself (O_DSYNC), and the datasync does nothing; elsewhere the
//             datasync makes it durable (files.ts).
//   append/2  An append resolves when its records are durable, never before.
//   append/3  After a failed write or datasync the end of the file is unknown, and a second datasync could wrongly succeed. So
//             the journal accepts nothing more: pending and later appends are rejected, and the file is cut back to its
//             durable part, so that no reader sees a rejected record. If the cut fails too, the next `open` finds the same
//             records or a torn tail. Either way nothing that they ask for has been started.

import { assert, Bug } from '../base/errors.ts';
import type { Journal, StoredRun } from '../engine/ports.ts';
import { asUsageError, isSystemError, tolerateAsync } from '../sys/errors.ts';
import { DiskFailure } from './errors.ts';
import { checkSequence, encodeRecords } from './journal-lines.ts';
import type { Lock } from './lock.ts';

/** A file that is only ever written at its end. */
export interface AppendFile {
  /** Resolves with the number of bytes written, which may be fewer than given. */
  write(bytes: Uint8Array): Promise<number>;
  datasync(): Promise<void>;
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

export interface FileJournalParts {
  readonly at: { readonly runId: string; readonly journal: string };
  readonly run: StoredRun;
  readonly file: AppendFile;
  /** Length of the durable part. */
  readonly size: number;
  readonly lock: Lock;
  /** Removes and releases a run that was just created; null if it existed before. */
  readonly discard: (() => Promise<void>) | null;
}

export function fileJournal({ at, run, file, size, lock, discard }: FileJournalParts): Journal {
  let durableBytes = size;
  let lastSeq = run.records.length;
  let durableSeq = lastSeq;
  let pending: PendingAppend[] = [];
  let draining: Promise<void> | null = null;
  let failure: Error | null = null;
  let closed: Promise<void> | null = null;

  async function drain(): Promise<void> {
    // Appends of the same event-loop tick are written together.
    await Promise.resolve();
    while (pending.length > 0) {
      const group = pending;
      pending = [];
      try {
        await write(Buffer.from(group.map(({ text }) => text).join('')));
      } catch (error) {
        await fail(error, group);
        break;
      }
      durableSeq = group.at(-1)?.lastSeq ?? durableSeq;
      for (const { resolve } of group) resolve();
    }
    draining = null;
  }

  async function write(bytes: Buffer): Promise<void> {
    let written = 0;
    while (written < bytes.length) {
      const count = await file.write(bytes.subarray(written));
      assert(count > 0, 'a write to the journal wrote nothing and did not fail');
      written += count;
    }
    await file.datasync();
    durableBytes += bytes.length;
  }

  async function fail(error: unknown, group: readonly PendingAppend[]): Promise<void> {
    const { runId, journal: path } = at;
    // A run without a record cannot be held: its creation failed.
    const refusal = durableBytes === 0 ? asUsageError(error, `create the run ${runId}`, path) : error;
    const reason = isSystemError(refusal) ? new DiskFailure(runId, 'its journal', path, refusal) : asError(refusal);
    failure = reason;
    for (const { reject } of [...group, ...pending]) reject(reason);
    pending = [];
    await tolerateAsync('any', undefined, file.truncate(durableBytes));
  }

  async function close(): Promise<void> {
    await draining;
    if (durableBytes === 0 && discard !== null) return discard();
    try {
      await file.close();
    } finally {
      await lock.release();
    }
  }

  return {
    ...run,
    async append(records) {
      if (failure !== null) throw failure;
      assert(closed === null, 'the journal is closed');
      checkSequence(lastSeq, records);
      if (records.length === 0) return;
      lastSeq += records.length;
      const text = encodeRecords(records, durableSeq);
      await new Promise<void>((resolve, reject) => {
        pending.push({ text, lastSeq, resolve, reject });
        draining ??= drain();
      });
    },
    close() {
      closed ??= close();
      return closed;
    },
  };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Bug(`not an Error: ${String(error)}`);
}

interface PendingAppend {
  readonly text: string;
  readonly lastSeq: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}
