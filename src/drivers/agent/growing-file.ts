// Lines of a growing file, read from its beginning once each is complete. Large files are read in portions, so that other
// work continues in between. A missing file counts as empty.

import { closeSync, readSync } from 'node:fs';

import { ABSENT, REFUSED, tolerate } from '../../sys/errors.ts';
import { openForReading } from '../../sys/files.ts';
import { watchPath } from '../../sys/watch.ts';

export interface GrowingFileOptions {
  /** A very long line is passed only if it contains one of these, and is not longer than `lineBytesMax`. */
  readonly essential: readonly string[];
  readonly lineBytesMax: number;
  /** Without its end. */
  line(text: string): void;
  /** A line was skipped. */
  longLine?(isEssential: boolean): void;
  grown?(): void;
}

/** Shared: always consumed before it is used again. */
const CHUNK = Buffer.alloc(64 * 1024);
const CHUNKS_A_PORTION = 32;

export class GrowingFile {
  readonly #path: string;
  readonly #options: GrowingFileOptions;
  readonly #lines: Lines;
  #file: number | null = null;
  #at = 0;

  constructor(path: string, options: GrowingFileOptions) {
    this.#path = path;
    this.#options = options;
    this.#lines = new Lines(options.essential);
  }

  /** Reads a portion. Returns whether there may be more. */
  read(): boolean {
    this.#file ??= tolerate([...ABSENT, ...REFUSED], null, () => openForReading(this.#path));
    if (this.#file === null) return false;
    for (let chunks = 0; chunks < CHUNKS_A_PORTION; chunks++) {
      const length = readSync(this.#file, CHUNK, 0, CHUNK.length, this.#at);
      if (length === 0) return false;
      this.#at += length;
      for (const line of this.#lines.push(CHUNK.subarray(0, length))) this.#pass(line);
      this.#options.grown?.();
    }
    return true;
  }

  /** Passes the unterminated end, if there is one. */
  passRest(): void {
    const rest = this.#lines.rest();
    if (rest !== null) this.#pass(rest);
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #pass(line: Line): void {
    const { lineBytesMax } = this.#options;
    if (line.kind === 'whole') this.#options.line(line.text);
    else if (line.essential && line.to - line.from <= lineBytesMax) this.#options.line(this.#readAgain(line));
    else this.#options.longLine?.(line.essential);
  }

  #readAgain({ from, to }: LongLine): string {
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

/** Calls when the path has changed, or at intervals if the system has no watches left. Returns a function that ends it. */
export function watchOrPoll(path: string, look: () => void, pollMs: number, background = true): () => void {
  const watcher = watchPath(path, look, { background });
  const poll = watcher === null ? setInterval(look, pollMs) : undefined;
  if (background) poll?.unref();
  return () => {
    watcher?.close();
    clearInterval(poll);
  };
}

export type Line = { readonly kind: 'whole'; readonly text: string } | LongLine;

interface LongLine {
  readonly kind: 'long';
  /** Offsets in the file, without the line end. */
  readonly from: number;
  readonly to: number;
  readonly essential: boolean;
}

const LINE_FEED = 0x0a;
const KEPT_BYTES_MAX = 1_000_000;

/**
 * Splits a growing file into lines. A normal line is kept until it is complete. Of a very long line only its position
 * is kept, and whether it contains an essential part: its length costs time but no memory.
 */
export class Lines {
  readonly #essential: readonly Buffer[];
  /** An essential part may begin this many bytes before the end of a chunk. */
  readonly #overlap: number;
  /** Offset of the current line, and how far it was scanned. */
  #from = 0;
  #to = 0;
  #kept: Buffer[] = [];
  #long: { essential: boolean; tail: Buffer } | null = null;

  constructor(essential: readonly string[]) {
    this.#essential = essential.map((part) => Buffer.from(part));
    this.#overlap = Math.max(0, ...this.#essential.map(({ length }) => length - 1));
  }

  /** Returns the lines that end in these bytes. The buffer may be reused afterwards. */
  push(bytes: Buffer): readonly Line[] {
    const lines: Line[] = [];
    for (let begin = 0; begin < bytes.length; ) {
      const end = bytes.indexOf(LINE_FEED, begin);
      this.#take(bytes.subarray(begin, end === -1 ? undefined : end));
      if (end === -1) break;
      lines.push(this.#end(1));
      begin = end + 1;
    }
    return lines;
  }

  /** The unterminated end of the file; null if empty. */
  rest(): Line | null {
    return this.#to === this.#from ? null : this.#end(0);
  }

  #take(bytes: Buffer): void {
    this.#to += bytes.length;
    if (this.#long === null && this.#to - this.#from <= KEPT_BYTES_MAX) {
      this.#kept.push(Buffer.from(bytes));
      return;
    }
    this.#long ??= { essential: false, tail: Buffer.alloc(0) };
    for (const part of [...this.#kept.splice(0), bytes]) this.#search(this.#long, part);
  }

  #search(long: { essential: boolean; tail: Buffer }, bytes: Buffer): void {
    if (long.essential) return;
    const across = Buffer.concat([long.tail, bytes.subarray(0, this.#overlap)]);
    long.essential = this.#essential.some((part) => across.includes(part) || bytes.includes(part));
    const seen = bytes.length >= this.#overlap ? bytes : Buffer.concat([long.tail, bytes]);
    long.tail = Buffer.from(seen.subarray(Math.max(0, seen.length - this.#overlap)));
  }

  #end(endBytes: number): Line {
    const line: Line =
      this.#long === null
        ? { kind: 'whole', text: Buffer.concat(this.#kept).toString('utf8') }
        : { kind: 'long', from: this.#from, to: this.#to, essential: this.#long.essential };
    this.#from = this.#to + endBytes;
    this.#to = this.#from;
    this.#kept = [];
    this.#long = null;
    return line;
  }
}
