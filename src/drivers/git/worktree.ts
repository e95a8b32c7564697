// The working tree of one run, between the run's steps. Callers have stopped everything that works in the tree, and make one
// call at a time.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Result } from '../../base/result.ts';
import { changesBetween, writeDiff } from './diff.ts';
import type { Change } from './diff.ts';
import { LEASE_FILE } from './lease.ts';
import { NameSet, textOf } from './names.ts';
import type { WorktreeInfo } from './worktree-paths.ts';
import { answering } from './git-error.ts';
import type { GitProblem } from './git-error.ts';
import { isProtected, restore } from './restore.ts';
import type { Restored, RestoreRequest } from './restore.ts';
import { readRecord, refOf, writeRecord, writeRef } from './snapshot.ts';
import type { Snapshot, SnapshotRecord } from './snapshot.ts';
import { Snapshotter } from './snapshotter.ts';

export interface WorktreeStatus {
  readonly head: string | null;
  readonly branch: string | null;
  /** Paths that differ from HEAD, or are untracked and not ignored. */
  readonly paths: readonly string[];
}

export type Since =
  | { readonly kind: 'commit'; readonly commit: string }
  | { readonly kind: 'snapshot'; readonly name: string };

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
    return answering(async () => publicPart(await this.#snapshotter.take(name)));
  }

  /** Copies a snapshot without reading the tree: if nothing has worked there since, it is a snapshot of now. */
  repeat(name: string, as: string): Promise<Result<Snapshot, GitProblem>> {
    return answering(async () => {
      const record = { ...readRecord(this.#info, name), name: as };
      await writeRef(this.#info, as, record.commit);
      writeRecord(this.#info, record);
      return publicPart(record);
    });
  }

  /** From a commit or an earlier snapshot to a snapshot. Starts no process if nothing has changed. */
  changes(since: Since, to: string): Promise<Result<readonly Change[], GitProblem>> {
    return answering(async () => {
      const after = readRecord(this.#info, to);
      if (since.kind === 'snapshot') return changesBetween(this.#info, readRecord(this.#info, since.name), after);
      const submodules = after.repositories.filter(({ kind }) => kind === 'submodule');
      const before = { tree: await this.#snapshotter.treeOf(since.commit), repositories: submodules };
      return changesBetween(this.#info, before, after);
    });
  }

  /** Ignored paths of a snapshot that an earlier one does not have; a folder ends with a slash. */
  hidden(since: string, now: string): Promise<Result<readonly string[], GitProblem>> {
    return answering(() => {
      const before = new NameSet(readRecord(this.#info, since).ignored);
      const { ignored } = readRecord(this.#info, now);
      return Promise.resolve(ignored.filter((name) => !before.covers(name)).map(textOf));
    });
  }

  /** Commits of the branches that match one of the patterns. */
  tips(patterns: readonly string[]): Promise<Result<Readonly<Record<string, string>>, GitProblem>> {
    return answering(async () => {
      const { git, path: cwd } = this.#info;
      const refs = await git.line(['for-each-ref', '--format=%(objectname) %(refname:strip=2)', 'refs/heads/'], {
        cwd,
      });
      const tips = refs
        .split('\n')
        .map((line) => [line.slice(line.indexOf(' ') + 1), line.split(' ')[0] ?? ''] as const);
      return Object.fromEntries(tips.filter(([name]) => isProtected(textOf(name), patterns)));
    });
  }

  /** Whether HEAD has the commit and an earlier HEAD, `since`, does not. */
  async isNew(commit: string, since: string | null): Promise<Result<boolean, GitProblem>> {
    return answering(async () => {
      const { git, path: cwd } = this.#info;
      const args = ['rev-list', '--max-count=1', commit, ...(since === null ? [] : [`^${since}`])];
      const isReached = async (): Promise<boolean> =>
        (await git.ask(['merge-base', '--is-ancestor', commit, 'HEAD'], { cwd })).status === 0;
      return (await git.line(args, { cwd })) !== '' && (await isReached());
    });
  }

  /** Writes the differences between a commit and the tree to a file, as a patch. */
  diff(request: { readonly against: string; readonly to: string }): Promise<Result<void, GitProblem>> {
    return answering(async () => {
      const now = await this.#snapshotter.take('now');
      await writeDiff(this.#info, { against: request.against, of: now, file: request.to });
    });
  }

  restore(request: RestoreRequest): Promise<Result<Restored, GitProblem>> {
    return answering(() => restore(this.#info, this.#snapshotter, request));
  }

  status(): Promise<Result<WorktreeStatus, GitProblem>> {
    return answering(async () => {
      const { head, branch, changed, untracked, nested } = await this.#snapshotter.list();
      const names = new Set([...changed.map(({ name }) => name), ...untracked, ...nested]);
      return { head, branch, paths: [...names].map(textOf) };
    });
  }

  /** Lets another run use the tree. For the end of a run in place; `meow gc` removes a worktree of the run's own. */
  release(): Promise<Result<void, GitProblem>> {
    return answering(() => rm(join(this.#info.gitDir, LEASE_FILE), { force: true }));
  }
}

function publicPart({ name, commit, tree, head, branch }: SnapshotRecord): Snapshot {
  return { name, commit, tree, head, branch };
}
