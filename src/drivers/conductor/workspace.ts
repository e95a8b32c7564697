// Where a run works: in its own worktree, in the user's tree, or, if it changes nothing, in a folder as it is. The
// first call creates it; later engines find the same, from the same commit. The snapshot `pre_run` holds the state
// before the run.

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
  /** The folder that contains `.meow`. Absolute. */
  readonly project: string;
  /** For people; neither may contain the other. Absolute. */
  readonly runDir: string;
  /** The user's environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** First commit, if known; otherwise HEAD at the first call. */
  readonly base?: string | null;
  /** Whether the run has worked in it before. */
  readonly hasWorked?: () => boolean;
  /** `as-it-is`: the run changes nothing and needs no git. */
  readonly kind: 'worktree' | 'in-place' | 'as-it-is';
}

export const PRE_RUN = 'pre_run';

export function workspaceFor(request: WorkspaceRequest): Workspace {
  let opened: Promise<Result<OpenWorkspace, string>> | null = null;
  return {
    async open() {
      opened ??= open(request);
      const result = await opened;
      // The obstacle may be gone at the next call.
      if (!result.ok) opened = null;
      return result;
    },
  };
}

/** The run's own worktree. */
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

/** Hides its content from the project's `git status`. */
async function makeIgnored(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, '.gitignore'), '*\n');
}

async function hasSnapshot(git: Worktree, name: string): Promise<boolean> {
  const same = await git.changes({ kind: 'snapshot', name }, name);
  return same.ok || same.error.kind !== 'no-snapshot';
}

/** Name of the snapshot before a visit: the visit's own if possible. */
export function snapshotName(visit: string): string {
  if (/^[A-Za-z0-9_#-]{1,90}$/.test(visit)) return visit;
  const hash = createHash('sha256').update(visit).digest('hex').slice(0, 16);
  return `${visit.slice(0, 60).replaceAll(/[^A-Za-z0-9_#-]/g, '_')}-${hash}`;
}

/** The problem with advice. */
export function sentence({ message, cure }: GitProblem): string {
  return `${message}; ${cure}`;
}
