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
//   - Contents of submodules: only their paths and commits are known. The same is true of `.git` in other repositories
//     within the tree, whose files are files of the tree.
//   - Empty folders, times, owners, and permissions other than to execute, which git does not store.
//   - Pipes, sockets and devices: only their names are known.
//   - Other branches, stashes, configuration, info/exclude, which belong to the whole repository.
//
// Contents are bytes: no filter and no conversion of line ends applies. So the tree of a snapshot differs from HEAD if git
// would check files out in another form than it has committed, and snapshots are compared with snapshots.
//
// A name may be reused: the earlier snapshot is then gone.

import { createHash } from 'node:crypto';
import { readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { assert } from '../../base/errors.ts';
import { isJsonMap, type Json } from '../../base/json.ts';
import { isErrno } from '../../sys/errors.ts';
import { clearPlaceOf, makeFolderBelow, readJsonFile, readUntrustedFile, writeJsonFile } from '../../sys/files.ts';
import { folderIn, folderOf, namesIn, readSmallFile, type WorktreeInfo } from './worktree-paths.ts';

/** Part of a step's outputs. */
export type Snapshot = {
  readonly name: string;
  /** Target of the ref. */
  readonly commit: string;
  /** Equal for equal contents. */
  readonly tree: string;
  /** Null if the branch had no commit. */
  readonly head: string | null;
  /** Null if HEAD was detached. */
  readonly branch: string | null;
  /** SHA-256 of its record. Absent in old journals. */
  readonly digest?: string;
};

/** A repository within the tree. */
export interface InnerRepository {
  readonly kind: 'submodule' | 'nested';
  readonly name: string;
  readonly head: string | null;
}

export interface SnapshotRecord extends Snapshot {
  readonly repositories: readonly InnerRepository[];
  /** File in `indexes/`; null if there was no index, or it is unknown. */
  readonly index: string | null;
  /** Null if unknown. */
  readonly ignored: readonly string[] | null;
  /** What no commit can hold (walk.ts). */
  readonly special: readonly string[];
  /** Folder in `operations/`. */
  readonly operation: string | null;
}

/** Files in a working tree's git folder while a merge, a rebase or the like is in progress. */
const OPERATION_FILES: ReadonlySet<string> = new Set(
  `MERGE_HEAD MERGE_MSG MERGE_MODE MERGE_RR MERGE_AUTOSTASH AUTO_MERGE SQUASH_MSG
  CHERRY_PICK_HEAD REVERT_HEAD REBASE_HEAD rebase-merge rebase-apply sequencer
  BISECT_LOG BISECT_START BISECT_NAMES BISECT_TERMS BISECT_ANCESTORS_OK BISECT_EXPECTED_REV`.split(/\s+/),
);

export function operationFiles({ gitDir }: WorktreeInfo): readonly string[] {
  return namesIn(gitDir).filter((name) => OPERATION_FILES.has(name));
}

export function refOf(info: WorktreeInfo, name: string): string {
  assert(/^[A-Za-z0-9_#-]{1,100}$/.test(name), `${JSON.stringify(name)} cannot be the name of a snapshot`);
  return `refs/meow/${info.run}/${name}`;
}

/**
 * The record of a snapshot. If somebody has removed or changed it, all that the journal knows is used instead: contents, HEAD
 * and branch.
 */
export function recordOf(info: WorktreeInfo, snapshot: Snapshot): SnapshotRecord {
  const record = findRecord(info, snapshot.name);
  const isTrusted =
    record !== null &&
    (snapshot.digest === undefined ? record.tree === snapshot.tree : record.digest === snapshot.digest);
  if (isTrusted) return record;
  return { ...snapshot, repositories: [], index: null, ignored: null, special: [], operation: null };
}

/** Null if there is no such snapshot, or its record is not a record. */
export function findRecord(info: WorktreeInfo, name: string): SnapshotRecord | null {
  const found = readJsonFile(recordPath(info, name));
  return isRecord(found) ? { ...found, special: found.special ?? [], digest: digestOf(found) } : null;
}

/** Old ones have no `special`. */
type WrittenRecord = Omit<SnapshotRecord, 'special'> & Partial<Pick<SnapshotRecord, 'special'>>;

/** Written by an engine, or by anybody else. */
function isRecord(value: unknown): value is WrittenRecord {
  if (!isJsonMap(value as Json)) return false;
  const { commit, tree, repositories, ignored, index, operation } = value as Readonly<Record<string, unknown>>;
  const isFile = (file: unknown): boolean => file === null || (typeof file === 'string' && isFileName(file));
  return (
    typeof commit === 'string' &&
    typeof tree === 'string' &&
    Array.isArray(repositories) &&
    Array.isArray(ignored) &&
    isFile(index) &&
    isFile(operation)
  );
}

export function digestOf(record: WrittenRecord): string {
  return createHash('sha256')
    .update(JSON.stringify({ ...record, digest: undefined }))
    .digest('hex');
}

/** To be called last. Deletes files that only the earlier snapshot of that name used. */
export function writeRecord(info: WorktreeInfo, { digest, ...record }: SnapshotRecord): void {
  const earlier = findRecord(info, record.name);
  // Replacing a file is the slowest part on some disks.
  if (earlier !== null && earlier.digest === digest) return;
  folderIn(info, 'snapshots');
  writeJsonFile(recordPath(info, record.name), record);
  if (earlier === null || (earlier.index === record.index && earlier.operation === record.operation)) return;
  const others = snapshotNames(info).flatMap((name) => findRecord(info, name) ?? []);
  if (earlier.index !== null && others.every(({ index }) => index !== earlier.index)) {
    rmSync(indexPath(info, earlier.index), { recursive: true, force: true });
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
  assert(isFileName(file), `${JSON.stringify(file)} is not the name of an index`);
  return join(folderOf(info), 'indexes', file);
}

export function operationPath(info: WorktreeInfo, folder: string): string {
  assert(isFileName(folder), `${JSON.stringify(folder)} is not the name of an operation`);
  return join(folderOf(info), 'operations', folder);
}

/** Limit for one file. A rebase may have a long list of commits. */
export const OPERATION_BYTES_MAX = 100_000_000;

/** SHA-256 of the names and contents of all files. */
export function hashOfFolder(path: string): string {
  const hash = createHash('sha256');
  const add = (folder: string): void => {
    for (const entry of readdirSync(join(path, folder), { withFileTypes: true }).toSorted(byName)) {
      const name = join(folder, entry.name);
      hash.update(`${name}\0`);
      if (entry.isDirectory()) add(name);
      else if (entry.isFile())
        hash.update(
          createHash('sha256')
            .update(readUntrustedFile(join(path, name), OPERATION_BYTES_MAX, 'latin1')?.text ?? '', 'latin1')
            .digest(),
        );
    }
  };
  add('');
  return hash.digest('hex');
}

function byName(one: { readonly name: string }, other: { readonly name: string }): number {
  return one.name < other.name ? -1 : 1;
}

/** Names come from files that agents can change. */
function isFileName(text: string): boolean {
  return /^[0-9a-f-]{1,100}$/.test(text);
}

function recordPath(info: WorktreeInfo, name: string): string {
  return join(folderOf(info), 'snapshots', `${name}.json`);
}

/** Like `git update-ref`, but without a process if refs are files. */
export async function writeRef(info: WorktreeInfo, name: string, commit: string): Promise<void> {
  const ref = refOf(info, name);
  if (info.refsAreFiles && writeRefFile(info, ref, commit)) return;
  await info.git.run(['update-ref', ref, commit]);
}

/** Removes a lock that a killed engine left: no other run has refs there, and packing refs takes only a moment. */
export function breakRefLock(info: WorktreeInfo, name: string): void {
  const lock = join(info.commonDir, `${refOf(info, name)}.lock`);
  if (info.refsAreFiles) makeFolderBelow(join(info.commonDir, 'refs'), dirname(lock));
  clearPlaceOf(lock);
  rmSync(lock, { force: true });
}

/** False if it is locked, because refs are being packed. Whatever else has its name is moved aside. */
function writeRefFile({ commonDir }: WorktreeInfo, ref: string, commit: string): boolean {
  const path = join(commonDir, ref);
  const lock = `${path}.lock`;
  if (readSmallFile(path) === `${commit}\n`) return true;
  makeFolderBelow(join(commonDir, 'refs'), dirname(path));
  clearPlaceOf(lock);
  try {
    writeFileSync(lock, `${commit}\n`, { flag: 'wx' });
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
  clearPlaceOf(path);
  renameSync(lock, path);
  return true;
}
