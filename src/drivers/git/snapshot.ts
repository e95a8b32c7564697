// A snapshot: the state of a working tree at one moment, which can be restored.
//
// Its ref, refs/meow/RUN/NAME, is a commit that anybody can inspect. Its tree has every file that is tracked, or untracked and
// not ignored. Its first parent is HEAD; if something is staged, another parent has the tree of the index. For a clean tree
// it is HEAD itself. The ref keeps the objects alive. A record beside it describes them; it is written last, and without it
// there is no snapshot.
//
// A snapshot has: contents of files as bytes, their executable bit, targets of symbolic links, the index (with staged,
// unmerged, intended and hidden entries), HEAD and its branch, and git's state in the middle of a merge or a rebase.
//
// It does not have, and a restore leaves alone:
//   - Contents of ignored files. Their names are known, or that of their folder if all of it is ignored.
//   - Contents of repositories within the tree, submodules or not: only their paths and commits are known.
//   - Empty folders, times, owners, and permissions other than to execute, which git does not store.
//   - Other branches, stashes, configuration, info/exclude, which belong to the whole repository.
//   - The exact bytes of a file that git calls unchanged although filters or line ends alter it: it comes back as git checks
//     it out. Changed and untracked files come back byte by byte.
//
// A name may be reused: the earlier snapshot is then gone.

import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { assert } from '../../base/assert.ts';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { readJsonFile, writeJsonFile } from '../../sys/json-file.ts';
import { folderOf, namesIn } from './worktree-paths.ts';
import type { WorktreeInfo } from './worktree-paths.ts';
import { GitError } from './git-error.ts';

export interface Snapshot {
  readonly name: string;
  /** Target of the ref. */
  readonly commit: string;
  /** Equal for equal contents. */
  readonly tree: string;
  /** Null if the branch had no commit. */
  readonly head: string | null;
  /** Null if HEAD was detached. */
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
  /** File in `indexes/`; null if there was no index. */
  readonly index: string | null;
  /** Names that differ from HEAD: the tree has their exact bytes. */
  readonly own: readonly string[];
  readonly ignored: readonly string[];
  /** Folder in `operations/`. */
  readonly operation: string | null;
}

/** Files in a working tree's git folder while a merge, a rebase or the like is in progress. */
export const OPERATION_FILES: ReadonlySet<string> = new Set(
  [
    'MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR MERGE_AUTOSTASH AUTO_MERGE SQUASH_MSG',
    'CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD rebase-merge rebase-apply sequencer',
    'BISECT_LOG BISECT_START BISECT_NAMES BISECT_TERMS BISECT_ANCESTORS_OK BISECT_EXPECTED_REV',
  ].flatMap((names) => names.split(' ')),
);

export function refOf(info: WorktreeInfo, name: string): string {
  assert(/^[A-Za-z0-9_#-]{1,100}$/.test(name), `${JSON.stringify(name)} cannot be the name of a snapshot`);
  return `refs/meow/${info.run}/${name}`;
}

export function readRecord(info: WorktreeInfo, name: string): SnapshotRecord {
  const record = readJsonFile(recordPath(info, name)) as SnapshotRecord | null;
  if (record !== null) return record;
  throw new GitError(
    'no-snapshot',
    `the run ${info.run} has no snapshot ${name}`,
    'it was never taken, or `meow gc` has removed it; commits of the run are on its branch',
  );
}

/** To be called last. Deletes files that only the earlier snapshot of that name used. */
export function writeRecord(info: WorktreeInfo, record: SnapshotRecord): void {
  const path = recordPath(info, record.name);
  const earlier = readJsonFile(path) as SnapshotRecord | null;
  // Replacing a file is the slowest part on some disks.
  if (JSON.stringify(earlier) === JSON.stringify(record)) return;
  makeFolder(dirname(path));
  writeJsonFile(path, record);
  if (earlier === null || (earlier.index === record.index && earlier.operation === record.operation)) return;
  const others = snapshotNames(info).map((name) => readRecord(info, name));
  if (earlier.index !== null && others.every(({ index }) => index !== earlier.index)) {
    rmSync(indexPath(info, earlier.index), { force: true });
  }
  if (earlier.operation !== null && others.every(({ operation }) => operation !== earlier.operation)) {
    rmSync(operationPath(info, earlier.operation), { recursive: true, force: true });
  }
}

export function snapshotNames(info: WorktreeInfo): readonly string[] {
  const names = namesIn(join(folderOf(info), 'snapshots'));
  return names.flatMap((name) => /^(.*)\.json$/.exec(name)?.[1] ?? []);
}

export function indexPath(info: WorktreeInfo, file: string): string {
  return join(folderOf(info), 'indexes', file);
}

export function operationPath(info: WorktreeInfo, folder: string): string {
  return join(folderOf(info), 'operations', folder);
}

function recordPath(info: WorktreeInfo, name: string): string {
  return join(folderOf(info), 'snapshots', `${name}.json`);
}

/** Like `git update-ref`, but without a process if refs are files. */
export async function writeRef(info: WorktreeInfo, name: string, commit: string): Promise<void> {
  const ref = refOf(info, name);
  if (info.refsAreFiles && writeRefFile(join(info.commonDir, ref), commit)) return;
  await info.git.run(['update-ref', ref, commit], { cwd: info.path });
}

/** Removes a lock that a killed engine left: no other run has refs there, and packing refs takes only a moment. */
export function breakRefLock(info: WorktreeInfo, name: string): void {
  rmSync(join(info.commonDir, `${refOf(info, name)}.lock`), { force: true });
}

/** False if it is locked, because refs are being packed. */
function writeRefFile(path: string, commit: string): boolean {
  const lock = `${path}.lock`;
  if (readIfExists(path) === `${commit}\n`) return true;
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

function readIfExists(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}
