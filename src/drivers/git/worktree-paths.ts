// A working tree that a run works in, and where things about it are kept:
//
//   REPOSITORY/meow/RUN/         in the folder that all working trees of the repository share
//     run.json                   what the run was given: which tree, which branch, from which commit
//     snapshots/NAME.json        what refs/meow/RUN/NAME is (snapshot.ts)
//     indexes/                   copies of the tree's index, one for each state of it that a snapshot has
//     operations/                copies of what git leaves in the middle of a merge, a rebase …
//     restores/ID.json           how far a restore has come (restore.ts)
//     kept/UNDONE/               what restores have moved out of the way that no commit can hold
//   GITDIR/meow-lease.json       in the tree's own folder: the run that works in it
//
// All of it outlives engines, and goes with `meow gc`.

import { lstatSync, readdirSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../../base/assert.ts';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import type { Git } from './git.ts';
import { inside } from './names.ts';

export interface Place {
  readonly git: Git;
  readonly run: string;
  /** `in-place`: the user's own tree. */
  readonly kind: 'worktree' | 'in-place';
  /** Top of the tree. Absolute. */
  readonly path: string;
  readonly gitDir: string;
  readonly commonDir: string;
  /** `meow/run-ID`; in place it is whatever HEAD was on, or null. */
  readonly branch: string | null;
  /** Commit that the run began with. */
  readonly base: string;
  /** 20, or 32 in a repository with SHA-256. */
  readonly oidBytes: number;
  /** Refs are files, and not a table. */
  readonly refsAreFiles: boolean;
}

export function runFolder(commonDir: string, run: string): string {
  assert(isRunName(run), `${JSON.stringify(run)} cannot be a part of a ref`);
  return join(commonDir, 'meow', run);
}

/** Ids of runs are parts of refs and of paths. */
export function isRunName(text: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(text);
}

export function folderOf(place: Place): string {
  return runFolder(place.commonDir, place.run);
}

/** None where there is no such folder. */
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
