// A snapshot: what a working tree was at one moment, so that it can be made that again.
//
// Its ref, refs/meow/RUN/NAME, is a commit that anybody can look at: its tree is all that was tracked or untracked and not
// ignored, its first parent is HEAD, and where something was staged there is another parent whose tree is the index. Where
// the tree was clean it is HEAD itself, and nothing had to be made. The ref keeps objects alive; what they mean is told by a
// record beside it, which comes last, and without which there is no snapshot.
//
// What is in it: contents of files as bytes, whether they can be executed, targets of symbolic links, the index as it was
// (staged, unmerged, intended, hidden), HEAD with its branch, what git keeps in the middle of a merge or a rebase.
//
// What is not, and stays as it is:
//   - Contents of ignored files. Which there were is known, by their folder where that is ignored as a whole.
//   - Contents of repositories within the tree, be they submodules or not: only where they were and at which commit.
//   - Folders without files, times, owners, and permissions beyond that to execute: git does not know them.
//   - Other branches, stashes, configuration, info/exclude: they belong to the repository, and to everybody in it.
//   - Of a file that git calls unchanged, bytes that its filters and line ends do not let through: it comes back as git
//     checks it out. What is changed or untracked comes back as it was, whatever filters there are.
//
// A name may be used again: then the earlier snapshot is gone.

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assert } from '../../base/assert.ts';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { readJsonFile, writeJsonFile } from '../../sys/json-file.ts';
import { folderOf, namesIn } from './worktree-paths.ts';
import type { Place } from './worktree-paths.ts';
import { Refusal } from './git-error.ts';

export interface Snapshot {
  readonly name: string;
  /** What the ref points to. */
  readonly commit: string;
  /** Of all that was there: the same for the same contents. */
  readonly tree: string;
  /** Null where the branch had no commit. */
  readonly head: string | null;
  /** Null where HEAD was detached. */
  readonly branch: string | null;
}

/** A repository within the tree. */
export interface InnerRepository {
  readonly kind: 'submodule' | 'nested';
  readonly name: string;
  readonly head: string | null;
}

export interface SnapshotRecord extends Snapshot {
  readonly repositories: readonly InnerRepository[];
  /** File in `indexes/`; null where there was no index. */
  readonly index: string | null;
  /** Names that were not as HEAD has them: the tree has their very bytes. */
  readonly own: readonly string[];
  readonly ignored: readonly string[];
  /** Folder in `operations/`. */
  readonly operation: string | null;
}

/** What git leaves in the folder of a working tree in the middle of something. */
export const OPERATION_FILES: ReadonlySet<string> = new Set(
  [
    'MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR MERGE_AUTOSTASH AUTO_MERGE SQUASH_MSG',
    'CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD rebase-merge rebase-apply sequencer',
    'BISECT_LOG BISECT_START BISECT_NAMES BISECT_TERMS BISECT_ANCESTORS_OK BISECT_EXPECTED_REV',
  ].flatMap((names) => names.split(' ')),
);

export function refOf(place: Place, name: string): string {
  assert(/^[A-Za-z0-9_#-]{1,100}$/.test(name), `${JSON.stringify(name)} cannot be the name of a snapshot`);
  return `refs/meow/${place.run}/${name}`;
}

export function readRecord(place: Place, name: string): SnapshotRecord {
  const record = readJsonFile(recordPath(place, name)) as SnapshotRecord | null;
  if (record !== null) return record;
  throw new Refusal(
    'no-snapshot',
    `the run ${place.run} has no snapshot ${name}`,
    'it was not taken, or `meow gc` has removed it; what the run has committed is on its branch',
  );
}

/** The record comes last. What only the snapshot had that was called so before is deleted. */
export function writeRecord(place: Place, record: SnapshotRecord): void {
  const path = recordPath(place, record.name);
  const earlier = readJsonFile(path) as SnapshotRecord | null;
  // To replace a file takes some disks longer than all the rest.
  if (JSON.stringify(earlier) === JSON.stringify(record)) return;
  makeFolder(dirname(path));
  writeJsonFile(path, record);
  if (earlier === null || (earlier.index === record.index && earlier.operation === record.operation)) return;
  const others = snapshotNames(place).map((name) => readRecord(place, name));
  if (earlier.index !== null && others.every(({ index }) => index !== earlier.index)) {
    rmSync(indexPath(place, earlier.index), { force: true });
  }
  if (earlier.operation !== null && others.every(({ operation }) => operation !== earlier.operation)) {
    rmSync(operationPath(place, earlier.operation), { recursive: true, force: true });
  }
}

export function snapshotNames(place: Place): readonly string[] {
  const names = namesIn(join(folderOf(place), 'snapshots'));
  return names.flatMap((name) => /^(.*)\.json$/.exec(name)?.[1] ?? []);
}

export function indexPath(place: Place, file: string): string {
  return join(folderOf(place), 'indexes', file);
}

export function operationPath(place: Place, folder: string): string {
  return join(folderOf(place), 'operations', folder);
}

function recordPath(place: Place, name: string): string {
  return join(folderOf(place), 'snapshots', `${name}.json`);
}

/** As git does it, without starting git where refs are files. */
export async function writeRef(place: Place, name: string, commit: string): Promise<void> {
  const ref = refOf(place, name);
  if (place.refsAreFiles && writeRefFile(join(place.commonDir, ref), commit)) return;
  await place.git.run(['update-ref', ref, commit], { cwd: place.path });
}

/** One that a death of ours has left: no other run has refs there, and who packs refs holds them for a moment only. */
export function breakRefLock(place: Place, name: string): void {
  rmSync(join(place.commonDir, `${refOf(place, name)}.lock`), { force: true });
}

/** False where it is locked: somebody packs refs just now. */
function writeRefFile(path: string, commit: string): boolean {
  const lock = `${path}.lock`;
  if (readIfThere(path) === `${commit}\n`) return true;
  for (;;) {
    try {
      writeFileSync(lock, `${commit}\n`, { flag: 'wx' });
      renameSync(lock, path);
      return true;
    } catch (error) {
      if (isErrno(error, 'EEXIST')) return false;
      if (!isErrno(error, ...ABSENT)) throw error;
      mkdirSync(dirname(path), { recursive: true });
    }
  }
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}
