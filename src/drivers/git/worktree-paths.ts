// The working tree of a run, and the files about it:
//
//   REPOSITORY/meow/RUN/         in the folder that all working trees of the repository share
//     run.json                   tree, branch and base commit of the run
//     snapshots/NAME.json        describes refs/meow/RUN/NAME (snapshot.ts)
//     indexes/                   copies of the tree's index, one for each state that a snapshot has
//     operations/                copies of git's state in the middle of a merge, a rebase …
//     restores/ID.json           progress of a restore (restore.ts)
//     kept/UNDONE/               files that restores have moved aside because no commit can hold them
//     base-COMMIT.index          tree of a commit, to build snapshots from (commit-writer.ts)
//   GITDIR/meow-lease.json       in the tree's own git folder: the run that uses it
//
// All of it outlives engines; `meow gc` removes it.

import { lstatSync, readdirSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../../base/assert.ts';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import type { Git } from './git.ts';
import { inside } from './names.ts';

export interface WorktreeInfo {
  readonly git: Git;
  readonly run: string;
  /** `in-place`: the user's own tree. */
  readonly kind: 'worktree' | 'in-place';
  /** Top folder of the tree, absolute. */
  readonly path: string;
  readonly gitDir: string;
  readonly commonDir: string;
  /** `meow/run-ID`; in place, the branch of HEAD, or null. */
  readonly branch: string | null;
  /** Commit that the run started from. */
  readonly base: string;
  /** 20, or 32 with SHA-256. */
  readonly oidBytes: number;
  /** Refs are files, not a reftable. */
  readonly refsAreFiles: boolean;
}

export function runFolder(commonDir: string, run: string): string {
  assert(isRunName(run), `${JSON.stringify(run)} cannot be a part of a ref`);
  return join(commonDir, 'meow', run);
}

/** Run ids are parts of refs and paths. */
export function isRunName(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text);
}

export function folderOf(info: WorktreeInfo): string {
  return runFolder(info.commonDir, info.run);
}

/** Empty if there is no such folder. */
export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return [];
    throw error;
  }
}

/** A file or link that git can hold: its mode for git, and a fingerprint that every change changes. */
export interface FoundEntry {
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
  const mode = found.isSymbolicLink() ? '120000' : (found.mode & 0o100n) === 0n ? '100644' : '100755';
  const fingerprint = [mode, found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(' ');
  return { mode, fingerprint, changedAtMs: Number(found.ctimeMs) };
}

export function exists(path: string | Buffer): boolean {
  return statIfExists(path) !== null;
}

function statIfExists(path: string | Buffer): BigIntStats | null {
  try {
    // Exceptions are slow, and many of these paths do not exist.
    return lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch (error) {
    if (isErrno(error, 'ENOTDIR')) return null;
    throw error;
  }
}
