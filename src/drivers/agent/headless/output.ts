// Follows the output of a turn's program, also of one that an earlier engine started. A watch reports growth; while the
// program is silent, nothing happens. A program is not watched in its first moments: one that ends in them is read once, at
// its end.
//
// Reading happens in the engine's thread: fresh output is in memory, and passing it to another thread would take longer.

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';

import { soon } from '../../pending-effect.ts';
import { GrowingFile, watchOrPoll } from '../growing-file.ts';
import type { Reader } from '../readers/reader.ts';

export interface OutputRequest {
  readonly path: string;
  readonly reader: Pick<Reader, 'essential' | 'line' | 'longLine'>;
  /** Called after the reader got more. */
  readonly grown: () => void;
  /** Does not keep the process alive. */
  readonly background: boolean;
}

const LINE_BYTES_MAX = 64 * 1024 * 1024;
const UNWATCHED_MS = 20;
/** Poll interval if the system has no watches left, or the folder was deleted. */
const POLL_MS = 250;

export class Output {
  readonly #file: GrowingFile;
  readonly #background: boolean;
  #close: () => void;
  /** Continues with the rest. */
  #later: NodeJS.Immediate | null = null;

  constructor({ path, reader, grown, background }: OutputRequest) {
    this.#background = background;
    this.#file = new GrowingFile(path, {
      essential: reader.essential,
      lineBytesMax: LINE_BYTES_MAX,
      line: (text) => reader.line(text),
      longLine: (isEssential) => reader.longLine(isEssential),
      grown,
    });
    const timer = setTimeout(() => {
      this.#close = watchOrPoll(existsSync(path) ? path : dirname(path), () => this.#look(), POLL_MS, background);
      this.#look();
    }, UNWATCHED_MS);
    if (background) timer.unref();
    this.#close = () => clearTimeout(timer);
  }

  /** No more output will come. Resolves when everything has been read. */
  async end(): Promise<void> {
    this.#close();
    if (this.#later !== null) clearImmediate(this.#later);
    while (this.#file.read()) await soon();
    this.#file.passRest();
    this.#file.close();
  }

  #look(): void {
    if (this.#later !== null || !this.#file.read()) return;
    this.#later = setImmediate(() => {
      this.#later = null;
      this.#look();
    });
    if (this.#background) this.#later.unref();
  }
}
