// Makes a working tree what a snapshot says it was: files, index, HEAD and its branch, and what git was in the middle of.
//
// R1  Nothing is lost: before anything is changed, a snapshot `undone-N` is taken of what is there; what no commit can hold
//     and has to go is moved to `kept/undone-N` in the run's folder. What stays is said in restore-plan.ts and snapshot.ts.
// R2  It can be stopped at any moment and be asked for again: what is to be done is computed from what is there, each time
//     anew, and what is there then is kept as well. Under one id it happens once: asked for again after its end, it tells
//     what it did, and does nothing.
// R3  It refuses, and has then changed nothing, where HEAD is on a protected branch or was; where HEAD is at a commit that
//     the caller does not know of, or, if the caller knows none, that was not reached from this tree (its reflog tells);
//     where another tree has the branch checked out; where a repository within the tree is gone or at another commit.
// R4  Locks that a git of the run's own has left in a tree of the run's own are removed: whoever calls this has ended all
//     that worked there. In the user's tree a lock is somebody else's, and is refused.
// R5  What git was in the middle of is ended without a trace, or put back if the snapshot was taken in the middle of it.
//     Folders that it empties are removed; others without files are left.

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
import type { Place } from './worktree-paths.ts';
import { Refusal } from './git-error.ts';
import { planRestore } from './restore-plan.ts';
import type { Entries, Entry } from './restore-plan.ts';
import { indexPath, OPERATION_FILES, operationPath, readRecord, snapshotNames } from './snapshot.ts';
import type { SnapshotRecord } from './snapshot.ts';
import { innerHead } from './snapshotter.ts';
import type { Snapshotter } from './snapshotter.ts';
import { TreeWriter } from './tree-writer.ts';

export interface RestoreRequest {
  /** Of this restore (R2). */
  readonly id: string;
  /** Name of the snapshot. */
  readonly to: string;
  /** Names of branches; `*` stands for anything. */
  readonly protectedBranches: readonly string[];
  /** Where HEAD was when the run last looked; null where a step may have moved it and has not told. */
  readonly lastCommit: string | null;
  /** Files for the patches against the run's base, before and after. */
  readonly before: string;
  readonly after: string;
}

export interface Restored {
  /** Names of the snapshots that have what was undone, the whole of it first. */
  readonly undone: readonly string[];
  /** Paths in the tree that were moved to the folders beside. */
  readonly movedAside: readonly string[];
  readonly keptIn: readonly string[];
}

interface RestoreRecord extends Restored {
  readonly isDone: boolean;
}

export async function restore(place: Place, snapshotter: Snapshotter, request: RestoreRequest): Promise<Restored> {
  const path = join(folderOf(place), 'restores', `${fileName(request.id)}.json`);
  const earlier = readJsonFile(path) as RestoreRecord | null;
  if (earlier?.isDone === true) return resultOf(earlier);
  const target = readRecord(place, request.to);
  await breakLocks(place);
  const listing = await snapshotter.list();
  await checkThatItMay(place, { request, target, listing });

  const undone = `undone-${highestUndone(place) + 1}`;
  const now = await snapshotter.take(undone, await tipToKeep(place, target, listing));
  if (earlier === null) await writeDiff(place, { against: place.base, of: now, file: request.before });
  const index = await indexOf(place, target);
  const tracked = new Set((index?.names ?? []).flatMap(foldersOf));
  const plan = planRestore({
    now: await entriesOf(place, now, now.skipped),
    ignoredNow: now.ignored,
    nestedNow: now.listing.nested,
    wanted: await entriesOf(place, target, index?.skipped ?? []),
    ignoredThen: target.ignored,
    repositoriesThen: target.repositories.map(({ name }) => name),
    wasTracked: (folder) => tracked.has(folder),
    list: (folder) => listFolder(place, folder),
    isRepository: (folder) => isRepository(place, folder),
  });
  const undones = [...(earlier?.undone ?? []), undone];
  const movedAside = [...(earlier?.movedAside ?? []), ...plan.aside.map(textOf)];
  makeFolder(dirname(path));
  writeJsonFile(path, { undone: undones, movedAside, keptIn: [], isDone: false } satisfies RestoreRecord);

  await endOperations(place);
  const source = { tree: target.tree, sizes: index?.sizes ?? new Map<string, number>() };
  await new TreeWriter(place, atticOf(place, undone)).carryOut(plan, source);
  await restoreHead(place, target, listing);
  await restoreIndex(place, target);
  if (target.operation !== null) {
    await cp(operationPath(place, target.operation), place.gitDir, { recursive: true });
  }
  await writeDiff(place, { against: place.base, of: await snapshotter.take('now'), file: request.after });
  const keptIn = undones.map((name) => atticOf(place, name)).filter((folder) => exists(folder));
  writeJsonFile(path, { undone: undones, movedAside, keptIn, isDone: true } satisfies RestoreRecord);
  return { undone: undones, movedAside, keptIn };
}

