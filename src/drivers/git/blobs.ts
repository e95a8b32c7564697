// Blobs of a repository, and whether they are what their names say: git does not compare an object with its name, so a
// process that writes to the repository can put other contents there.

import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';

import { GitError } from './git.ts';
import { algorithmOf, plumbing, type WorktreeInfo } from './worktree-paths.ts';

/** Reads blobs one after another, in their order. */
export async function readBlobs<T extends { readonly oid: string }>(
  info: WorktreeInfo,
  blobs: readonly T[],
  use: (blob: T, bytes: AsyncGenerator<Buffer>, size: number) => Promise<void>,
): Promise<void> {
  if (blobs.length === 0) return;
  await plumbing(info).run(['cat-file', '--batch'], {
    input: blobs.map(({ oid }) => `${oid}\n`),
    read: async (stream) => {
      const output = new BlobOutput(stream);
      for (const blob of blobs) {
        const size = await output.size();
        await use(blob, output.bytes(size), size);
      }
    },
  });
}

/** Those whose contents are not what their names say. */
export async function forgedBlobs<T extends { readonly oid: string }>(
  info: WorktreeInfo,
  blobs: readonly T[],
): Promise<readonly T[]> {
  const forged: T[] = [];
  await readBlobs(info, blobs, async (blob, bytes, size) => {
    const hash = createHash(algorithmOf(info)).update(`blob ${size}\0`);
    for await (const chunk of bytes) hash.update(chunk);
    if (hash.digest('hex') !== blob.oid) forged.push(blob);
  });
  return forged;
}

/** Output of `git cat-file --batch`, blob by blob, without holding a whole blob in memory. */
class BlobOutput {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(output: Readable) {
    this.#chunks = output[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** Size of the next blob, from a line `OID blob SIZE`. */
  async size(): Promise<number> {
    while (!this.#rest.includes(0x0a)) this.#rest = Buffer.concat([this.#rest, await this.#more()]);
    const end = this.#rest.indexOf(0x0a);
    const line = this.#rest.toString('latin1', 0, end);
    this.#rest = this.#rest.subarray(end + 1);
    const size = /^[0-9a-f]+ blob (\d+)$/.exec(line)?.[1];
    if (size !== undefined) return Number(size);
    throw new GitError(
      'no-snapshot',
      `the repository has lost an object of the snapshot (${line})`,
      'it was deleted by hand, or the disk is damaged: run git fsck',
    );
  }

  /** The bytes of a blob and its line end. Must be read to the end before the next blob. */
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
    throw new GitError('git-failed', 'git cat-file ended early', 'run git fsck, then try again');
  }
}
