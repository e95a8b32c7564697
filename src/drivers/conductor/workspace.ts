// Where a run works: a worktree of its own, the user's own tree, or, where it changes nothing, a folder as it is. The first
// who asks makes it; in all lives of the engine it is the same, from the same commit. What was there before the run did
// anything is in the snapshot `pre_run`.

import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { answering } from '../git/git-error.ts';
import type { GitProblem } from '../git/git-error.ts';
import { readRunRecord, Repository } from '../git/repository.ts';
import type { Worktree } from '../git/worktree.ts';
import type { OpenWorkspace, Workspace } from './context.ts';

export interface WorkspaceRequest {
  readonly runId: string;
  /** The folder that has `.meow`. Absolute. */
  readonly project: string;
  /** What people look at: neither is to be inside of the other. Absolute. */
  readonly runDir: string;
  /** The user's. */
  readonly environment: Readonly<Record<string, string>>;
  /** The commit to begin from, where that is settled; else what HEAD is at when it is first asked for. */
  readonly base?: string | null;
  /** Whether something was done in it before. */
  readonly hasWorked?: () => boolean;
  /** `as-it-is`: the run changes nothing, and needs no git. */
  readonly kind: 'worktree' | 'in-place' | 'as-it-is';
}

export const PRE_RUN = 'pre_run';

export function workspaceFor(request: WorkspaceRequest): Workspace {
  let opened: Promise<Result<OpenWorkspace, string>> | null = null;
  return {
    async open() {
      opened ??= open(request);
      const result = await opened;
      // What was in the way may have been mended meanwhile.
      if (!result.ok) opened = null;
      return result;
    },
  };
}

/** Of a run's own worktree. */
export function worktreePath(project: string, runId: string): string {
  return join(project, '.meow', 'worktrees', runId);
}

async function open(request: WorkspaceRequest): Promise<Result<OpenWorkspace, string>> {
  const { project } = request;
  if (request.kind === 'as-it-is') return ok({ folder: project, git: null });
  const repository = await Repository.open(project, request.environment);
  if (!repository.ok) return err(sentence(repository.error));
  const worktree = await worktreeIn(repository.value, request);
  if (!worktree.ok) return err(sentence(worktree.error));
  const git = worktree.value;
  if (!(await hasSnapshot(git, PRE_RUN))) {
    const taken = await git.snapshot(PRE_RUN);
    if (!taken.ok) return err(sentence(taken.error));
  }
  return ok({ folder: git.path, git });
}

async function worktreeIn(
  repository: Repository,
  { runId: run, project, runDir, kind, base: settled, hasWorked }: WorkspaceRequest,
): Promise<Result<Worktree, GitProblem>> {
  if (kind === 'in-place') return repository.inPlace({ run, runFolder: runDir });
  const known = readRunRecord(repository.commonDir, run);
  if (known === null && hasWorked?.() === true) {
    const message = `the worktree of run ${run} is gone, with what was done in it`;
    return err({ kind: 'gone', message, cure: 'it was removed, perhaps by meow gc: start another run' });
  }
  const base = known?.base ?? settled ?? repository.head;
  const path = worktreePath(project, run);
  const ignored = await answering(() => makeIgnored(dirname(path)));
  return ignored.ok ? repository.addWorktree({ run, path, base, runFolder: runDir }) : ignored;
}

/** Nothing of what is in it is to be seen in the `git status` of the project. */
async function makeIgnored(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, '.gitignore'), '*\n');
}

async function hasSnapshot(git: Worktree, name: string): Promise<boolean> {
  const same = await git.changes({ kind: 'snapshot', name }, name);
  return same.ok || same.error.kind !== 'no-snapshot';
}

/** Of the snapshot that is taken before a visit: the visit's own, where that can be one. */
export function snapshotName(visit: string): string {
  if (/^[A-Za-z0-9_#-]{1,90}$/.test(visit)) return visit;
  const hash = createHash('sha256').update(visit).digest('hex').slice(0, 16);
  return `${visit.slice(0, 60).replaceAll(/[^A-Za-z0-9_#-]/g, '_')}-${hash}`;
}

/** What is wrong, and what helps. */
export function sentence({ message, cure }: GitProblem): string {
  return `${message}; ${cure}`;
}
