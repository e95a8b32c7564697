// The working tree of a run, and the files about it:
//
//   REPOSITORY/meow/RUN/         in the folder that all working trees of the repository share
//     run.json                   tree, branch and base commit of the run
//     snapshots/NAME.json        describes refs/meow/RUN/NAME (snapshot.ts)
//     indexes/                   copies of the tree's index, one for each state that a snapshot has, named by its SHA-256
//     operations/                copies of git's state in the middle of a merge, a rebase …
//     restores/ID.json           progress of a restore (restore.ts)
//     kept/UNDONE/               files that restores have moved aside because no commit can hold them
//     git/                       git folder of our own, without any setting of the repository (git.ts)
//   GITDIR/meow-lease.json       in the tree's own git folder: the run that uses it
//
// All of it outlives engines; `meow gc` removes it. Agents can reach it, so the journal decides: what it says about the run and
// its snapshots is compared with the files, and what the files lack is rebuilt from it.

import { randomBytes } from 'node:crypto';
import { type BigIntStats, lstatSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';

import { assert } from '../../base/errors.ts';
import { ABSENT, tolerate } from '../../sys/errors.ts';
import { clearPlaceOf, makeFolderBelow, readUntrustedFile } from '../../sys/files.ts';
import { type Git, LINK } from './git.ts';

/** A repository, and one of its working trees. */
export interface RepositoryInfo {
  /** Works in the tree. */
  readonly git: Git;
  /** Top folder of the tree, absolute. */
  readonly path: string;
  readonly gitDir: string;
  readonly commonDir: string;
  /** The user's own rules for files that git ignores. */
  readonly excludesFile: string | null;
  /** 20, or 32 with SHA-256. */
  readonly oidBytes: number;
  /** Refs are files, not a reftable. */
  readonly refsAreFiles: boolean;
}

/** Content of `run.json`. */
export interface RunRecord {
  /** `in-place`: the user's own tree. */
  readonly kind: 'worktree' | 'in-place';
  readonly path: string;
  /** `meow/run-ID`; in place, the branch of HEAD, or null. */
  readonly branch: string | null;
  /** Commit that the run started from. */
  readonly base: string;
}

export interface WorktreeInfo extends RepositoryInfo, RunRecord {
  readonly run: string;
  /** For files of ours, instead of the run's folder in the repository. */
  readonly scratch?: string;
}

/** What the journal knows about the worktree of a run. */
export interface RunFacts extends RunRecord {
  readonly run: string;
  /** Content of the file `.git` in the worktree; null if it is a folder, or unknown. */
  readonly pointer: string | null;
}

export function runFolder(commonDir: string, run: string): string {
  assert(isRunName(run), `${JSON.stringify(run)} cannot be a part of a ref`);
  return join(commonDir, 'meow', run);
}

/** Run ids are parts of refs and paths. */
export function isRunName(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text);
}

/** Exists, and is a folder. */
export function folderOf(info: WorktreeInfo): string {
  if (info.scratch !== undefined) return info.scratch;
  const folder = runFolder(info.commonDir, info.run);
  makeFolderBelow(info.commonDir, folder);
  return folder;
}

/** The same for a folder in it. */
export function folderIn(info: WorktreeInfo, name: string): string {
  const top = folderOf(info);
  makeFolderBelow(top, join(top, name));
  return join(top, name);
}

/** Writes a file of ours, whatever is in its place. Readers find the old contents or the new. */
export function replaceBytes(path: string, bytes: Uint8Array): void {
  const draft = `${path}.${randomBytes(6).toString('hex')}.new`;
  writeFileSync(draft, bytes, { flag: 'wx', mode: 0o600 });
  clearPlaceOf(path);
  renameSync(draft, path);
}

/** Git for objects and indexes of ours. */
export function plumbing(info: WorktreeInfo): Git {
  return info.git.plumbing(join(folderOf(info), 'git'), info.commonDir, info.oidBytes);
}

/** Git folder that the file `.git` of a worktree names; null if it is not one of this repository. */
export function gitDirIn(pointer: string, path: string, commonDir: string): string | null {
  const target = /^gitdir: ([^\n]+)\n?$/.exec(pointer)?.[1];
  if (target === undefined) return null;
  const gitDir = resolve(path, target);
  return dirname(gitDir) === join(commonDir, 'worktrees') && basename(gitDir) !== '' ? gitDir : null;
}

