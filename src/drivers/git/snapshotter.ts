// Takes snapshots of one working tree.
//
// A clean tree costs one process, `git status`; the tree of HEAD is looked up once for each commit. A changed one costs four
// more (commit-writer.ts). Files that were read before are recognized by inode, size and times, as git does it, unless their
// times are so recent that another change might not show in them. A tree that has not changed since the last snapshot costs
// no more than a clean one.

import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { cp, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { CommitWriter } from './commit-writer.ts';
import type { CommitRequest, Content, StagedChange, TreeChange } from './commit-writer.ts';
import { INDEX_ARGS, readIndexListing } from './index-listing.ts';
import type { IndexListing } from './index-listing.ts';
import { LISTING_ARGS, readListing } from './listing.ts';
import type { Listing } from './listing.ts';
import { foldersOf, inside, NameSet } from './names.ts';
import { breakRefLock, indexPath, OPERATION_FILES, operationPath, refOf, writeRecord, writeRef } from './snapshot.ts';
import type { InnerRepository, SnapshotRecord } from './snapshot.ts';
import { entryAt, exists, namesIn } from './worktree-paths.ts';
import type { WorktreeInfo } from './worktree-paths.ts';

/** Blob of a file that was read. */
interface KnownBlob {
  readonly fingerprint: string;
  readonly oid: string;
}

/** All differences between HEAD and the working tree. */
interface Difference extends TreeChange {
  /** Of the files among the contents, for the next snapshot. */
  readonly fingerprints: ReadonlyMap<string, string>;
  /** Folders in place of tracked files. */
  readonly folders: readonly string[];
}

interface IndexCopy {
  /** File name; changes with every change of the index. */
  readonly file: string;
  readonly listing: IndexListing;
}

/** A new snapshot, with what was read for it. */
export interface Taken extends SnapshotRecord {
  readonly listing: Listing;
  /** Names that a sparse checkout leaves out. */
  readonly skipped: readonly string[];
}

interface Written {
  readonly commit: string;
  readonly tree: string;
}

/** File systems keep coarse times: two changes in quick succession may look like one. */
const RECENT_MS = 2_000;

export class Snapshotter {
  readonly #info: WorktreeInfo;
  readonly #writer: CommitWriter;
  /** Commit → its tree. */
  readonly #trees = new Map<string, string>();
  #index: IndexCopy | null = null;
  #blobs: ReadonlyMap<string, KnownBlob> = new Map();
  #last: (Written & { readonly key: string }) | null = null;

  constructor(info: WorktreeInfo) {
    this.#info = info;
    this.#writer = new CommitWriter(info);
  }

  async list(): Promise<Listing> {
    return readListing(await this.#info.git.run(LISTING_ARGS, { cwd: this.#info.path }));
  }

  /** `keep`: further commits for the ref to keep alive. */
  async take(name: string, keep: readonly string[] = []): Promise<Taken> {
    const info = this.#info;
    // Fails for a bad name before anything is done.
    refOf(info, name);
    breakRefLock(info, name);
    const [listing, index] = await Promise.all([this.list(), this.#copyIndex()]);
    const { head, branch } = listing;
    const repositories = await this.#repositories(listing, index?.listing ?? null);
    const difference = this.#difference(listing, index?.listing ?? null);
    const ignored = [...listing.ignored, ...unlisted(difference.folders, listing)];
    const own = [...difference.fingerprints.keys()];
    const { removed, contents } = difference;
    const staged = index === null ? null : stagedIn(listing, indexPath(info, index.file));
    const isClean = removed.length === 0 && contents.length === 0 && staged === null;

    let written: Written;
    if (head !== null && isClean && keep.length === 0) {
      written = { commit: head, tree: await this.treeOf(head) };
      this.#blobs = new Map();
    } else {
      const message = `meow: ${name} of ${info.run}`;
      const request = { head, removed, contents, staged, keep, message };
      written = this.#repeated(request) ?? (await this.#write(request, difference.fingerprints));
    }
    await writeRef(info, name, written.commit);
    const operation = await this.#copyOperation();
    const { commit, tree } = written;
    const kept = { index: index?.file ?? null, ignored, repositories, operation };
    const record: SnapshotRecord = { name, commit, tree, head, branch, own, ...kept };
    writeRecord(info, record);
    return { ...record, listing, skipped: index?.listing.skipped ?? [] };
  }

  async treeOf(commit: string): Promise<string> {
    const known = this.#trees.get(commit);
    if (known !== undefined) return known;
    const tree = await this.#info.git.line(['rev-parse', '--verify', `${commit}^{tree}`], { cwd: this.#info.path });
    this.#trees.set(commit, tree);
    return tree;
  }

  /** The last snapshot's commit, if this one would be the same. */
  #repeated(request: CommitRequest): Written | null {
    if (request.contents.some(({ oid }) => oid === null)) return null;
    return this.#last?.key === keyOf(request) ? this.#last : null;
  }

  async #write(request: CommitRequest, fingerprints: ReadonlyMap<string, string>): Promise<Written> {
    this.#blobs = new Map();
    const { commit, tree, contents } = await this.#writer.write(request);
    this.#blobs = new Map(
      contents.flatMap(({ name, oid }) => {
        const fingerprint = fingerprints.get(name);
        return fingerprint === undefined ? [] : [[name, { fingerprint, oid }] as const];
      }),
    );
    this.#last = { key: keyOf({ ...request, contents }), commit, tree };
    return { commit, tree };
  }

  #difference(listing: Listing, index: IndexListing | null): Difference {
    const removed = new Set<string>();
    const contents = new Map<string, Content>();
    const fingerprints = new Map<string, string>();
    const recentMs = Date.now() - RECENT_MS;
    const folders: string[] = [];
    const isFolderAt = new Map<string, boolean>();
    /** False if a folder above it is a link, which leads elsewhere. */
    const isInTree = (name: string): boolean =>
      foldersOf(name).every((folder) => {
        const isFolder = isFolderAt.get(folder) ?? entryAt(this.#info.path, folder) === 'folder';
        isFolderAt.set(folder, isFolder);
        return isFolder;
      });
    /** False if there is nothing that a tree can hold. */
    const look = (name: string): boolean => {
      if (!isInTree(name)) return false;
      const found = entryAt(this.#info.path, name);
      if (found === 'folder') folders.push(name);
      if (found === null || found === 'folder') return false;
      const known = this.#blobs.get(name);
      const oid = known?.fingerprint === found.fingerprint ? known.oid : null;
      contents.set(name, { name, mode: found.mode, oid });
      // No file has such a fingerprint, so it is read again the next time.
      fingerprints.set(name, found.changedAtMs > recentMs ? `${found.fingerprint} recent` : found.fingerprint);
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
    for (const name of index?.assumed ?? []) if (!look(name)) removed.add(name);
    for (const name of index?.skipped ?? []) look(name);
    return {
      removed: [...removed].filter((name) => !contents.has(name)),
      contents: [...contents.values()],
      fingerprints,
      folders,
    };
  }

  async #repositories(listing: Listing, index: IndexListing | null): Promise<readonly InnerRepository[]> {
    const submodules = (index?.submodules ?? []).map((name) => ({ kind: 'submodule' as const, name }));
    const nested = listing.nested.map((name) => ({ kind: 'nested' as const, name }));
    const found = await Promise.all(
      [...submodules, ...nested].map(async ({ kind, name }) => {
        const head = await innerHead(this.#info, name);
        return head === undefined ? [] : [{ kind, name, head }];
      }),
    );
    return found.flat();
  }

  /** Git replaces the index and never writes into it, so an open file does not change. */
  async #copyIndex(): Promise<IndexCopy | null> {
    const info = this.#info;
    const opened = openIfExists(join(info.gitDir, 'index'));
    if (opened === null) return null;
    let bytes: Buffer;
    let file: string;
    let seconds: number;
    try {
      const { ino, size, mtimeNs } = fstatSync(opened, { bigint: true });
      file = `${mtimeNs}-${ino}-${size}`;
      seconds = Number(mtimeNs / 1_000_000_000n);
      if (this.#index?.file === file && exists(indexPath(info, file))) return this.#index;
      bytes = readFileSync(opened);
    } finally {
      closeSync(opened);
    }
    const path = indexPath(info, file);
    if (!exists(path)) {
      const isSplit = namesIn(info.gitDir).some((name) => name.startsWith('sharedindex.'));
      if (isSplit) bytes = await this.#joined(bytes, seconds);
      makeFolder(dirname(path));
      writeIndex(`${path}.new`, bytes, seconds);
      renameSync(`${path}.new`, path);
    }
    const output = await info.git.run(INDEX_ARGS, { cwd: info.path, index: path });
    this.#index = { file, listing: readIndexListing(output) };
    return this.#index;
  }

  /** A split index in one file. Git finds the shared part only beside the index, and deletes it some day. */
  async #joined(bytes: Buffer, seconds: number): Promise<Buffer> {
    const { git, gitDir, path: cwd } = this.#info;
    const index = join(gitDir, 'index.meow-joined');
    writeIndex(index, bytes, seconds);
    await rm(`${index}.lock`, { force: true });
    await git.run(['-c', 'core.splitIndex=false', 'update-index', '--no-split-index'], { cwd, index });
    const joined = readFileSync(index);
    await rm(index);
    return joined;
  }

  async #copyOperation(): Promise<string | null> {
    const info = this.#info;
    const names = namesIn(info.gitDir).filter((name) => OPERATION_FILES.has(name));
    if (names.length === 0) return null;
    const folder = randomBytes(6).toString('hex');
    await mkdir(operationPath(info, folder), { recursive: true, mode: 0o700 });
    for (const name of names) {
      await cp(join(info.gitDir, name), join(operationPath(info, folder), name), { recursive: true });
    }
    return folder;
  }
}

/** Equal for two snapshots of the same state. */
function keyOf({ head, removed, contents, staged, keep }: CommitRequest): string {
  return JSON.stringify([head, removed, contents, staged?.removed, staged?.contents, keep]);
}

/** Git trusts the cached times of files that are older than the index, so a copy must not be newer than the original. */
function writeIndex(path: string, bytes: Buffer, seconds: number): void {
  writeFileSync(path, bytes, { mode: 0o600 });
  utimesSync(path, seconds, seconds);
}

function openIfExists(path: string): number | null {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}

/** Undefined if there is no repository; null if it has no commit. */
export async function innerHead(info: WorktreeInfo, name: string): Promise<string | null | undefined> {
  const gitDir = Buffer.concat([inside(info.path, name), Buffer.from('/.git')]);
  if (!exists(gitDir)) return undefined;
  const args = ['--git-dir', '.git', 'rev-parse', '--verify', '--quiet', 'HEAD'];
  // Node cannot use a working directory whose name is not UTF-8.
  const cwd = inside(info.path, name).toString('utf8');
  if (!exists(cwd)) return null;
  const answer = await info.git.ask(args, { cwd });
  return answer.status === 0 ? answer.stdout.toString('latin1').trim() : null;
}

/** Ignored folders in place of tracked files, which git does not list. */
function unlisted(folders: readonly string[], { untracked, nested, ignored }: Listing): readonly string[] {
  if (folders.length === 0) return [];
  const listed = new NameSet([...untracked, ...nested.map((name) => `${name}/`), ...ignored]);
  return folders
    .map((name) => `${name}/`)
    .filter((name) => !listed.isWithin(name.slice(0, -1)) && !listed.covers(name));
}

/** Null if nothing is staged. Unmerged stages get names of their own: they are kept for people and from garbage collection. */
function stagedIn({ changed }: Listing, index: string): StagedChange | null {
  const removed = changed.filter(({ isTracked }) => !isTracked).map(({ name }) => name);
  const unmerged = changed.filter(({ isUnmerged }) => isUnmerged).map(({ name }) => name);
  const contents = changed.flatMap(({ name, staged }) =>
    staged.map(({ mode, oid }, stage) => ({ name: staged.length === 1 ? name : `${name}~${stage + 1}`, mode, oid })),
  );
  return removed.length === 0 && contents.length === 0 ? null : { index, removed, unmerged, contents };
}
