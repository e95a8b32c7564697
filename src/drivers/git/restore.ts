// Restores a working tree to a snapshot: files, index, HEAD and its branch, and an operation in progress (merge, rebase …).
//
// restore/1  Nothing is lost: before any change, a snapshot `undone-N` is taken. Files that no commit can hold and that must
//            go are moved to `kept/undone-N` in the run's folder. restore-plan.ts and snapshot.ts say what stays.
// restore/2  It can be killed at any moment and repeated: the work is computed from the present state each time, and that state
//            is kept as well. Each id is restored once: a repeated call after the end returns the result and does nothing.
// restore/3  It refuses, without any change, if HEAD is or was on a protected branch; if HEAD is at a commit that the caller
//            does not know or, if the caller knows none, that was not reached from this tree (by its reflog); if another tree
//            has the branch checked out; if a repository within the tree is gone or at another commit.
// restore/4  Locks left in a worktree of the run's own are removed, since callers have stopped everything there. A lock in the
//            user's tree belongs to somebody else, and the restore is refused.
// restore/5  An operation in progress is ended without a trace, or put back if the snapshot was taken during one. Folders
//            that become empty are removed; other empty folders stay.

import { copyFile, cp, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ABSENT, isErrno } from '../../sys/errno.ts';
import { fileName } from '../step-folder.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { readJsonFile, writeJsonFile } from '../../sys/json-file.ts';
import { writeDiff } from './diff.ts';
import { failed } from './git.ts';
import { INDEX_ARGS, readIndexListing } from './index-listing.ts';
import type { IndexListing } from './index-listing.ts';
import type { Listing } from './listing.ts';
import { foldersOf, inside, textOf } from './names.ts';
import { entryAt, exists, folderOf, namesIn } from './worktree-paths.ts';
import type { WorktreeInfo } from './worktree-paths.ts';
import { GitError } from './git-error.ts';
import { planRestore } from './restore-plan.ts';
import type { Entries, Entry } from './restore-plan.ts';
import { indexPath, OPERATION_FILES, operationPath, readRecord, snapshotNames } from './snapshot.ts';
import type { SnapshotRecord } from './snapshot.ts';
import { innerHead } from './snapshotter.ts';
import type { Snapshotter } from './snapshotter.ts';
import { TreeWriter } from './tree-writer.ts';

export interface RestoreRequest {
  /** Of this restore (restore/2). */
  readonly id: string;
  /** Name of the snapshot. */
  readonly to: string;
  /** Names of branches; `*` matches anything. */
  readonly protectedBranches: readonly string[];
  /** Commit of HEAD when the run last looked; null if a step may have moved it since. */
  readonly lastCommit: string | null;
  /** Files for patches against the run's base commit, before and after. */
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

interface RestoreRecord extends Restored {
  readonly isDone: boolean;
}

export async function restore(
  info: WorktreeInfo,
  snapshotter: Snapshotter,
  request: RestoreRequest,
): Promise<Restored> {
  const path = join(folderOf(info), 'restores', `${fileName(request.id)}.json`);
  const earlier = readJsonFile(path) as RestoreRecord | null;
  if (earlier?.isDone === true) return resultOf(earlier);
  const target = readRecord(info, request.to);
  await breakLocks(info);
  const listing = await snapshotter.list();
  await checkAllowed(info, { request, target, listing });

  const undone = `undone-${highestUndone(info) + 1}`;
  const now = await snapshotter.take(undone, await tipToKeep(info, target, listing));
  if (earlier === null) await writeDiff(info, { against: info.base, of: now, file: request.before });
  const index = await indexOf(info, target);
  const tracked = new Set((index?.names ?? []).flatMap(foldersOf));
  const plan = planRestore({
    now: await entriesOf(info, now, now.skipped),
    ignoredNow: now.ignored,
    nestedNow: now.listing.nested,
    wanted: await entriesOf(info, target, index?.skipped ?? []),
    ignoredThen: target.ignored,
    repositoriesThen: target.repositories.map(({ name }) => name),
    wasTracked: (folder) => tracked.has(folder),
    list: (folder) => listFolder(info, folder),
    isRepository: (folder) => isRepository(info, folder),
  });
  const undones = [...(earlier?.undone ?? []), undone];
  const movedAside = [...(earlier?.movedAside ?? []), ...plan.aside.map(textOf)];
  makeFolder(dirname(path));
  writeJsonFile(path, { undone: undones, movedAside, keptIn: [], isDone: false } satisfies RestoreRecord);

  await endOperations(info);
  const source = { tree: target.tree, sizes: index?.sizes ?? new Map<string, number>() };
  await new TreeWriter(info, atticOf(info, undone)).carryOut(plan, source);
  await restoreHead(info, target, listing);
  await restoreIndex(info, target);
  if (target.operation !== null) {
    await cp(operationPath(info, target.operation), info.gitDir, { recursive: true });
  }
  await writeDiff(info, { against: info.base, of: await snapshotter.take('now'), file: request.after });
  const keptIn = undones.map((name) => atticOf(info, name)).filter((folder) => exists(folder));
  writeJsonFile(path, { undone: undones, movedAside, keptIn, isDone: true } satisfies RestoreRecord);
  return { undone: undones, movedAside, keptIn };
}

function resultOf({ undone, movedAside, keptIn }: RestoreRecord): Restored {
  return { undone, movedAside, keptIn };
}

function atticOf(info: WorktreeInfo, undone: string): string {
  return join(folderOf(info), 'kept', undone);
}

function highestUndone(info: WorktreeInfo): number {
  const numbers = snapshotNames(info).map((name) => Number(/^undone-(\d+)$/.exec(name)?.[1] ?? 0));
  return Math.max(0, ...numbers);
}

/** `main`, `release/*` */
export function isProtected(branch: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    const parts = pattern.split('*').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
    return new RegExp(`^${parts.join('.*')}$`, 's').test(branch);
  });
}