/** Git folder of a worktree, if the worktree and the repository agree about each other; otherwise null. */
export function registeredGitDir(commonDir: string, path: string): string | null {
  const pointer = readSmallFile(join(path, '.git'));
  const gitDir = pointer === null ? null : gitDirIn(pointer, path, commonDir);
  if (gitDir === null || !isFolder(gitDir)) return null;
  const back = readSmallFile(join(gitDir, 'gitdir'));
  return back !== null && resolve(gitDir, back.trimEnd()) === join(path, '.git') ? gitDir : null;
}

/** Null if it is not a regular file, or longer than files that git writes about worktrees. */
export function readSmallFile(path: string): string | null {
  return readUntrustedFile(path, SMALL_BYTES_MAX)?.text ?? null;
}

const SMALL_BYTES_MAX = 100_000;

/** A folder, not a link to one. */
export function isFolder(path: string): boolean {
  return statIfExists(path)?.isDirectory() === true;
}

export function algorithmOf({ oidBytes }: RepositoryInfo): 'sha1' | 'sha256' {
  return oidBytes === 32 ? 'sha256' : 'sha1';
}

/** Path for an index of ours. Nobody else uses it, so whatever is there was left by a killed git, or planted. */
export function privateIndex(info: WorktreeInfo, name: string): string {
  const index = join(folderOf(info), name);
  for (const path of [index, `${index}.lock`]) {
    clearPlaceOf(path);
    rmSync(path, { force: true });
  }
  return index;
}

/** Empty if there is no such folder. */
export function namesIn(folder: string): readonly string[] {
  return tolerate(ABSENT, [], () => readdirSync(folder));
}

/** A file or link that git can hold: its mode for git, and a fingerprint that every change changes. */
interface FoundEntry {
  readonly mode: string;
  readonly fingerprint: string;
  readonly changedAtMs: number;
}

/** Null if nothing is there, or something that git cannot hold. */
export function entryAt(path: string, name: string): FoundEntry | 'folder' | null {
  const found = statIfExists(inside(path, name));
  if (found === null) return null;
  if (found.isDirectory()) return 'folder';
  if (!found.isFile() && !found.isSymbolicLink()) return null;
  const mode = found.isSymbolicLink() ? LINK : (found.mode & 0o100n) === 0n ? '100644' : '100755';
  const fingerprint = [mode, found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ');
  return { mode, fingerprint, changedAtMs: Number(found.ctimeMs) };
}

export function exists(path: string | Buffer): boolean {
  return statIfExists(path) !== null;
}

function statIfExists(path: string | Buffer): BigIntStats | null {
  // Exceptions are slow, and many of these paths do not exist.
  return tolerate(['ENOTDIR'], null, () => lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null);
}

/**
 * Paths inside a tree, as git knows them: bytes with slashes. Here a path is a string with one character for each byte
 * (a *name*), so that it can be a key, be cut and compared, and need not be UTF-8. Path for system calls. `root` is an
 * ordinary path.
 */
export function inside(root: string, name: string): Buffer {
  return Buffer.concat([Buffer.from(`${root}/`), bytesOf(name)]);
}

export function bytesOf(name: string): Buffer {
  return Buffer.from(name, 'latin1');
}

/** Text for people and patterns. Bytes that are not UTF-8 become U+FFFD. */
export function textOf(name: string): string {
  return bytesOf(name).toString('utf8');
}

/** Name of an ordinary path. */
export function nameOf(path: string): string {
  return Buffer.from(path).toString('latin1');
}

/** Quoted as git reads it from a line. */
export function quoted(name: string): string {
  const escaped = name.replaceAll(/[^ !#-[\]-~]/g, (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`);
  return `"${escaped}"`;
}

/** `a` and `a/b` for `a/b/c`. */
export function foldersOf(name: string): readonly string[] {
  const folders: string[] = [];
  for (let at = name.indexOf('/'); at !== -1; at = name.indexOf('/', at + 1)) folders.push(name.slice(0, at));
  return folders;
}

/** A set of names, and of folders with a trailing slash that stand for all their contents. */
export class NameSet {
  readonly #names: ReadonlySet<string>;
  /** Folders that contain a member, at any depth. */
  readonly #above = new Set<string>();

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    for (const name of this.#names) for (const folder of foldersOf(name)) this.#above.add(folder);
  }

  /** The set has the name, or a folder that contains it. */
  covers(name: string): boolean {
    return this.#names.has(name) || foldersOf(name).some((folder) => this.#names.has(`${folder}/`));
  }

  /** The set has something in the folder, or the whole folder. `folder`: without a slash. */
  isWithin(folder: string): boolean {
    return this.#above.has(folder);
  }
}
