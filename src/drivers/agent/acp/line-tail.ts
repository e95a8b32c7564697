// Follows a growing file line by line, from its beginning. The caller calls `update` whenever the file may have grown.
//
// A line that does not fit into memory is skipped. Text without a line end is not a line yet. A long file is read in slices,
// so that other work goes on in between.

import { closeSync, openSync, readSync } from 'node:fs';
import { ABSENT, isErrno } from '../../../sys/errno.ts';

export interface TailEvents {
  /** Without its end. */
  line(bytes: Buffer): void;
  /** Everything written so far has been reported. */
  settled(): void;
}

export class LineTail {
  readonly #path: string;
  readonly #events: TailEvents;
  readonly #chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  #file: number | null = null;
  /** Of the line that has no end yet. */
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #reading = false;
  #closed = false;

  constructor(path: string, events: TailEvents) {
    this.#path = path;
    this.#events = events;
  }

  update(): void {
    if (!this.#reading && !this.#closed) this.#slice();
  }

  /** Reads synchronously to the end, then closes. */
  finish(): void {
    if (this.#closed) return;
    while (this.#read(SLICE_BYTES));
    this.#events.settled();
    this.close();
  }

  close(): void {
    this.#closed = true;
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #slice(): void {
    this.#reading = false;
    if (this.#closed) return;
    if (this.#read(SLICE_BYTES)) {
      this.#reading = true;
      setImmediate(() => this.#slice());
    } else {
      this.#events.settled();
    }
  }

  /** True if there may be more. */
  #read(atMost: number): boolean {
    this.#file ??= opened(this.#path);
    if (this.#file === null) return false;
    for (let total = 0; total < atMost; ) {
      const length = readSync(this.#file, this.#chunk, 0, CHUNK_BYTES, null);
      if (length === 0) return false;
      this.#split(this.#chunk.subarray(0, length));
      total += length;
    }
    return true;
  }

  #split(bytes: Buffer): void {
    let from = 0;
    for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, from)) {
      this.#add(bytes.subarray(from, at));
      const line = this.#pieceBytes > LINE_BYTES_MAX ? null : Buffer.concat(this.#pieces);
      this.#pieces = [];
      this.#pieceBytes = 0;
      from = at + 1;
      if (line !== null) this.#events.line(line);
    }
    this.#add(bytes.subarray(from));
  }

  #add(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieceBytes += piece.length;
    // Copied, because the chunk is reused.
    if (this.#pieceBytes > LINE_BYTES_MAX) this.#pieces = [];
    else this.#pieces.push(Buffer.from(piece));
  }
}

const NEWLINE = 0x0a;
const CHUNK_BYTES = 65_536;
const SLICE_BYTES = 1_048_576;
const LINE_BYTES_MAX = 128 * 1024 * 1024;

/** Null if it does not exist yet. */
function opened(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}
