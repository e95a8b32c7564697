// A growing file, line by line, from its beginning: whoever opens it anew hears all of it again. Who writes it tells us
// nothing: `look` is to be called whenever it may have grown.
//
// Lines have any length; one that would not fit into memory is passed over. What is behind the last line end has not been
// said yet. A long file is read in turns, so that others have theirs.

import { closeSync, openSync, readSync } from 'node:fs';
import { ABSENT, isErrno } from '../../../sys/errno.ts';

export interface TailEvents {
  /** Without its end. */
  line(bytes: Buffer): void;
  /** All that was there has been told. */
  settled(): void;
}

export class LineTail {
  readonly #path: string;
  readonly #events: TailEvents;
  readonly #chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  #file: number | null = null;
  /** Of a line whose end is still to come. */
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #reading = false;
  #closed = false;

  constructor(path: string, events: TailEvents) {
    this.#path = path;
    this.#events = events;
  }

  look(): void {
    if (!this.#reading && !this.#closed) this.#turn();
  }

  /** At once, to the end, and no further. */
  finish(): void {
    if (this.#closed) return;
    while (this.#read(TURN_BYTES));
    this.#events.settled();
    this.close();
  }

  close(): void {
    this.#closed = true;
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #turn(): void {
    this.#reading = false;
    if (this.#closed) return;
    if (this.#read(TURN_BYTES)) {
      this.#reading = true;
      setImmediate(() => this.#turn());
    } else {
      this.#events.settled();
    }
  }

  /** Whether there may be more. */
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
    // The chunk is used again.
    if (this.#pieceBytes > LINE_BYTES_MAX) this.#pieces = [];
    else this.#pieces.push(Buffer.from(piece));
  }
}

const NEWLINE = 0x0a;
const CHUNK_BYTES = 65_536;
const TURN_BYTES = 1_048_576;
const LINE_BYTES_MAX = 128 * 1024 * 1024;

/** Null where it is not there yet. */
function opened(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}
