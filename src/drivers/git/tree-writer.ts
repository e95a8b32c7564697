// Carries out the plan of a restore in a working tree. Nothing is lost, and nothing is reached through a link.
//
// It can be killed at any moment and repeated: a missing file counts as removed, and a partial one is written again.

import { cp, mkdir, open, readdir, rename, rm, rmdir, stat, symlink, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import { withoutEnd } from './git.ts';
import { bytesOf, foldersOf, inside } from './names.ts';
import { entryAt, exists, folderOf } from './worktree-paths.ts';
import type { WorktreeInfo } from './worktree-paths.ts';
import { GitError } from './git-error.ts';
import { LINK, REPOSITORY } from './restore-plan.ts';
import type { RestorePlan } from './restore-plan.ts';

interface Source {
  readonly tree: string;
  /** Sizes of files in the working tree at the time of the snapshot; 0 if unknown. */
  readonly sizes: ReadonlyMap<string, number>;
}

export class TreeWriter {
  readonly #info: WorktreeInfo;
  /** Folder of the run for files that are moved aside. */
  readonly #attic: string;
  readonly #folders = new Set<string>();

  constructor(info: WorktreeInfo, attic: string) {
    this.#info = info;
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
    // Attributes come first, since they decide how git writes the others.
    const filtered = files.filter(({ isOwn }) => !isOwn);
    const isAttributes = ({ name }: { readonly name: string }): boolean => /(?:^|\/)\.gitattributes$/.test(name);
    await this.#checkOut(filtered.filter(isAttributes), source);
    const others = filtered.filter((write) => !isAttributes(write));
    await this.#checkOut(others, source);
  }

  /** Byte by byte. */
  async #writeOwn(writes: RestorePlan['writes']): Promise<void> {
    if (writes.length === 0) return;
    const { git, path } = this.#info;
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
    const file = await open(inside(this.#info.path, name), 'wx', mode === '100755' ? 0o777 : 0o666);
    try {
      for await (const chunk of bytes) await file.writeFile(chunk);
    } finally {
      await file.close();
    }
  }

  /**
   * As git checks them out, with filters and line ends. A file whose size was that of the blob, and not that of the checkout,
   * is older than those rules, and is written byte by byte.
   */
  async #checkOut(writes: RestorePlan['writes'], { tree, sizes }: Source): Promise<void> {
    if (writes.length === 0) return;
    const { git, path: cwd } = this.#info;
    const index = join(folderOf(this.#info), 'checkout.index');
    await rm(`${index}.lock`, { force: true });
    await git.run(['read-tree', tree], { cwd, index });
    for (const { name } of writes) await this.#makeWay(name);
    const input = writes.map(({ name }) => bytesOf(`${name}\0`));
    await git.run(['checkout-index', '-f', '-z', '--stdin'], { cwd, index, input });
    await rm(index);

    const others: (RestorePlan['writes'][number] & { readonly size: number })[] = [];
    for (const write of writes) {
      const size = sizes.get(write.name);
      if (size === undefined || size === 0 || write.mode === LINK) continue;
      if ((await stat(inside(cwd, write.name))).size !== size) others.push({ ...write, size });
    }
    if (others.length === 0) return;
    const oids = others.map(({ oid }) => `${oid}\n`);
    const blobSizes = withoutEnd(
      await git.run(['cat-file', '--batch-check=%(objectsize)'], { cwd, input: oids }),
    ).split('\n');
    await this.#writeOwn(others.filter(({ size }, at) => Number(blobSizes[at]) === size));
  }

  /** Creates the folders above a name, and removes what is in its way. */
  async #makeWay(name: string): Promise<void> {
    for (const folder of foldersOf(name)) await this.#makeFolderOf(folder);
    const there = entryAt(this.#info.path, name);
    if (there === null) await this.#moveAside(name);
    else if (there !== 'folder') await this.#unlink(name);
    else if (!(await this.#removeHollow(inside(this.#info.path, name)))) await this.#moveAside(name);
  }

  async #makeFolderOf(name: string): Promise<void> {
    if (this.#folders.has(name)) return;
    for (const folder of [...foldersOf(name), name]) {
      if (this.#folders.has(folder)) continue;
      if (entryAt(this.#info.path, folder) !== 'folder') {
        await this.#moveAside(folder);
        await mkdir(inside(this.#info.path, folder));
      }
      this.#folders.add(folder);
    }
  }

  async #moveAside(name: string): Promise<void> {
    const from = inside(this.#info.path, name);
    if (!exists(from)) return;
    let to = inside(this.#attic, name);
    // Some of its contents may have been moved before.
    for (let n = 2; exists(to); n += 1) to = inside(this.#attic, `${name}~${n}`);
    await mkdir(folderAbove(to), { recursive: true, mode: 0o700 });
    try {
      await rename(from, to);
    } catch (error) {
      if (!isErrno(error, 'EXDEV')) throw error;
      await moveAcross(from.toString('utf8'), to.toString('utf8'));
    }
  }

  async #unlink(name: string): Promise<void> {
    try {
      await unlink(inside(this.#info.path, name));
    } catch (error) {
      if (!isErrno(error, ...ABSENT)) throw error;
    }
  }

  /** Removes folders that have become empty, except those of submodules. */
  async #removeEmptied(name: string, links: ReadonlySet<string>): Promise<void> {
    for (const folder of foldersOf(name).toReversed()) {
      if (links.has(folder) || !(await removeIfEmpty(inside(this.#info.path, folder)))) return;
    }
  }

  /** Removes a folder that contains only folders. False if it contains anything else. */
  async #removeHollow(folder: Buffer): Promise<boolean> {
    for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
      if (!entry.isDirectory()) return false;
      if (!(await this.#removeHollow(Buffer.concat([folder, Buffer.from('/'), entry.name])))) return false;
    }
    return removeIfEmpty(folder);
  }
}

/** Moves to another file system. Node copies only paths that are text; for others nothing is removed. */
async function moveAcross(from: string, to: string): Promise<void> {
  try {
    await cp(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  } catch (error) {
    if (!isErrno(error, ...ABSENT)) throw error;
    throw new GitError('refused', `${from} cannot be moved to ${to}`, 'move it by hand, then try again');
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
