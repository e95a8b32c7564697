// The working tree of one run: what can be done with it between the run's steps. Whoever calls these has ended all that
// worked in it, and calls one at a time.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Result } from '../../base/result.ts';
import { changesBetween, writeDiff } from './diff.ts';
import type { Change } from './diff.ts';
import { LEASE_FILE } from './lease.ts';
import { NameSet, textOf } from './names.ts';
import type { Place } from './worktree-paths.ts';
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
  readonly #place: Place;
  readonly #snapshotter: Snapshotter;

  constructor(place: Place) {
    this.#place = place;
    this.#snapshotter = new Snapshotter(place);
  }

  get path(): string {
    return this.#place.path;
  }

  /** Commit that the run began with. */
  get base(): string {
    return this.#place.base;
  }

  /** The run's own, `meow/run-ID`; in place, what HEAD was on. */
  get branch(): string | null {
    return this.#place.branch;
  }

  /** Name of the ref of a snapshot. */
  refOf(name: string): string {
    return refOf(this.#place, name);
  }

  /** `name`: letters, digits, `_`, `-` and `#`. An earlier one of that name is replaced. */
  snapshot(name: string): Promise<Result<Snapshot, GitProblem>> {
    return answering(async () => told(await this.#snapshotter.take(name)));
  }

  /** The same under another name, without a look at the tree: where nothing has worked there since, it is a snapshot of now. */
  repeat(name: string, as: string): Promise<Result<Snapshot, GitProblem>> {
    return answering(async () => {
      const record = { ...readRecord(this.#place, name), name: as };
      await writeRef(this.#place, as, record.commit);
      writeRecord(this.#place, record);
      return told(record);
    });
  }

  /** From a commit, or from an earlier snapshot, to a snapshot. Without a process where nothing has changed. */
  changes(since: Since, to: string): Promise<Result<readonly Change[], GitProblem>> {
    return answering(async () => {
      const after = readRecord(this.#place, to);
      if (since.kind === 'snapshot') return changesBetween(this.#place, readRecord(this.#place, since.name), after);
      const submodules = after.repositories.filter(({ kind }) => kind === 'submodule');
      const before = { tree: await this.#snapshotter.treeOf(since.commit), repositories: submodules };
      return changesBetween(this.#place, before, after);
    });
  }

  /** What git ignores in one snapshot and was not there in an earlier one; a folder ends with a slash. */
  hidden(since: string, now: string): Promise<Result<readonly string[], GitProblem>> {
    return answering(() => {
      const before = new NameSet(readRecord(this.#place, since).ignored);
      const { ignored } = readRecord(this.#place, now);
      return Promise.resolve(ignored.filter((name) => !before.covers(name)).map(textOf));
    });
  }

  /** Where branches are whose names fit one of the patterns. */
  tips(patterns: readonly string[]): Promise<Result<Readonly<Record<string, string>>, GitProblem>> {
    return answering(async () => {
      const { git, path: cwd } = this.#place;
      const refs = await git.line(['for-each-ref', '--format=%(objectname) %(refname:strip=2)', 'refs/heads/'], {
        cwd,
      });
      const tips = refs
        .split('\n')
        .map((line) => [line.slice(line.indexOf(' ') + 1), line.split(' ')[0] ?? ''] as const);
      return Object.fromEntries(tips.filter(([name]) => isProtected(textOf(name), patterns)));
    });
  }

  /** Whether a commit is one that came to HEAD since another was there. */
  async isNew(commit: string, since: string | null): Promise<Result<boolean, GitProblem>> {
    return answering(async () => {
      const { git, path: cwd } = this.#place;
      const args = ['rev-list', '--max-count=1', commit, ...(since === null ? [] : [`^${since}`])];
      const isReached = async (): Promise<boolean> =>
        (await git.ask(['merge-base', '--is-ancestor', commit, 'HEAD'], { cwd })).status === 0;
      return (await git.line(args, { cwd })) !== '' && (await isReached());
    });
  }

  /** All that the tree has now, against a commit, as a patch in a file. */
  diff(request: { readonly against: string; readonly to: string }): Promise<Result<void, GitProblem>> {
    return answering(async () => {
      const now = await this.#snapshotter.take('now');
      await writeDiff(this.#place, { against: request.against, of: now, file: request.to });
    });
  }

  restore(request: RestoreRequest): Promise<Result<Restored, GitProblem>> {
    return answering(() => restore(this.#place, this.#snapshotter, request));
  }

  status(): Promise<Result<WorktreeStatus, GitProblem>> {
    return answering(async () => {
      const { head, branch, changed, untracked, nested } = await this.#snapshotter.list();
      const names = new Set([...changed.map(({ name }) => name), ...untracked, ...nested]);
      return { head, branch, paths: [...names].map(textOf) };
    });
  }

  /** Another run may work in the tree. For the end of a run in place; a tree of the run's own goes with `meow gc`. */
  release(): Promise<Result<void, GitProblem>> {
    return answering(() => rm(join(this.#place.gitDir, LEASE_FILE), { force: true }));
  }
}

function told({ name, commit, tree, head, branch }: SnapshotRecord): Snapshot {
  return { name, commit, tree, head, branch };
}
