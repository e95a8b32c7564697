// Carries out the plan of a restore in a working tree. Nothing is lost, and nothing is reached through a link.
//
// It can be killed at any moment and repeated: a missing file counts as removed, and a partial one is written again.

import { cp, mkdir, readdir, rename, rm, rmdir, symlink, unlink, writeFile } from 'node:fs/promises';

import { ABSENT, isErrno, tolerateAsync } from '../../sys/errors.ts';
import { forgedBlobs, readBlobs } from './blobs.ts';
import { collect, GitError, LINK, REPOSITORY } from './git.ts';
import type { RestorePlan } from './restore-plan.ts';
import { entryAt, exists, foldersOf, inside, textOf, type WorktreeInfo } from './worktree-paths.ts';

export class TreeWriter {
  readonly #info: WorktreeInfo;
  /** Folder of the run for files that are moved aside. */
  readonly #attic: string;
  readonly #folders = new Set<string>();

  constructor(info: WorktreeInfo, attic: string) {
    this.#info = info;
    this.#attic = attic;
  }

  async carryOut({ aside, removals, writes }: RestorePlan): Promise<void> {
    const links = new Set(writes.filter(({ mode }) => mode === REPOSITORY).map(({ name }) => name));
    const files = writes.filter(({ name }) => !links.has(name));
    // Before anything is changed: git does not compare an object with its name.
    const [bad] = await forgedBlobs(this.#info, files);
    if (bad !== undefined) throw forged(bad.name);
    for (const name of aside) await this.#moveAside(name);
    for (const name of removals) await this.#unlink(name);
    for (const name of [...aside, ...removals]) await this.#removeEmptied(name, links);

    for (const name of links) await this.#makeFolders([...foldersOf(name), name]);
    await readBlobs(this.#info, files, async ({ name, mode }, bytes) => {
      await this.#makeWay(name);
      const path = inside(this.#info.path, name);
      if (mode === LINK) await symlink(await collect(bytes), path);
      else await writeFile(path, bytes, { flag: 'wx', mode: mode === '100755' ? 0o777 : 0o666 });
    });
  }

  /** Creates the folders above a name, and removes what is in its way. */
  async #makeWay(name: string): Promise<void> {
    await this.#makeFolders(foldersOf(name));
    const found = entryAt(this.#info.path, name);
    if (found === null) await this.#moveAside(name);
    else if (found !== 'folder') await this.#unlink(name);
    else if (!(await removeHollow(inside(this.#info.path, name)))) await this.#moveAside(name);
  }

  /** `folders`: each after the one that contains it. */
  async #makeFolders(folders: readonly string[]): Promise<void> {
    for (const folder of folders) {
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
    await mkdir(to.subarray(0, to.lastIndexOf('/')), { recursive: true, mode: 0o700 });
    try {
      await rename(from, to);
    } catch (error) {
      if (!isErrno(error, 'EXDEV')) throw error;
      await moveAcross(from.toString('utf8'), to.toString('utf8'));
    }
  }

  async #unlink(name: string): Promise<void> {
    await tolerateAsync(ABSENT, undefined, unlink(inside(this.#info.path, name)));
  }

  /** Removes folders that have become empty, except those of submodules. */
  async #removeEmptied(name: string, links: ReadonlySet<string>): Promise<void> {
    for (const folder of foldersOf(name).toReversed()) {
      if (links.has(folder) || !(await removeIfEmpty(inside(this.#info.path, folder)))) return;
    }
  }
}

function forged(name: string): GitError {
  const message = `the object of ${textOf(name)} in the snapshot does not have the contents that its name says`;
  return new GitError('no-snapshot', message, 'it was forged, or the disk is damaged: run git fsck');
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

/** Removes a folder that contains only folders. False if it contains anything else. */
async function removeHollow(folder: Buffer): Promise<boolean> {
  for (const entry of await readdir(folder, { withFileTypes: true, encoding: 'buffer' })) {
    if (!entry.isDirectory()) return false;
    if (!(await removeHollow(Buffer.concat([folder, Buffer.from('/'), entry.name])))) return false;
  }
  return removeIfEmpty(folder);
}

async function removeIfEmpty(folder: Buffer): Promise<boolean> {
  const removed = tolerateAsync(['ENOENT'], undefined, rmdir(folder)).then(() => true);
  return tolerateAsync(['ENOTEMPTY', 'EEXIST', 'ENOTDIR'], false, removed);
}