async function checkAllowed(
  info: WorktreeInfo,
  {
    request,
    target,
    listing,
  }: { readonly request: RestoreRequest; readonly target: SnapshotRecord; readonly listing: Listing },
): Promise<void> {
  const { git, path: cwd, gitDir } = info;
  for (const branch of [listing.branch, target.branch]) {
    if (branch === null || !isProtected(branch, request.protectedBranches)) continue;
    throw new GitError(
      'protected',
      `${cwd} is on the protected branch ${branch}, which must not be rolled back`,
      `switch to another branch (git -C ${cwd} switch), or change protected_branches in the configuration`,
    );
  }
  if (listing.head !== null && listing.head !== target.head) {
    const known = request.lastCommit ?? (await lastReached(gitDir)) ?? listing.head;
    if (known !== listing.head) {
      throw new GitError(
        'moved',
        `HEAD of ${cwd} is at ${short(listing.head)}, but the run left it at ${short(known)}: somebody else has moved it`,
        `see git -C ${cwd} reflog, then move it back or stop the run`,
      );
    }
  }
  if (target.branch !== null) {
    const list = (await git.run(['worktree', 'list', '--porcelain'], { cwd })).toString('utf8');
    const holders = list
      .split('\n\n')
      .filter((text) => text.split('\n').includes(`branch refs/heads/${target.branch}`));
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
      found === undefined
        ? `bring ${where} back, then try again`
        : `git -C ${where} checkout ${short(head)}, then try again`,
    );
  }
}

function short(commit: string | null): string {
  return commit?.slice(0, 12) ?? 'no commit';
}

