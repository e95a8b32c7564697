// Takes snapshots of one working tree.
//
// A clean tree costs one process, `git status`; HEAD's tree is looked up once for each commit. One that is not clean costs
// one more, for what has changed since the last time: what was read is known again by its inode, size and times, as git
// does, and not trusted where those are so young that a further change might not show in them. A tree that is as it was
// the last time costs no more than a clean one.

import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { cp, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { failed } from './git.ts';
import { readIndexMarks, readMarkList } from './index-file.ts';
import type { IndexMarks } from './index-file.ts';
import { LISTING_ARGS, readListing } from './listing.ts';
import type { Listing } from './listing.ts';
import { foldersOf, inside, NameSet } from './names.ts';
import { namesIn } from './worktree-paths.ts';
import type { Place } from './worktree-paths.ts';
import { breakRefLock, indexPath, OPERATION_FILES, operationPath, refOf, writeRecord, writeRef } from './snapshot.ts';
import type { InnerRepository, SnapshotRecord } from './snapshot.ts';
import { exists, importState, lookAt } from './state-import.ts';
import type { Content, ImportRequest } from './state-import.ts';

/** Of contents that were read. */
interface Known {
  readonly print: string;
  readonly oid: string;
}

/** All in which the tree differs from HEAD. */
interface Difference {
  readonly removed: readonly string[];
  readonly contents: readonly Content[];
  /** For those of `contents` that are files: what is to be known of them the next time. */
  readonly prints: ReadonlyMap<string, string>;
  /** Names of files where there are folders. */
  readonly folders: readonly string[];
}

interface KeptIndex {
  /** Its name, by which it is known again. */
  readonly file: string;
  readonly marks: IndexMarks;
}

interface Made {
  readonly commit: string;
  readonly tree: string;
}

/** Clocks of file systems go in steps; two changes within one look like one. */
const YOUNG_MS = 2_000;

export class Taking {
  readonly #place: Place;
  /** Commit → its tree. */
  readonly #trees = new Map<string, string>();
  #index: KeptIndex | null = null;
  #known: ReadonlyMap<string, Known> = new Map();
  #last: (Made & { readonly key: string }) | null = null;

  constructor(place: Place) {
    this.#place = place;
  }

  async list(): Promise<Listing> {
    return readListing(await this.#place.git.run(LISTING_ARGS, { cwd: this.#place.path }));
  }

  /** `keep`: further commits that its ref is to keep alive. */
  async take(name: string, keep: readonly string[] = []): Promise<SnapshotRecord & { readonly listing: Listing }> {
    const place = this.#place;
    const ref = refOf(place, name);
    breakRefLock(place, name);
    const [listing, index] = await Promise.all([this.list(), this.#keepIndex()]);
    const { head, branch } = listing;
    const marks = index?.marks ?? NO_MARKS;
    const repositories = await this.#repositories(listing, marks);
    const difference = this.#difference(listing, marks);
    const ignored = [...listing.ignored, ...unlisted(difference.folders, listing)];
    const own = [...difference.prints.keys()];
    const staged = stagedOf(listing);
    const isClean = difference.removed.length === 0 && difference.contents.length === 0 && staged === null;

    let made: Made;
    if (head !== null && isClean && keep.length === 0) {
      made = { commit: head, tree: await this.treeOf(head) };
      this.#known = new Map();
      await writeRef(place, name, head);
    } else {
      const { removed, contents } = difference;
      const key = JSON.stringify([head, removed, contents, staged, keep]);
      const last = this.#last?.key === key ? this.#last : null;
      const same = last !== null && contents.every(({ oid }) => oid !== null) ? last : null;
      if (same !== null) await writeRef(place, name, same.commit);
      const request = { head, removed, contents, staged, keep, ref, message: `meow: ${name} of ${place.run}` };
      made = same === null ? await this.#import(request, difference) : { commit: same.commit, tree: same.tree };
    }
    const operation = await this.#keepOperation();
    const kept = { index: index?.file ?? null, ignored, repositories, operation };
    const record: SnapshotRecord = { name, ...made, head, branch, own, ...kept };
    writeRecord(place, record);
    return { ...record, listing };
  }

  async treeOf(commit: string): Promise<string> {
    const known = this.#trees.get(commit);
    if (known !== undefined) return known;
    const tree = await this.#place.git.line(['rev-parse', '--verify', `${commit}^{tree}`], { cwd: this.#place.path });
    this.#trees.set(commit, tree);
    return tree;
  }

  async marksOf(indexFile: string, bytes: Buffer): Promise<IndexMarks> {
    const { git, path, oidBytes } = this.#place;
    const marks = readIndexMarks(bytes, oidBytes);
    if (typeof marks !== 'string') return marks;
    return readMarkList(await git.run(['ls-files', '-s', '-v', '-z'], { cwd: path, index: indexFile }));
  }

  async #import(request: Omit<ImportRequest, 'git' | 'path' | 'seconds'>, difference: Difference): Promise<Made> {
    const { git, path, gitDir } = this.#place;
    const began = Date.now();
    const answer = await importState({ ...request, git, path, seconds: Math.floor(began / 1000) });
    if ('complaint' in answer) {
      // What git leaves behind on such an occasion.
      await rm(join(gitDir, `fast_import_crash_${answer.pid}`), { force: true });
      this.#known = new Map();
      // What we know to be there may have been collected as garbage meanwhile.
      if (request.contents.some(({ name, oid }) => oid !== null && difference.prints.has(name))) {
        const contents = request.contents.map((content) =>
          difference.prints.has(content.name) ? { ...content, oid: null } : content,
        );
        return this.#import({ ...request, contents }, difference);
      }
      throw failed(['fast-import'], {
        status: 128,
        stdout: Buffer.alloc(0),
        stderr: answer.complaint,
        pid: answer.pid,
      });
    }
    const { commit, oids } = answer.imported;
    const fresh = oids.values();
    const contents = request.contents.map((content) => ({
      ...content,
      oid: content.oid ?? fresh.next().value ?? null,
    }));
    this.#known = new Map(
      contents.flatMap(({ name, oid }) => {
        const print = difference.prints.get(name);
        return print === undefined || oid === null ? [] : [[name, { print, oid }] as const];
      }),
    );
    const tree = answer.imported.tree ?? (await this.treeOf(commit));
    const { head, removed, staged, keep } = request;
    this.#last = { key: JSON.stringify([head, removed, contents, staged, keep]), commit, tree };
    return { commit, tree };
  }

  #difference(listing: Listing, marks: IndexMarks): Difference {
    const removed = new Set<string>();
    const contents = new Map<string, Content>();
    const prints = new Map<string, string>();
    const young = Date.now() - YOUNG_MS;
    const folders: string[] = [];
    const above = new Map<string, boolean>();
    /** What is seen through a link is elsewhere. */
    const isInTree = (name: string): boolean =>
      foldersOf(name).every((folder) => {
        const isFolder = above.get(folder) ?? lookAt(this.#place.path, folder) === 'folder';
        above.set(folder, isFolder);
        return isFolder;
      });
    /** False where nothing is there that a tree can hold. */
    const look = (name: string): boolean => {
      if (!isInTree(name)) return false;
      const found = lookAt(this.#place.path, name);
      if (found === 'folder') folders.push(name);
      if (found === null || found === 'folder') return false;
      const known = this.#known.get(name);
      contents.set(name, { name, mode: found.mode, oid: known?.print === found.print ? known.oid : null });
      prints.set(name, found.changedAt > young ? `${found.print} young` : found.print);
      return true;
    };
    for (const { name, isSubmodule, isTracked, staged } of listing.changed) {
      if (!isTracked) {
        removed.add(name);
      } else if (!look(name)) {
        const [link] = staged;
        const isFolder = folders.at(-1) === name;
        if (!isSubmodule || !isFolder) removed.add(name);
        else if (link !== undefined) contents.set(name, { name, ...link });
        if (isSubmodule && isFolder) folders.pop();
      }
    }
    for (const name of listing.untracked) look(name);
    for (const name of marks.assumed) if (!look(name)) removed.add(name);
    for (const name of marks.skipped) look(name);
    return {
      removed: [...removed].filter((name) => !contents.has(name)),
      contents: [...contents.values()],
      prints,
      folders,
    };
  }

  async #repositories(listing: Listing, marks: IndexMarks): Promise<readonly InnerRepository[]> {
    const submodules = marks.submodules.map((name) => ({ kind: 'submodule' as const, name }));
    const nested = listing.nested.map((name) => ({ kind: 'nested' as const, name }));
    const found = await Promise.all(
      [...submodules, ...nested].map(async ({ kind, name }) => {
        const head = await innerHead(this.#place, name);
        return head === undefined ? [] : [{ kind, name, head }];
      }),
    );
    return found.flat();
  }

  /** The file is replaced whenever it changes, never written to: what was opened stays what it is. */
  async #keepIndex(): Promise<KeptIndex | null> {
    const place = this.#place;
    const opened = openIfThere(join(place.gitDir, 'index'));
    if (opened === null) return null;
    let bytes: Buffer;
    let file: string;
    let seconds: number;
    try {
      const { ino, size, mtimeNs } = fstatSync(opened, { bigint: true });
      file = `${mtimeNs}-${ino}-${size}`;
      seconds = Number(mtimeNs / 1_000_000_000n);
      if (this.#index?.file === file && exists(indexPath(place, file))) return this.#index;
      bytes = readFileSync(opened);
    } finally {
      closeSync(opened);
    }
    const path = indexPath(place, file);
    if (!exists(path)) {
      if (readIndexMarks(bytes, place.oidBytes) === 'split') bytes = await this.#joined(bytes, seconds);
      makeFolder(dirname(path));
      writeIndex(`${path}.new`, bytes, seconds);
      renameSync(`${path}.new`, path);
    }
    this.#index = { file, marks: await this.marksOf(path, readFileSync(path)) };
    return this.#index;
  }

  /** An index in one file. Beside the other, where git finds its second part, which it deletes some day. */
  async #joined(bytes: Buffer, seconds: number): Promise<Buffer> {
    const { git, gitDir, path: cwd } = this.#place;
    const index = join(gitDir, 'index.meow-joined');
    writeIndex(index, bytes, seconds);
    await rm(`${index}.lock`, { force: true });
    await git.run(['-c', 'core.splitIndex=false', 'update-index', '--no-split-index'], { cwd, index });
    const joined = readFileSync(index);
    await rm(index);
    return joined;
  }

  async #keepOperation(): Promise<string | null> {
    const place = this.#place;
    const names = namesIn(place.gitDir).filter((name) => OPERATION_FILES.has(name));
    if (names.length === 0) return null;
    const folder = randomBytes(6).toString('hex');
    await mkdir(operationPath(place, folder), { recursive: true, mode: 0o700 });
    for (const name of names) {
      await cp(join(place.gitDir, name), join(operationPath(place, folder), name), { recursive: true });
    }
    return folder;
  }
}

/** Git trusts what it knows of a file if that is older than the index. So a copy must never seem younger than it is. */
function writeIndex(path: string, bytes: Buffer, seconds: number): void {
  writeFileSync(path, bytes, { mode: 0o600 });
  utimesSync(path, seconds, seconds);
}

function openIfThere(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}

const NO_MARKS: IndexMarks = { assumed: [], skipped: [], submodules: [] };

/** Undefined where there is no repository; null where it has no commit. */
export async function innerHead(place: Place, name: string): Promise<string | null | undefined> {
  const gitDir = Buffer.concat([inside(place.path, name), Buffer.from('/.git')]);
  if (!exists(gitDir)) return undefined;
  const args = ['--git-dir', '.git', 'rev-parse', '--verify', '--quiet', 'HEAD'];
  // A folder whose name is no UTF-8 cannot be told to Node as one to work in.
  const cwd = inside(place.path, name).toString('utf8');
  if (!exists(cwd)) return null;
  const answer = await place.git.ask(args, { cwd });
  return answer.status === 0 ? answer.stdout.toString('latin1').trim() : null;
}

/** Ignored folders where tracked files should be: git tells of neither. */
function unlisted(folders: readonly string[], { untracked, nested, ignored }: Listing): readonly string[] {
  if (folders.length === 0) return [];
  const listed = new NameSet([...untracked, ...nested.map((name) => `${name}/`), ...ignored]);
  return folders
    .map((name) => `${name}/`)
    .filter((name) => !listed.isWithin(name.slice(0, -1)) && !listed.covers(name));
}

/** Unmerged ones under names of their own: it is for keeping them, and for looking at. */
function stagedOf({ changed }: Listing): { removed: readonly string[]; contents: readonly Content[] } | null {
  const removed = changed.filter(({ isTracked }) => !isTracked).map(({ name }) => name);
  const contents = changed.flatMap(({ name, staged }) =>
    staged.map(({ mode, oid }, stage) => ({ name: staged.length === 1 ? name : `${name}~${stage + 1}`, mode, oid })),
  );
  return removed.length === 0 && contents.length === 0 ? null : { removed, contents };
}
