// What `git cat-file --batch` prints, blob by blob, as it comes: no blob has to fit into memory.

import type { Readable } from 'node:stream';
import { Refusal } from './git-error.ts';

export class BlobOutput {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(output: Readable) {
    this.#chunks = output[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** Of the next one: a line `OID blob SIZE`. */
  async size(): Promise<number> {
    while (!this.#rest.includes(0x0a)) this.#rest = Buffer.concat([this.#rest, await this.#more()]);
    const end = this.#rest.indexOf(0x0a);
    const line = this.#rest.toString('latin1', 0, end);
    this.#rest = this.#rest.subarray(end + 1);
    const size = /^[0-9a-f]+ blob (\d+)$/.exec(line)?.[1];
    if (size !== undefined) return Number(size);
    throw new Refusal(
      'no-snapshot',
      `the repository has lost a part of the snapshot (${line})`,
      'an object was deleted by hand, or the disk is damaged: see `git fsck`',
    );
  }

  /** So many bytes, and the end of the line behind them. To be read to the end before the next. */
  async *bytes(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      const chunk = this.#rest.length > 0 ? this.#rest : await this.#more();
      this.#rest = chunk.subarray(Math.min(left, chunk.length));
      yield chunk.subarray(0, left);
      left -= Math.min(left, chunk.length);
    }
    if (this.#rest.length === 0) this.#rest = await this.#more();
    this.#rest = this.#rest.subarray(1);
  }

  async #more(): Promise<Buffer> {
    const { done, value } = await this.#chunks.next();
    if (done !== true) return value;
    throw new Refusal('git-failed', 'git cat-file ended early', 'see `git fsck`, then try again');
  }
}
