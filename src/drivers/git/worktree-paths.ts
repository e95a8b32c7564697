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

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { assert } from '../../base/assert.ts';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import type { Git } from './git.ts';

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