function resultOf({ undone, movedAside, keptIn }: RestoreRecord): Restored {
  return { undone, movedAside, keptIn };
}

function atticOf(place: Place, undone: string): string {
  return join(folderOf(place), 'kept', undone);
}

function highestUndone(place: Place): number {
  const numbers = snapshotNames(place).map((name) => Number(/^undone-(\d+)$/.exec(name)?.[1] ?? 0));
  return Math.max(0, ...numbers);
}

/** `main`, `release/*` */
export function isProtected(branch: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => {
    const parts = pattern.split('*').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
    return new RegExp(`^${parts.join('.*')}$`, 's').test(branch);
  });
}

async function checkThatItMay(
  place: Place,
  {
    request,
    target,
    listing,
  }: { readonly request: RestoreRequest; readonly target: SnapshotRecord; readonly listing: Listing },
): Promise<void> {
  const { git, path: cwd, gitDir } = place;
  for (const branch of [listing.branch, target.branch]) {
    if (branch === null || !isProtected(branch, request.protectedBranches)) continue;
    throw new Refusal(
      'protected',
      `${cwd} is on the protected branch ${branch}, which is not rolled back`,
      `switch it to another branch (git -C ${cwd} switch), or change protected_branches in the config`,
    );
  }
  if (listing.head !== null && listing.head !== target.head) {
    const known = request.lastCommit ?? (await lastReached(gitDir)) ?? listing.head;
    if (known !== listing.head) {
      throw new Refusal(
        'moved',
        `HEAD of ${cwd} is at ${short(listing.head)}, and the run left it at ${short(known)}: somebody else has moved it`,
        `see what was done (git -C ${cwd} reflog), move it back or stop the run`,
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
      throw new Refusal(
        'moved',
        `the branch ${target.branch} is checked out in another working tree`,
        'switch that one to another branch: git worktree list',
      );
    }
  }
  for (const { name, head } of target.repositories) {
    const found = await innerHead(place, name);
    if (found === head) continue;
    const where = textOf(name);
    throw new Refusal(
      'opaque',
      found === undefined
        ? `the repository ${where} was there and is gone; no snapshot has what is in repositories within the tree`
        : `the repository ${where} was at ${short(head)} and is at ${short(found)}; it is not rolled back with the tree`,
      found === undefined
        ? `bring ${where} back, then try again`
        : `git -C ${where} checkout ${short(head)}, then try again`,
    );
  }
}

function short(commit: string | null): string {
  return commit?.slice(0, 12) ?? 'no commit';
}

/** Where HEAD was last moved to from this tree; null where that is not kept. */
async function lastReached(gitDir: string): Promise<string | null> {
  try {
    const log = await readFile(join(gitDir, 'logs', 'HEAD'), 'latin1');
    return /^[0-9a-f]+ ([0-9a-f]+) /.exec(log.trimEnd().split('\n').at(-1) ?? '')?.[1] ?? null;
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return null;
    throw error;
  }
}

async function breakLocks(place: Place): Promise<void> {
  const { kind, gitDir, commonDir, branch } = place;
  const locks = ['index.lock', 'HEAD.lock'].map((name) => join(gitDir, name));
  if (kind === 'worktree') {
    if (branch !== null) locks.push(join(commonDir, 'refs', 'heads', `${branch}.lock`));
    for (const lock of locks) await rm(lock, { force: true });
    return;
  }
  for (const lock of locks) {
    if (!exists(lock)) continue;
    throw new Refusal(
      'locked',
      `${lock} is there: git is at work, or has died at it`,
      'wait for it, or delete that file',
    );
  }
}

/** The branch that will be moved, where HEAD is elsewhere. */
async function tipToKeep(place: Place, target: SnapshotRecord, listing: Listing): Promise<readonly string[]> {
  if (target.branch === null || target.branch === listing.branch) return [];
  const tip = await tipOf(place, target.branch);
  return tip === null || tip === target.head || tip === listing.head ? [] : [tip];
}

async function tipOf(place: Place, branch: string): Promise<string | null> {
  const args = ['rev-parse', '--verify', '--quiet', `refs/heads/${branch}`];
  const { status, stdout } = await place.git.ask(args, { cwd: place.path });
  return status === 0 ? stdout.toString('latin1').trim() : null;
}

/** `left`: names that a sparse checkout leaves out. */
async function entriesOf(place: Place, record: SnapshotRecord, left: readonly string[]): Promise<Entries> {
  const own = new Set(record.own);
  const skipped = new Set(left.filter((name) => !own.has(name)));
  const output = await place.git.run(['ls-tree', '-r', '-z', record.tree], { cwd: place.path });
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
async function indexOf(place: Place, { index }: SnapshotRecord): Promise<IndexListing | null> {
  if (index === null) return null;
  const call = { cwd: place.path, index: indexPath(place, index) };
  return readIndexListing(await place.git.run([...INDEX_ARGS, '--debug'], call));
}

function listFolder(place: Place, folder: string): readonly string[] {
  return readdirSync(inside(place.path, folder), { withFileTypes: true, encoding: 'buffer' }).map((entry) => {
    const name = entry.name.toString('latin1');
    return entry.isDirectory() ? `${name}/` : name;
  });
}

/** No link is followed: what is behind one is elsewhere. */
function isRepository(place: Place, folder: string): boolean {
  for (const above of [...foldersOf(folder), folder]) if (entryAt(place.path, above) !== 'folder') return false;
  return exists(inside(place.path, `${folder}/.git`));
}

async function endOperations({ gitDir }: Place): Promise<void> {
  for (const name of namesIn(gitDir)) {
    if (OPERATION_FILES.has(name)) await rm(join(gitDir, name), { recursive: true, force: true });
  }
}

async function restoreHead(place: Place, target: SnapshotRecord, listing: Listing): Promise<void> {
  const { git, path: cwd, run } = place;
  const why = ['-m', `meow: ${run} is rolled back to ${target.name}`];
  if (target.branch === null) {
    if (listing.branch !== null || listing.head !== target.head) {
      await git.run(['update-ref', '--no-deref', ...why, 'HEAD', target.head ?? ''], { cwd });
    }
    return;
  }
  // The branch before HEAD: stopped in between, HEAD is where the caller knows it to be.
  const ref = `refs/heads/${target.branch}`;
  const tip = await tipOf(place, target.branch);
  if (target.head === null && tip !== null) await git.run(['update-ref', '-d', ...why, ref], { cwd });
  if (target.head !== null && tip !== target.head) {
    // Where somebody commits meanwhile, that is not thrown away.
    const seen = listing.branch === target.branch ? listing.head : tip;
    await git.run(['update-ref', ...why, ref, target.head, ...(seen === null ? [] : [seen])], { cwd });
  }
  if (listing.branch !== target.branch) await git.run(['symbolic-ref', ...why, 'HEAD', ref], { cwd });
}

async function restoreIndex(place: Place, target: SnapshotRecord): Promise<void> {
  const { git, path: cwd, gitDir } = place;
  const index = join(gitDir, 'index');
  if (target.index === null) {
    await rm(index, { force: true });
    return;
  }
  const kept = indexPath(place, target.index);
  const { mtime } = await stat(kept);
  await copyFile(kept, `${index}.meow`);
  await utimes(`${index}.meow`, mtime, mtime);
  await rename(`${index}.meow`, index);
  // What was written has new times: git is to know them. It says 1 where something is changed or unmerged.
  const refresh = ['update-index', '-q', '--refresh'];
  const answer = await git.ask(refresh, { cwd });
  if (answer.status > 1) throw failed(refresh, answer);
}
