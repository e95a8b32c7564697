// Puts files into a working tree and takes them out, so that nothing is lost by it and nothing is reached through a link.
//
// Everything here can be stopped at any moment and done again: what is gone already is gone, and what is half written is
// written anew.

import { cp, mkdir, open, readdir, rename, rm, rmdir, stat, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import { withoutEnd } from './git.ts';
import { bytesOf, foldersOf, inside } from './names.ts';
import { entryAt, exists, folderOf } from './worktree-paths.ts';
import type { Place } from './worktree-paths.ts';
import { Refusal } from './git-error.ts';
import { LINK, REPOSITORY } from './restore-plan.ts';
import type { RestorePlan } from './restore-plan.ts';

interface Source {
  readonly tree: string;
  /** Of files in the working tree as they were; 0 where that is not known. */
  readonly sizes: ReadonlyMap<string, number>;
}

export class TreeWriter {
  readonly #place: Place;
  /** Where things are moved to; a folder of the run's. */
  readonly #attic: string;
  readonly #folders = new Set<string>();

  constructor(place: Place, attic: string) {
    this.#place = place;
    this.#attic = attic;
  }

  async carryOut({ aside, removals, writes }: RestorePlan, source: Source): Promise<void> {
    for (const name of aside) await this.#moveAside(name);
    for (const name of removals) await this.#unlink(name);
    const links = new Set(writes.filter(({ mode }) => mode === REPOSITORY).map(({ name }) => name));
    for (const name of [...aside, ...removals]) await this.#removeEmptied(name, links);

    for (const name of links) await this.#makeFolderOf(name);
    const files = writes.filter(({ name }) => !links.has(name));
    await this.#writeOwn(files.filter(({ isOwn }) => isOwn));
    // Attributes come first: they say how the others are to be written.
    const filtered = files.filter(({ isOwn }) => !isOwn);
    const isAttributes = ({ name }: { readonly name: string }): boolean => /(?:^|\/)\.gitattributes$/.test(name);
    await this.#checkOut(filtered.filter(isAttributes), source);
    const others = filtered.filter((write) => !isAttributes(write));
    await this.#checkOut(others, source);
  }

  /** The very bytes. */
  async #writeOwn(writes: RestorePlan['writes']): Promise<void> {
    if (writes.length === 0) return;
    const { git, path } = this.#place;
    await git.run(['cat-file', '--batch'], {
      cwd: path,
      input: writes.map(({ oid }) => `${oid}\n`),
      read: async (output) => {
        const blobs = new BlobOutput(output);
        for (const { name, mode } of writes) {
          const size = await blobs.size();
          await this.#makeWay(name);
          if (mode === LINK) await symlink(await whole(blobs.bytes(size)), inside(path, name));
          else await this.#writeFile(name, mode, blobs.bytes(size));
        }
      },
    });
  }

  async #writeFile(name: string, mode: string, bytes: AsyncIterable<Buffer>): Promise<void> {
    const file = await open(inside(this.#place.path, name), 'wx', mode === '100755' ? 0o777 : 0o666);
    try {
      for await (const chunk of bytes) await file.writeFile(chunk);
    } finally {
      await file.close();
    }
  }

  /**
   * As git checks them out, with filters and line ends. Where the file had another size than that, and just that of the blob,
   * it was there before such a rule was, and gets the very bytes.
   */
  async #checkOut(writes: RestorePlan['writes'], { tree, sizes }: Source): Promise<void> {
    if (writes.length === 0) return;
    const { git, path: cwd } = this.#place;
    const index = join(folderOf(this.#place), 'checkout.index');
    await rm(`${index}.lock`, { force: true });
    await git.run(['read-tree', tree], { cwd, index });
    for (const { name } of writes) await this.#makeWay(name);
    const input = writes.map(({ name }) => bytesOf(`${name}\0`));
    await git.run(['checkout-index', '-f', '-z', '--stdin'], { cwd, index, input });
    await rm(index);

    const unlike: (RestorePlan['writes'][number] & { readonly size: number })[] = [];
    for (const write of writes) {
      const size = sizes.get(write.name);
      if (size === undefined || size === 0 || write.mode === LINK) continue;
      if ((await stat(inside(cwd, write.name))).size !== size) unlike.push({ ...write, size });
    }
    if (unlike.length === 0) return;
    const oids = unlike.map(({ oid }) => `${oid}\n`);
    const blobSizes = withoutEnd(
      await git.run(['cat-file', '--batch-check=%(objectsize)'], { cwd, input: oids }),
    ).split('\n');
    await this.#writeOwn(unlike.filter(({ size }, at) => Number(blobSizes[at]) === size));
  }

  /** Folders above it, and nothing in its place. */
  async #makeWay(name: string): Promise<void> {
    for (const folder of foldersOf(name)) await this.#makeFolderOf(folder);
    const there = entryAt(this.#place.path, name);
    if (there === null) await this.#moveAside(name);
    else if (there !== 'folder') await this.#unlink(name);
    else if (!(await this.#removeHollow(inside(this.#place.path, name)))) await this.#moveAside(name);
  }

  async #makeFolderOf(name: string): Promise<void> {
    if (this.#folders.has(name)) return;
    for (const folder of [...foldersOf(name), name]) {
      if (this.#folders.has(folder)) continue;
      if (entryAt(this.#place.path, folder) !== 'folder') {
        await this.#moveAside(folder);
        await mkdir(inside(this.#place.path, folder));
      }
      this.#folders.add(folder);
    }
  }

  async #moveAside(name: string): Promise<void> {
    const from = inside(this.#place.path, name);
    if (!exists(from)) return;
    let to = inside(this.#attic, name);
    // Something that was in it may have been moved before.
    for (let n = 2; exists(to); n += 1) to = inside(this.#attic, `${name}~${n}`);
    await mkdir(folderAbove(to), { recursive: true, mode: 0o700 });
    try {
      await rename(from, to);
    } catch (error) {
      if (!isErrno(error, 'EXDEV')) throw error;
      await moveFar(from.toString('utf8'), to.toString('utf8'));
    }
  }

  async #unlink(name: string): Promise<void> {
    try {
      await unlink(inside(this.#place.path, name));
    } catch (error) {
      if (!isErrno(error, ...ABSENT)) throw error;
    }
  }

  /** Folders that have nothing in them any more, save those that submodules are to be in. */
  async #removeEmptied(name: string, links: ReadonlySet<string>): Promise<void> {
    for (const folder of foldersOf(name).toReversed()) {
      if (links.has(folder) || !(await removeIfEmpty(inside(this.#place.path, folder)))) return;
    }
  }

  /** A folder in which there are but folders. False where there is something else in it. */
  async #removeHollow(folder: Buffer): Promise<boolean> {
    for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
      if (!entry.isDirectory()) return false;
      if (!(await this.#removeHollow(Buffer.concat([folder, Buffer.from('/'), entry.name])))) return false;
    }
    return removeIfEmpty(folder);
  }
}

/** To another file system. Node copies by paths that are text, and fails at others: then nothing is removed. */
async function moveFar(from: string, to: string): Promise<void> {
  try {
    await cp(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  } catch (error) {
    if (!isErrno(error, ...ABSENT)) throw error;
    throw new Refusal('refused', `${from} cannot be moved to ${to}`, 'move it away by hand, then try again');
  }
  await rm(from, { recursive: true });
}

async function removeIfEmpty(folder: Buffer): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return true;
    if (isErrno(error, 'ENOTEMPTY', 'EEXIST', 'ENOTDIR')) return false;
    throw error;
  }
}

function folderAbove(path: Buffer): Buffer {
  return path.subarray(0, path.lastIndexOf(0x2f));
}

async function whole(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

/** Output of `git cat-file --batch`, blob by blob, without holding a whole blob in memory. */
class BlobOutput {
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
