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

import { assert, Bug } from '../base/assert.ts';
import type { Journal, StoredRun } from '../engine/ports.ts';
import type { Program } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { checkSequence } from './stored-program.ts';
import { DiskFailure } from './disk-failure.ts';
import { encodeRecords } from './journal-lines.ts';
import { asUsageError } from './usage-errors.ts';
import { isSystemError } from '../sys/errno.ts';

/** A file that is only ever written at its end. */
export interface AppendFile {
  /** Resolves with the number of bytes written, which may be fewer than given. */
  write(bytes: Uint8Array): Promise<number>;
  datasync(): Promise<void>;
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
}

export interface FileJournalParts {
  readonly runId: string;
  readonly path: string;
  readonly run: StoredRun;
  readonly file: AppendFile;
  /** Length of the durable part. */
  readonly size: number;
  readonly release: () => Promise<void>;
  /** Removes and releases a run that was just created; null if it existed before. */
  readonly discard: (() => Promise<void>) | null;
}

export class FileJournal implements Journal {
  readonly program: Program;
  readonly programHash: string;
  readonly records: readonly JournalRecord[];
  readonly #parts: FileJournalParts;
  #durableBytes: number;
  #lastSeq: number;
  #durableSeq: number;
  #pending: PendingAppend[] = [];
  #draining: Promise<void> | null = null;
  #failure: Error | null = null;
  #closed: Promise<void> | null = null;

  constructor(parts: FileJournalParts) {
    this.#parts = parts;
    this.program = parts.run.program;
    this.programHash = parts.run.programHash;
    this.records = parts.run.records;
    this.#lastSeq = parts.run.records.length;
    this.#durableSeq = this.#lastSeq;
    this.#durableBytes = parts.size;
  }

  async append(records: readonly JournalRecord[]): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    assert(this.#closed === null, 'the journal is closed');
    checkSequence(this.#lastSeq, records);
    if (records.length === 0) return;
    this.#lastSeq += records.length;
    const text = encodeRecords(records, this.#durableSeq);
    await new Promise<void>((resolve, reject) => {
      this.#pending.push({ text, lastSeq: this.#lastSeq, resolve, reject });
      this.#draining ??= this.#drain();
    });
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    await this.#draining;
    if (this.#durableBytes === 0 && this.#parts.discard !== null) return this.#parts.discard();
    try {
      await this.#parts.file.close();
    } finally {
      await this.#parts.release();
    }
  }

  async #drain(): Promise<void> {
    // Appends of the same event-loop tick are written together.
    await Promise.resolve();
    while (this.#pending.length > 0) {
      const group = this.#pending;
      this.#pending = [];
      try {
        await this.#write(Buffer.from(group.map(({ text }) => text).join('')));
      } catch (error) {
        await this.#fail(error, group);
        break;
      }
      this.#durableSeq = group.at(-1)?.lastSeq ?? this.#durableSeq;
      for (const { resolve } of group) resolve();
    }
    this.#draining = null;
  }

  async #write(bytes: Buffer): Promise<void> {
    const { file } = this.#parts;
    let written = 0;
    while (written < bytes.length) {
      const count = await file.write(bytes.subarray(written));
      assert(count > 0, 'a write to the journal wrote nothing and did not fail');
      written += count;
    }
    await file.datasync();
    this.#durableBytes += bytes.length;
  }

  async #fail(error: unknown, group: readonly PendingAppend[]): Promise<void> {
    const { runId, path, file } = this.#parts;
    // A run without a record cannot be held: its creation failed.
    const refusal = this.#durableBytes === 0 ? asUsageError(error, `create the run ${runId}`, path) : error;
    this.#failure = isSystemError(refusal) ? new DiskFailure(runId, 'its journal', path, refusal) : asError(refusal);
    for (const { reject } of [...group, ...this.#pending]) reject(this.#failure);
    this.#pending = [];
    try {
      await file.truncate(this.#durableBytes);
    } catch (second) {
      if (!isSystemError(second)) throw second;
    }
  }
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
