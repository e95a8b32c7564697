// Restores a working tree to a snapshot: files, index, HEAD and its branch, and an operation in progress (merge, rebase …).
//
// restore/1  Nothing is lost: before any change, a snapshot `undone-N` is taken. Files that no commit can hold and that must
//            go are moved to `kept/undone-N` in the run's folder. restore-plan.ts and snapshot.ts say what stays.
// restore/2  It can be killed at any moment and repeated: the work is computed from the present state each time, and that state
//            is kept as well. A repeated call after the end returns the same result.
// restore/3  It refuses, without any change, if HEAD is or was on a protected branch; if HEAD is at a commit that the caller
//            does not know or, if the caller knows none, that was not reached from this tree (by its reflog); if another tree
//            has the branch checked out; if a repository within the tree is gone or at another commit.
// restore/4  Locks left in a worktree of the run's own are removed, since callers have stopped everything there. A lock in the
//            user's tree belongs to somebody else, and the restore is refused.
// restore/5  An operation in progress is ended without a trace, or put back if the snapshot was taken during one. Folders
//            that become empty are removed; other empty folders stay.
// restore/6  Contents come from objects whose bytes have the hash that the journal knows. Records beside the journal that do
//            not match it are not used (snapshot.ts).

import { createHash } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { rename, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';

import { isJsonMap, type Json } from '../../base/json.ts';
import { segmentMatcher } from '../../base/names.ts';
import { clearPlaceOf, readJsonFile, readUntrustedFile, writeJsonFile } from '../../sys/files.ts';
import { fileName } from '../step-folder.ts';
import { writeDiff } from './diff.ts';
import { GitError } from './git.ts';
import { planRestore } from './restore-plan.ts';
import type { InnerRepository, Snapshot, SnapshotRecord } from './snapshot.ts';
import { hashOfFolder, indexPath, operationFiles, operationPath, recordOf, refOf, snapshotNames } from './snapshot.ts';
import { copyFiles, type HeadState, innerHead, type Snapshotter } from './snapshotter.ts';
import { TreeWriter } from './tree-writer.ts';
import { grantAccess } from './walk.ts';
import {
  exists,
  folderIn,
  inside,
  isFolder,
  namesIn,
  plumbing,
  replaceBytes,
  textOf,
  type WorktreeInfo,
} from './worktree-paths.ts';

export interface RestoreRequest {
  /** Id of this restore (restore/2). */
  readonly id: string;
  readonly to: Snapshot;
  /** The state before the run, for the patches. */
  readonly start: Snapshot;
  /** Names of branches; `*` matches anything. */
  readonly protectedBranches: readonly string[];
  /** Commit of HEAD when the run last looked; null if a step may have moved it since. */
  readonly lastCommit: string | null;
  /** Files for patches since the start of the run, before and after. */
  readonly before: string;
  readonly after: string;
}

export interface Restored {
  /** Names of the snapshots of the undone state; the first has all of it. */
  readonly undone: readonly string[];
  /** Paths in the tree that were moved to the folders `keptIn`. */
  readonly movedAside: readonly string[];
  readonly keptIn: readonly string[];
}

interface RestoreRecord extends Omit<Restored, 'keptIn'> {
  readonly isDone: boolean;
}

/** The present working tree, and the state that it gets. */
interface RestoreState {
  readonly info: WorktreeInfo;
  readonly target: SnapshotRecord;
  readonly listing: HeadState;
}

export async function restore(
  info: WorktreeInfo,
  snapshotter: Snapshotter,
  request: RestoreRequest,
): Promise<Restored> {
  if (info.kind === 'worktree') grantAccess(info.path);
  const path = join(folderIn(info, 'restores'), `${fileName(request.id)}.json`);
  const target = recordOf(info, request.to);
  const wanted = await snapshotter.entriesOf(target.tree);
  await breakLocks(info);
  const state = { info, target, listing: await snapshotter.head() };
  const earlier = readEarlier(info, path);
  const attic = folderIn(info, 'kept');
  const keptIn = (undone: readonly string[]) => undone.map((each) => join(attic, each)).filter(exists);
  if (earlier?.isDone === true && (await isRestored(state, snapshotter))) {
    const { undone, movedAside } = earlier;
    return { undone, movedAside, keptIn: keptIn(undone) };
  }
  await checkAllowed(state, request);

  const name = await freeName(info, attic);
  const now = await snapshotter.take(name, await tipToKeep(state));
  if (earlier === null || earlier.undone.length === 0 || !exists(request.before))
    await writeDiff(info, request.start, now, request.before);
  const plan = planRestore({
    now: now.entries,
    ignoredNow: now.ignored,
    specialNow: now.special,
    repositoriesNow: now.repositories.map((repository) => repository.name),
    wanted,
    ignoredThen: target.ignored,
    specialThen: target.special,
    repositoriesThen: target.repositories.map((repository) => repository.name),
    list: (folder) => listFolder(info, folder),
  });
  const undone = [...(earlier?.undone ?? []), name];
  const movedAside = [...(earlier?.movedAside ?? []), ...plan.aside.map(textOf)];
  writeJsonFile(path, { undone, movedAside, isDone: false } satisfies RestoreRecord);

  await new TreeWriter(info, join(attic, name)).carryOut(plan);
  for (const file of operationFiles(info)) await rm(join(info.gitDir, file), { recursive: true, force: true });
  await restoreHead(state);
  await restoreIndex(info, target);
  await restoreOperation(info, target);

  await writeDiff(info, request.start, await snapshotter.take('now'), request.after);
  writeJsonFile(path, { undone, movedAside, isDone: true } satisfies RestoreRecord);
  return { undone, movedAside, keptIn: keptIn(undone) };
}

/** A name `undone-N` that is free: it has no snapshot, no ref, and no files that were moved aside. */
async function freeName(info: WorktreeInfo, attic: string): Promise<string> {
  const prefix = refOf(info, '_').slice(0, -1);
  const refs = (await info.git.line(['for-each-ref', '--format=%(refname)', prefix])).split('\n');
  const taken = new Set([
    ...snapshotNames(info),
    ...namesIn(attic),
    ...namesIn(join(info.commonDir, prefix)),
    ...refs.map((ref) => ref.slice(prefix.length).split('/')[0] ?? ''),
  ]);
  let number = 1;
  while (taken.has(`undone-${number}`)) number += 1;
  return `undone-${number}`;
}

/** Null if nobody has begun. Others may have written it, so it is no proof that anything was done. */
function readEarlier(info: WorktreeInfo, path: string): RestoreRecord | null {
  const found = readJsonFile(path) as Json;
  if (!isJsonMap(found)) return null;
  const names = snapshotNames(info);
  const undone = textsIn(found['undone']).filter((name) => /^undone-\d{1,9}$/.test(name) && names.includes(name));
  return { undone, movedAside: textsIn(found['movedAside']), isDone: found['isDone'] === true };
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

async function isRestored({ target, listing }: RestoreState, snapshotter: Snapshotter): Promise<boolean> {
  if (listing.head !== target.head || listing.branch !== target.branch) return false;
  const now = await snapshotter.take('now');
  const isKnown = (repository: InnerRepository): boolean =>
    target.repositories.some(({ name }) => name === repository.name);
  return (
    now.tree === target.tree &&
    now.special.every((name) => target.special.includes(name)) &&
    now.repositories.every(isKnown)
  );
}

/** `main`, `release/*` */
export function isProtected(branch: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => segmentMatcher(pattern)(branch));
}

async function checkAllowed({ info, target, listing }: RestoreState, request: RestoreRequest): Promise<void> {
  const { git, path, gitDir } = info;
  for (const branch of [listing.branch, target.branch]) {
    if (branch === null || !isProtected(branch, request.protectedBranches)) continue;
    throw new GitError(
      'protected',
      `${path} is on the protected branch ${branch}, which must not be rolled back`,
      `switch to another branch (git -C ${path} switch), or change protected_branches in the configuration`,
    );
  }
  if (listing.head !== null && listing.head !== target.head) {
    const known = request.lastCommit ?? lastReached(gitDir) ?? listing.head;
    if (known !== listing.head) {
      throw new GitError(
        'moved',
        `HEAD of ${path} is at ${short(listing.head)}, but the run left it at ${short(known)}: somebody else has moved it`,
        `see git -C ${path} reflog, then move it back or stop the run`,
      );
    }
  }
  if (target.branch !== null) {
    const trees = (await git.run(['worktree', 'list', '--porcelain'])).toString('utf8').split('\n\n');
    const holders = trees.filter((text) => text.split('\n').includes(`branch refs/heads/${target.branch}`));
    const isOwn = listing.branch === target.branch;
    if (holders.length > (isOwn ? 1 : 0)) {
      throw new GitError(
        'moved',
        `the branch ${target.branch} is checked out in another working tree`,
        'find it with git worktree list, and switch it to another branch',
      );
    }
  }
  for (const { name, head } of target.repositories) {
    const found = await innerHead(info, name);
    if (found === head) continue;
    const where = textOf(name);
    throw new GitError(
      'opaque',
      found === undefined
        ? `the repository ${where} is gone, and snapshots do not have the contents of repositories within the tree`
        : `the repository ${where} moved from ${short(head)} to ${short(found)}, and is not rolled back with the tree`,
      `${found === undefined ? `bring ${where} back` : `git -C ${where} checkout ${short(head)}`}, then try again`,
    );
  }
}

export function short(commit: string | null): string {
  return commit?.slice(0, 12) ?? 'no commit';
}

/** Last commit in the reflog of this tree's HEAD; null if there is no reflog. */
function lastReached(gitDir: string): string | null {
  const log = readUntrustedFile(join(gitDir, 'logs', 'HEAD'), LOG_BYTES_MAX, 'latin1')?.text ?? '';
  return /^[0-9a-f]+ ([0-9a-f]+) /.exec(log.trimEnd().split('\n').at(-1) ?? '')?.[1] ?? null;
}

const LOG_BYTES_MAX = 100_000_000;

async function breakLocks(info: WorktreeInfo): Promise<void> {
  const { kind, gitDir, commonDir, branch } = info;
  const locks = ['index.lock', 'HEAD.lock'].map((name) => join(gitDir, name));
  if (kind === 'worktree') {
    if (branch !== null) locks.push(join(commonDir, 'refs', 'heads', `${branch}.lock`));
    for (const lock of locks) await rm(lock, { recursive: true, force: true });
    return;
  }
  const lock = locks.find(exists);
  if (lock === undefined) return;
  const message = `${lock} exists: another git is running, or was killed`;
  throw new GitError('locked', message, 'wait for it, or delete that file');
}

/** Tip of the branch that will be moved, if HEAD is elsewhere. */
async function tipToKeep({ info, target, listing }: RestoreState): Promise<readonly string[]> {
  if (target.branch === null || target.branch === listing.branch) return [];
  const tip = await info.git.tipOf(target.branch);
  return tip === null || tip === target.head || tip === listing.head ? [] : [tip];
}

function listFolder(info: WorktreeInfo, folder: string): readonly string[] {
  return readdirSync(inside(info.path, folder), { withFileTypes: true, encoding: 'buffer' }).map((entry) => {
    const name = entry.name.toString('latin1');
    return entry.isDirectory() ? `${name}/` : name;
  });
}

async function restoreHead({ info, target, listing }: RestoreState): Promise<void> {
  const { git, run } = info;
  const why = ['-m', `meow: ${run} rolled back to ${target.name}`];
  if (target.branch === null) {
    if (listing.branch !== null || listing.head !== target.head) {
      await git.run(['update-ref', '--no-deref', ...why, 'HEAD', target.head ?? '']);
    }
    return;
  }
  // The branch before HEAD: killed in between, HEAD is still where the caller knows it.
  const ref = `refs/heads/${target.branch}`;
  if (info.kind === 'worktree' && target.branch === info.branch) await moveBranchesBelow(info, ref);
  const tip = await git.tipOf(target.branch);
  if (target.head === null && tip !== null) await git.run(['update-ref', '-d', ...why, ref]);
  if (target.head !== null && tip !== target.head) {
    // Fails rather than discard a commit that somebody makes meanwhile.
    const seen = listing.branch === target.branch ? listing.head : tip;
    await git.run(['update-ref', ...why, ref, target.head, ...(seen === null ? [] : [seen])]);
  }
  if (listing.branch !== target.branch) await git.run(['symbolic-ref', ...why, 'HEAD', ref]);
}

/** With a branch `meow/run-ID/x`, git refuses to have the branch `meow/run-ID`. Its commit stays reachable. */
async function moveBranchesBelow(info: WorktreeInfo, branch: string): Promise<void> {
  const { git } = info;
  const lines = (await git.line(['for-each-ref', '--format=%(objectname) %(refname)', `${branch}/`])).split('\n');
  for (const line of lines.filter((each) => each !== '')) {
    const [oid = '', ref = ''] = line.split(' ');
    await git.run(['update-ref', refOf(info, `aside-${oid.slice(0, 16)}`), oid]);
    await git.run(['update-ref', '-d', ref]);
  }
}

/** The index that the snapshot has, or else that of HEAD. */
async function restoreIndex(info: WorktreeInfo, { index, head }: SnapshotRecord): Promise<void> {
  const path = join(info.gitDir, 'index');
  const draft = `${path}.meow`;
  const found = index === null ? null : readUntrustedFile(indexPath(info, index), INDEX_BYTES_MAX, 'latin1');
  const text = found?.text ?? null;
  const bytes = text === null ? null : Buffer.from(text, 'latin1');
  for (const each of [draft, `${draft}.lock`]) rmSync(each, { recursive: true, force: true });
  if (bytes !== null && createHash('sha256').update(bytes).digest('hex') === index) replaceBytes(draft, bytes);
  else if (head === null) return rm(path, { recursive: true, force: true });
  else await plumbing(info).run(['read-tree', head], { index: draft });
  // Older than every file, so that git compares contents.
  await utimes(draft, 1, 1);
  clearPlaceOf(path);
  await rename(draft, path);
}

const INDEX_BYTES_MAX = 500_000_000;

async function restoreOperation(info: WorktreeInfo, { operation }: SnapshotRecord): Promise<void> {
  if (operation === null) return;
  const folder = operationPath(info, operation);
  if (isFolder(folder) && hashOfFolder(folder) === operation) copyFiles(folder, info.gitDir);
}
