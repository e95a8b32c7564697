// The writing end of a journal on disk.
//
// A1  Appends are written in the order they are asked for. Those that wait while the disk works go together: one write, one
//     datasync, whatever their number. On Linux the write is durable by itself (O_DSYNC), and there is nothing left for
//     the datasync to do; elsewhere it is what makes the write durable (files.ts).
// A2  An append resolves when its records are durable, never before.
// A3  After a write or a datasync that failed nothing is known about the file's end, and a second datasync would say that
//     all is well. So the journal is spoilt: everything that waits or comes later is rejected, and the file is cut back to
//     what was durable, so that no later reader takes for true what was rejected. Where the cut fails too, the next open
//     finds the same records or a torn tail; nothing that they ask for has been started either way.

import { assert, Bug } from '../base/assert.ts';
import type { Journal, StoredRun } from '../engine/ports.ts';
import type { Program } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { checkSequence } from './check-sequence.ts';
import { HeldRun } from './disk-failure.ts';
import { encodeRecords } from './journal-lines.ts';
import { isSystemError, refusalOf } from './usage-errors.ts';

/** What a journal needs of a file: to write at its end, never elsewhere. */
export interface AppendFile {
  /** Resolves with how many bytes were taken, which may be fewer than given. */
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
  /** How much of the file is durable. */
  readonly size: number;
  readonly release: () => Promise<void>;
  /** Takes the run away, and releases it; null where it was there before. */
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
  #waiting: Waiting[] = [];
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
      this.#waiting.push({ text, lastSeq: this.#lastSeq, resolve, reject });
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
    // Those who append in the same turn of the event loop go together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(Buffer.from(group.map(({ text }) => text).join('')));
      } catch (error) {
        await this.#spoil(error, group);
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
      const taken = await file.write(bytes.subarray(written));
      assert(taken > 0, 'a write to the journal took nothing and failed with nothing');
      written += taken;
    }
    await file.datasync();
    this.#durableBytes += bytes.length;
  }

  async #spoil(error: unknown, group: readonly Waiting[]): Promise<void> {
    const { runId, path, file } = this.#parts;
    // Without a record there is no run that could be held: it could not be made.
    const refusal = this.#durableBytes === 0 ? refusalOf(error, `make the run ${runId}`, path) : error;
    this.#failure = isSystemError(refusal) ? new HeldRun(runId, 'its journal', path, refusal) : asError(refusal);
    for (const { reject } of [...group, ...this.#waiting]) reject(this.#failure);
    this.#waiting = [];
    try {
      await file.truncate(this.#durableBytes);
    } catch (second) {
      if (!isSystemError(second)) throw second;
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Bug(`thrown, and no error: ${String(error)}`);
}

interface Waiting {
  readonly text: string;
  readonly lastSeq: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}
