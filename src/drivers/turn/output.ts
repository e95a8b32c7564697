// Follows what a program writes to a file, from its beginning: each line is read once it is whole, whoever started the
// program. A watch tells when there is more; while the program is silent, nothing is done. A file that is not there yet
// is empty.

import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno } from '../../base/errno.ts';
import type { Reader } from '../readers/reader.ts';
import { Lines } from './lines.ts';
import type { Line } from './lines.ts';

export interface OutputRequest {
  readonly path: string;
  readonly reader: Reader;
  /** There was more: the reader has it. */
  readonly grown: () => void;
  /** This process may end while it is followed. */
  readonly background: boolean;
}

/** A line that is longer is passed over, whatever is in it. */
const LINE_BYTES_MAX = 64 * 1024 * 1024;
const CHUNK_BYTES = 64 * 1024;
/** Where the system has no watches left. */
const LOOK_UNWATCHED_MS = 250;

export class Output {
  readonly #request: OutputRequest;
  readonly #lines: Lines;
  readonly #chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  readonly #close: () => void;
  #file: FileHandle | null = null;
  #at = 0;
  /** The reading that is under way; and whether there may be more than that will find. */
  #reading: Promise<void> | null = null;
  #more = false;

  constructor(request: OutputRequest) {
    this.#request = request;
    this.#lines = new Lines(request.reader.essential);
    this.#close = this.#watch();
    this.#look();
  }

  /** Nothing more comes. Resolves when everything has been read. */
  async end(): Promise<void> {
    this.#close();
    await this.#reading;
    await this.#read();
    const rest = this.#lines.rest();
    if (rest !== null) await this.#tell(rest);
    await this.#file?.close();
  }

  #watch(): () => void {
    const { path, background } = this.#request;
    let watcher: FSWatcher | null = null;
    try {
      watcher = watch(dirname(path), { persistent: !background }, () => this.#look()).on('error', crash);
    } catch (error) {
      if (!isErrno(error, 'ENOSPC', ...EXHAUSTED)) throw error;
    }
    const looks = watcher === null ? setInterval(() => this.#look(), LOOK_UNWATCHED_MS) : null;
    if (background) looks?.unref();
    return () => {
      watcher?.close();
      if (looks !== null) clearInterval(looks);
    };
  }

  #look(): void {
    if (this.#reading !== null) {
      this.#more = true;
      return;
    }
    const read = async (): Promise<void> => {
      do {
        this.#more = false;
        await this.#read();
      } while (this.#more);
      this.#reading = null;
    };
    this.#reading = read();
    this.#reading.catch(crash);
  }

  async #read(): Promise<void> {
    this.#file ??= await opened(this.#request.path);
    if (this.#file === null) return;
    for (;;) {
      const { bytesRead } = await this.#file.read(this.#chunk, 0, CHUNK_BYTES, this.#at);
      if (bytesRead === 0) return;
      this.#at += bytesRead;
      for (const line of this.#lines.push(this.#chunk.subarray(0, bytesRead))) await this.#tell(line);
      this.#request.grown();
    }
  }

  async #tell(line: Line): Promise<void> {
    const { reader } = this.#request;
    if (line.kind === 'whole') reader.line(line.text);
    else if (line.essential && line.to - line.from <= LINE_BYTES_MAX)
      reader.line(await this.#again(line.from, line.to));
    else reader.longLine();
  }

  async #again(from: number, to: number): Promise<string> {
    const bytes = Buffer.allocUnsafe(to - from);
    let length = 0;
    while (this.#file !== null && length < bytes.length) {
      const { bytesRead } = await this.#file.read(bytes, length, bytes.length - length, from + length);
      // Somebody has cut the file.
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length).toString('utf8');
  }
}

/** Null where it is absent. */
async function opened(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}

function crash(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
