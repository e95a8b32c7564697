// What a run has changed in its repository, compared with the state before it.
//
// Everything comes from the files themselves and from objects (walk.ts, git.ts `plumbing`): an agent can make git say
// anything about its worktree, and run any program, by its index, its attributes and the user's configuration. Objects of
// changed files are stored in the repository, so that people can compare them; nothing else is changed.

import { mkdtempSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Result } from '../../base/errors.ts';
import { shortStat } from './diff.ts';
import { asResult, GitError, type GitProblem } from './git.ts';
import type { Repository } from './repository.ts';
import type { Snapshot } from './snapshot.ts';
import { Snapshotter } from './snapshotter.ts';
import { gitDirIn, isFolder, plumbing, registeredGitDir, type RunFacts, type RunRecord } from './worktree-paths.ts';
import type { WorktreeInfo } from './worktree-paths.ts';

/** What the journal knows about a run: its worktree, and the state before it. */
export interface StartedRun extends RunFacts {
  /** Null if nothing has been done yet. */
  readonly start: Snapshot | null;
  /** Rules outside of the tree that make git ignore files, as they were before the run; null: those of now. */
  readonly excludes: string | null;
}

export interface WorkDone extends RunRecord {
  /** Commits that the run added. */
  readonly commits: number;
  /** Changed and new files that are not committed. */
  readonly uncommitted: number;
  /** In git's words, with new files. Null if nothing has changed. */
  readonly diffstat: string | null;
  /** Objects to compare: the state before the run, and the present one. */
  readonly from: string;
  readonly tree: string;
}

/** Null if the run has no tree, or no longer. */
export function workDone(repository: Repository, facts: StartedRun): Promise<Result<WorkDone | null, GitProblem>> {
  return asResult(async () => {
    const record = recordOf(facts);
    const gitDir = gitDirOf(repository, facts);
    if (gitDir === null) return null;
    return withObserver(repository, facts, gitDir, async (info, snapshotter) => {
      const known = await startIn(snapshotter, facts.start);
      const { head, tree, entries, paths } = await snapshotter.look(known);
      const baseTree = await snapshotter.treeOf(record.base);
      const isPlain = known === null || known.tree === baseTree;
      const count = head === null ? '0' : await countCommits(info, record.base, head);
      const diffstat = await shortStat(info, { tree: known?.tree ?? baseTree }, { entries });
      const from = isPlain ? record.base : known.tree;
      return { ...record, commits: Number(count), uncommitted: paths.length, diffstat, from, tree };
    });
  });
}

function recordOf({ kind, path, branch, base }: RunFacts): RunRecord {
  return { kind, path, branch, base };
}

/** HEAD of a worktree, and paths that differ from it. */
export function uncommittedIn(repository: Repository, facts: StartedRun, gitDir: string) {
  return withObserver(repository, facts, gitDir, async (_info, snapshotter) => {
    const { head, paths } = await snapshotter.look(await startIn(snapshotter, facts.start));
    return { head, paths };
  });
}

/** Null if the snapshot was lost, or somebody has forged it: then the base commit is compared. */
async function startIn(snapshotter: Snapshotter, start: Snapshot | null): Promise<Snapshot | null> {
  if (start === null) return null;
  try {
    await snapshotter.entriesOf(start.tree);
    return start;
  } catch (error) {
    if (error instanceof GitError && error.problem.kind === 'no-snapshot') return null;
    throw error;
  }
}

/** Git folder of the run's tree. Null if the tree does not exist. */
function gitDirOf({ info }: Repository, { kind, path, pointer }: RunFacts): string | null {
  if (!isFolder(path)) return null;
  if (kind === 'in-place') return path === info.path ? info.gitDir : null;
  return pointer === null ? registeredGitDir(info.commonDir, path) : gitDirIn(pointer, path, info.commonDir);
}

/** Observes a tree that somebody may be working in, with files of its own. */
async function withObserver<T>(
  { info: repository }: Repository,
  facts: StartedRun,
  gitDir: string,
  observe: (info: WorktreeInfo, snapshotter: Snapshotter) => Promise<T>,
): Promise<T> {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'meow-work-')));
  try {
    const git = repository.git.inTree(facts.path, gitDir, repository.commonDir);
    const info: WorktreeInfo = { ...repository, ...recordOf(facts), git, gitDir, run: facts.run, scratch };
    for (let tries = 1; ; tries += 1) {
      const snapshotter = new Snapshotter(info);
      snapshotter.ignoring(facts.excludes ?? snapshotter.excludes());
      try {
        return await observe(info, snapshotter);
      } catch (error) {
        const isChanging = error instanceof GitError && error.problem.kind === 'refused';
        if (!isChanging || tries === TRIES_MAX) throw error;
      }
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

const TRIES_MAX = 3;

function countCommits(info: WorktreeInfo, base: string, head: string): Promise<string> {
  return plumbing(info).line(['rev-list', '--count', `${base}..${head}`]);
}
