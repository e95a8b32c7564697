// The working tree of one run, between the run's steps. Callers have stopped everything that works in the tree, and make one
// call at a time.

import { link, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';

import type { Result } from '../../base/errors.ts';
import { own } from '../../base/json.ts';
import { tolerateAsync } from '../../sys/errors.ts';
import { readJsonFile, writeJsonFile } from '../../sys/files.ts';
import { type Change, changesBetween, writeDiff } from './diff.ts';
import { asResult, GitError, type GitProblem } from './git.ts';
import { repairGitFiles } from './repair.ts';
import { isProtected, restore, type Restored, type RestoreRequest } from './restore.ts';
import { findRecord, recordOf, refOf, type Snapshot, type SnapshotRecord, writeRef } from './snapshot.ts';
import { Snapshotter, type WorktreeStatus } from './snapshotter.ts';
import { NameSet, plumbing, textOf, type WorktreeInfo } from './worktree-paths.ts';

/** Commits of branches. */
export type Tips = Readonly<Record<string, string>>;

export type Comparison = Snapshot & {
  readonly changes: readonly Change[];
  /** New files that git ignores; a folder ends with a slash. */
  readonly hidden: readonly string[];
  /** Protected branches that were moved to commits made here, not to those of somebody else. */
  readonly moved: readonly string[];
};

/** Refs that belong to the engine, or change what git shows. */
export type WatchedRefs = {
  /** Snapshots of the run: name → commit. */
  readonly snapshots: Readonly<Record<string, string>>;
  /** Full names of refs that replace objects. */
  readonly replaced: readonly string[];
};

export class Worktree {
  readonly #info: WorktreeInfo;
  readonly #snapshotter: Snapshotter;

  constructor(info: WorktreeInfo) {
    this.#info = info;
    this.#snapshotter = new Snapshotter(info);
  }

  get path(): string {
    return this.#info.path;
  }

  /** Folders with all files of the tree and of the repository. */
  get places(): readonly string[] {
    return [this.#info.path, this.#info.commonDir];
  }

  /** Git folder of this tree. */
  get gitDir(): string {
    return this.#info.gitDir;
  }

  /** Git folder that all trees of the repository share. */
  get commonDir(): string {
    return this.#info.commonDir;
  }

  /** Commit that the run started from. */
  get base(): string {
    return this.#info.base;
  }

  /** `meow/run-ID`; in place, the branch of HEAD. */
  get branch(): string | null {
    return this.#info.branch;
  }

  /** Full name of a snapshot's ref. */
  refOf(name: string): string {
    return refOf(this.#info, name);
  }

  /** `name`: letters, digits, `_`, `-` and `#`. An earlier one of that name is replaced. */
  snapshot(name: string): Promise<Result<Snapshot, GitProblem>> {
    return asResult(async () => publicPart(await this.#snapshotter.take(name)));
  }

  /** The snapshot of that name, by its record; null if there is none. Somebody else may have written the record. */
  find(name: string): Snapshot | null {
    const record = findRecord(this.#info, name);
    return record === null ? null : publicPart(record);
  }

  /** Rules outside of the tree that make git ignore files. */
  excludes(): string {
    return this.#snapshotter.excludes();
  }

  /** The rules in use. */
  get ignored(): string {
    return this.#snapshotter.ignored;
  }

  /** Uses these rules from now on, whatever anybody changes about them. */
  ignoring(excludes: string): void {
    this.#snapshotter.ignoring(excludes);
  }

  /** From one snapshot to another. Starts no process if nothing has changed. */
  changes(since: Snapshot, to: Snapshot): Promise<Result<readonly Change[], GitProblem>> {
    return asResult(async () => {
      const [from, after] = [recordOf(this.#info, since), recordOf(this.#info, to)];
      const [then, now] = [await this.#snapshotter.entriesOf(from.tree), await this.#snapshotter.entriesOf(after.tree)];
      return changesBetween(this.#info, { ...from, entries: then }, { ...after, entries: now });
    });
  }

  /** Tips of the branches that match one of the patterns. */
  tips(patterns: readonly string[]): Promise<Result<Tips, GitProblem>> {
    return asResult(() => this.#tips(patterns));
  }

  /** Takes the snapshot `now`, and compares it with an earlier snapshot and the tips at that time. */
  compare(before: Snapshot, tips: Tips, patterns: readonly string[]): Promise<Result<Comparison, GitProblem>> {
    return asResult(async () => {
      const now = await this.#snapshotter.take('now');
      const then = recordOf(this.#info, before);
      // Git reads this tree from its objects, so they must be those that were written.
      const entries = await this.#snapshotter.entriesOf(then.tree);
      const changes = await changesBetween(this.#info, { ...then, entries }, now);
      const ignoredThen = new NameSet(then.ignored ?? []);
      const hidden = now.ignored.filter((name) => !ignoredThen.covers(name)).map(textOf);
      const moved: string[] = [];
      for (const [branch, commit] of Object.entries(await this.#tips(patterns))) {
        if (own(tips, branch) !== commit && (await this.#isNew(commit, before.head))) moved.push(branch);
      }
      return { ...publicPart(now), changes, hidden, moved };
    });
  }

  async #tips(patterns: readonly string[]): Promise<Tips> {
    const args = ['for-each-ref', '--format=%(objectname) %(refname:strip=2)', 'refs/heads/'];
    const lines = (await this.#info.git.line(args)).split('\n');
    const tips = lines.map((line) => [textOf(line.slice(line.indexOf(' ') + 1)), line.split(' ')[0] ?? ''] as const);
    return Object.fromEntries(tips.filter(([name]) => isProtected(name, patterns)));
  }

  watchedRefs(): Promise<Result<WatchedRefs, GitProblem>> {
    return asResult(async () => {
      const { git, run } = this.#info;
      const own = `refs/meow/${run}/`;
      const lines = await git.line(['for-each-ref', '--format=%(objectname) %(refname)', own, 'refs/replace/']);
      const refs = lines
        .split('\n')
        .map((line) => [line.slice(line.indexOf(' ') + 1), line.split(' ')[0] ?? ''] as const);
      const snapshots = refs.filter(([ref]) => ref.startsWith(own)).map(([ref, oid]) => [ref.slice(own.length), oid]);
      const replaced = refs.map(([ref]) => ref).filter((ref) => ref.startsWith('refs/replace/'));
      return { snapshots: Object.fromEntries(snapshots), replaced };
    });
  }

  /** Whether the repository still has the objects of a snapshot and of the commit that the run started from. */
  isIntact({ tree }: Snapshot): Promise<Result<boolean, GitProblem>> {
    return asResult(async () => {
      const git = plumbing(this.#info);
      const answers = await Promise.all([tree, this.base].map((oid) => git.ask(['cat-file', '-e', oid])));
      return answers.every(({ status }) => status === 0);
    });
  }

  /** Makes git work here again, whatever somebody has done to its files. `note`: gets their names first (repair/4). */
  repair(note: (names: readonly string[]) => void): Promise<Result<void, GitProblem>> {
    return asResult(async () => repairGitFiles(this.#info, note));
  }

  /** Moves the ref of a snapshot back. */
  putBack({ name, commit }: Snapshot): Promise<Result<void, GitProblem>> {
    return asResult(() => writeRef(this.#info, name, commit));
  }

  /** Whether HEAD has the commit and an earlier HEAD, `since`, does not. */
  async #isNew(commit: string, since: string | null): Promise<boolean> {
    const { head } = await this.#snapshotter.head();
    const git = plumbing(this.#info);
    const found = await git.line(['rev-list', '--max-count=1', commit, ...(since === null ? [] : [`^${since}`])]);
    return found !== '' && head !== null && (await git.find(['merge-base', '--is-ancestor', commit, head])) !== null;
  }

  /** Writes the differences between a snapshot and the tree to a file, as a patch. */
  diff(request: { readonly against: Snapshot; readonly to: string }): Promise<Result<void, GitProblem>> {
    return asResult(async () => {
      await writeDiff(this.#info, request.against, await this.#snapshotter.take('now'), request.to);
    });
  }

  restore(request: RestoreRequest): Promise<Result<Restored, GitProblem>> {
    return asResult(() => restore(this.#info, this.#snapshotter, request));
  }

  /** `start`: the state before the run. */
  status(start: Snapshot): Promise<Result<WorktreeStatus, GitProblem>> {
    return asResult(() => this.#snapshotter.status(start));
  }

  /** Lets another run use the tree. For the end of a run in place; `meow gc` removes a worktree of the run's own. */
  release(): Promise<Result<void, GitProblem>> {
    return asResult(() => rm(join(this.#info.gitDir, LEASE_FILE), { recursive: true, force: true }));
  }
}

function publicPart({ name, commit, tree, head, branch, digest }: SnapshotRecord): Snapshot {
  return { name, commit, tree, head, branch, ...(digest === undefined ? {} : { digest }) };
}

/**
 * Lease of a working tree: a file in the tree's git folder that names the one run that may use it. A lease belongs to
 * a run, not to a process: it outlives the engine, and a resumed run still has it.
 */
export const LEASE_FILE = 'meow-lease.json';

/** Null if the tree is free, or its lease is not a lease. */
export function leaseHolder(gitDir: string): string | null {
  const lease = readJsonFile(join(gitDir, LEASE_FILE)) as { readonly run?: unknown } | null;
  return typeof lease?.run === 'string' ? lease.run : null;
}

/** Succeeds if the run already has it. `isKnown`: the journal knows that the run has worked here. */
export async function takeLease({ gitDir, path, run, kind }: WorktreeInfo, isKnown: boolean): Promise<void> {
  const file = join(gitDir, LEASE_FILE);
  if (await createJsonFile(file, { run })) return;
  const holder = leaseHolder(gitDir);
  if (holder === run) return;
  // Nobody else uses a worktree of the run's own, so somebody has changed the lease.
  if (isKnown && (kind === 'worktree' || holder === null)) return writeJsonFile(file, { run });
  throw new GitError(
    'leased',
    `the run ${holder ?? '(unknown)'} uses ${path}`,
    `wait until it ends, or stop it (meow stop ${holder ?? 'RUN'}) and clean up (meow gc)`,
  );
}

/** Creates a JSON file atomically. False if it exists. */
export async function createJsonFile(path: string, value: unknown): Promise<boolean> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(draft, `${JSON.stringify(value)}\n`, { mode: 0o600, flag: 'wx' });
  const linked = link(draft, path).then(() => true);
  try {
    return await tolerateAsync(['EEXIST'], false, linked);
  } finally {
    await rm(draft, { force: true });
  }
}
