// Follows a program's output file from its beginning: each line is read once it is complete, also for a
// program that an earlier engine started. A watch reports growth; while the program is silent, nothing happens. A missing file counts as empty. A
// program is not watched in its first moments: one that ends in them is read once, at its end.
//
// Reading happens in the engine's thread: fresh output is in memory, and passing it to another thread would take
// longer. Large output is read in portions.

import { closeSync, existsSync, openSync, readSync } from 'node:fs';
import { dirname } from 'node:path';
import { watchPath } from '../../../sys/watch.ts';
import { ABSENT, isErrno } from '../../../sys/errno.ts';
import { soon } from '../../pending-effect.ts';
import type { Reader } from '../readers/reader.ts';
import { Lines } from './lines.ts';
import type { Line } from './lines.ts';

export interface OutputRequest {
  readonly path: string;
  readonly reader: Reader;
  /** Called after the reader got more. */
  readonly grown: () => void;
  /** Does not keep the process alive. */
  readonly background: boolean;
}

/** Longer lines are skipped. */
const LINE_BYTES_MAX = 64 * 1024 * 1024;
/** Shared: always consumed before it is used again. */
const CHUNK = Buffer.alloc(64 * 1024);
const CHUNKS_A_TURN = 32;
const UNWATCHED_MS = 20;
/** Poll interval if the system has no watches left, or the folder was deleted. */
const LOOK_UNWATCHED_MS = 250;

export class Output {
  readonly #request: OutputRequest;
  readonly #lines: Lines;
  #close: () => void;
  #file: number | null = null;
  #at = 0;
  /** Continues with the rest. */
  #later: NodeJS.Immediate | null = null;

  constructor(request: OutputRequest) {
    this.#request = request;
    this.#lines = new Lines(request.reader.essential);
    const timer = setTimeout(() => {
      this.#close = this.#watch();
      this.#look();
    }, UNWATCHED_MS);
    if (request.background) timer.unref();
    this.#close = () => clearTimeout(timer);
  }

  /** No more output will come. Resolves when everything has been read. */
  async end(): Promise<void> {
    this.#close();
    if (this.#later !== null) clearImmediate(this.#later);
    while (this.#read()) await soon();
    const rest = this.#lines.rest();
    if (rest !== null) this.#tell(rest);
    if (this.#file !== null) closeSync(this.#file);
  }

  #watch(): () => void {
    const { path, background } = this.#request;
    const watcher = watchPath(existsSync(path) ? path : dirname(path), () => this.#look(), { background });
    const looks = watcher === null ? setInterval(() => this.#look(), LOOK_UNWATCHED_MS) : null;
    if (background) looks?.unref();
    return () => {
      watcher?.close();
      if (looks !== null) clearInterval(looks);
    };
  }

  #look(): void {
    if (this.#later !== null || !this.#read()) return;
    this.#later = setImmediate(() => {
      this.#later = null;
      this.#look();
    });
    if (this.#request.background) this.#later.unref();
  }

  /** Returns whether there may be more. */
  #read(): boolean {
    this.#file ??= opened(this.#request.path);
    if (this.#file === null) return false;
    for (let chunks = 0; chunks < CHUNKS_A_TURN; chunks++) {
      const length = readSync(this.#file, CHUNK, 0, CHUNK.length, this.#at);
      if (length === 0) return false;
      this.#at += length;
      for (const line of this.#lines.push(CHUNK.subarray(0, length))) this.#tell(line);
      this.#request.grown();
    }
    return true;
  }

  #tell(line: Line): void {
    const { reader } = this.#request;
    if (line.kind === 'whole') reader.line(line.text);
    else if (line.essential && line.to - line.from <= LINE_BYTES_MAX) reader.line(this.#again(line.from, line.to));
    else reader.longLine();
  }

  #again(from: number, to: number): string {
    const bytes = Buffer.allocUnsafe(to - from);
    let length = 0;
    while (this.#file !== null && length < bytes.length) {
      const read = readSync(this.#file, bytes, length, bytes.length - length, from + length);
      // The file was truncated.
      if (read === 0) break;
      length += read;
    }
    return bytes.subarray(0, length).toString('utf8');
  }
}

/** Null if absent. */
function opened(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}