/** Last commit in the reflog of this tree's HEAD; null if there is no reflog. */
async function lastReached(gitDir: string): Promise<string | null> {
  try {
    const log = await readFile(join(gitDir, 'logs', 'HEAD'), 'latin1');
    return /^[0-9a-f]+ ([0-9a-f]+) /.exec(log.trimEnd().split('\n').at(-1) ?? '')?.[1] ?? null;
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}

async function breakLocks(info: WorktreeInfo): Promise<void> {
  const { kind, gitDir, commonDir, branch } = info;
  const locks = ['index.lock', 'HEAD.lock'].map((name) => join(gitDir, name));
  if (kind === 'worktree') {
    if (branch !== null) locks.push(join(commonDir, 'refs', 'heads', `${branch}.lock`));
    for (const lock of locks) await rm(lock, { force: true });
    return;
  }
  for (const lock of locks) {
    if (!exists(lock)) continue;
    throw new GitError(
      'locked',
      `${lock} exists: another git is running, or was killed`,
      'wait for it, or delete that file',
    );
  }
}

/** Tip of the branch that will be moved, if HEAD is elsewhere. */
async function tipToKeep(info: WorktreeInfo, target: SnapshotRecord, listing: Listing): Promise<readonly string[]> {
  if (target.branch === null || target.branch === listing.branch) return [];
  const tip = await tipOf(info, target.branch);
  return tip === null || tip === target.head || tip === listing.head ? [] : [tip];
}

async function tipOf(info: WorktreeInfo, branch: string): Promise<string | null> {
  const args = ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`];
  const { status, stdout } = await info.git.ask(args, { cwd: info.path });
  return status === 0 ? stdout.toString('latin1').trim() : null;
}

/** `left`: names that a sparse checkout leaves out. */
async function entriesOf(info: WorktreeInfo, record: SnapshotRecord, left: readonly string[]): Promise<Entries> {
  const own = new Set(record.own);
  const skipped = new Set(left.filter((name) => !own.has(name)));
  const output = await info.git.run(['ls-tree', '-r', '-z', record.tree], { cwd: info.path });
  const entries = new Map<string, Entry>();
  for (const line of output.toString('latin1').split('\0')) {
    const tab = line.indexOf('\t');
    const name = line.slice(tab + 1);
    const [mode = '', , oid = ''] = line.slice(0, tab).split(' ');
    if (tab !== -1 && !skipped.has(name)) entries.set(name, { mode, oid, isOwn: own.has(name) });
  }
  return entries;
}

/** Null if there was no index. */
async function indexOf(info: WorktreeInfo, { index }: SnapshotRecord): Promise<IndexListing | null> {
  if (index === null) return null;
  const call = { cwd: info.path, index: indexPath(info, index) };
  return readIndexListing(await info.git.run([...INDEX_ARGS, '--debug'], call));
}

function listFolder(info: WorktreeInfo, folder: string): readonly string[] {
  return readdirSync(inside(info.path, folder), { withFileTypes: true, encoding: 'buffer' }).map((entry) => {
    const name = entry.name.toString('latin1');
    return entry.isDirectory() ? `${name}/` : name;
  });
}

/** Follows no link, since its target is outside the tree. */
function isRepository(info: WorktreeInfo, folder: string): boolean {
  for (const above of [...foldersOf(folder), folder]) if (entryAt(info.path, above) !== 'folder') return false;
  return exists(inside(info.path, `${folder}/.git`));
}

async function endOperations({ gitDir }: WorktreeInfo): Promise<void> {
  for (const name of namesIn(gitDir)) {
    if (OPERATION_FILES.has(name)) await rm(join(gitDir, name), { recursive: true, force: true });
  }
}

async function restoreHead(info: WorktreeInfo, target: SnapshotRecord, listing: Listing): Promise<void> {
  const { git, path: cwd, run } = info;
  const why = ['-m', `meow: ${run} rolled back to ${target.name}`];
  if (target.branch === null) {
    if (listing.branch !== null || listing.head !== target.head) {
      await git.run(['update-ref', '--no-deref', ...why, 'HEAD', target.head ?? ''], { cwd });
    }
    return;
  }
  // The branch before HEAD: killed in between, HEAD is still where the caller knows it.
  const ref = `refs/heads/${target.branch}`;
  const tip = await tipOf(info, target.branch);
  if (target.head === null && tip !== null) await git.run(['update-ref', '-d', ...why, ref], { cwd });
  if (target.head !== null && tip !== target.head) {
    // Fails rather than discard a commit that somebody makes meanwhile.
    const seen = listing.branch === target.branch ? listing.head : tip;
    await git.run(['update-ref', ...why, ref, target.head, ...(seen === null ? [] : [seen])], { cwd });
  }
  if (listing.branch !== target.branch) await git.run(['symbolic-ref', ...why, 'HEAD', ref], { cwd });
}

async function restoreIndex(info: WorktreeInfo, target: SnapshotRecord): Promise<void> {
  const { git, path: cwd, gitDir } = info;
  const index = join(gitDir, 'index');
  if (target.index === null) {
    await rm(index, { force: true });
    return;
  }
  const kept = indexPath(info, target.index);
  const { mtime } = await stat(kept);
  await copyFile(kept, `${index}.meow`);
  await utimes(`${index}.meow`, mtime, mtime);
  await rename(`${index}.meow`, index);
  // Lets git learn the new times of files. Exit code 1 means that something is changed or unmerged.
  const refresh = ['update-index', '-q', '--refresh'];
  const answer = await git.ask(refresh, { cwd });
  if (answer.status > 1) throw failed(refresh, answer);
}
