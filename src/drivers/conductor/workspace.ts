// Where a run works: in its own worktree, in the user's tree, or, if it changes nothing, in a folder as it is. The
// first call creates it; later engines find the same, from the same commit. The snapshot `pre_run` holds the state
// before the run.

import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { err, ok, type Result } from '../../base/errors.ts';
import { asResult, type GitProblem } from '../git/git.ts';
import { readRunRecord, Repository } from '../git/repository.ts';
import type { Snapshot } from '../git/snapshot.ts';
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
  /** The state before the run, by the journal; null if the journal does not have it. */
  readonly start?: () => { readonly snapshot: Snapshot; readonly excludes: string } | null;
  /** `as-it-is`: the run changes nothing and needs no git. */
  readonly kind: 'worktree' | 'in-place' | 'as-it-is';
}

const PRE_RUN = 'pre_run';

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
  if (request.kind === 'as-it-is') return ok({ folder: project, git: null, start: null });
  const repository = await Repository.open(project, request.environment);
  if (!repository.ok) return err(sentence(repository.error));
  const worktree = await worktreeIn(repository.value, request);
  if (!worktree.ok) return err(sentence(worktree.error));
  const git = worktree.value;
  // Rules of the user's that an agent may change are those of the start.
  const known = request.start?.() ?? null;
  git.ignoring(known?.excludes ?? git.excludes());
  const start = known?.snapshot ?? git.find(PRE_RUN);
  if (start !== null) return ok({ folder: git.path, git, start });
  const taken = await git.snapshot(PRE_RUN);
  return taken.ok ? ok({ folder: git.path, git, start: taken.value }) : err(sentence(taken.error));
}

async function worktreeIn(
  repository: Repository,
  { runId: run, project, runDir, kind, base: settled, hasWorked }: WorkspaceRequest,
): Promise<Result<Worktree, GitProblem>> {
  if (kind === 'in-place') return repository.inPlace({ run, runFolder: runDir });
  const known = readRunRecord(repository.info.commonDir, run);
  if (known === null && hasWorked?.() === true) {
    const message = `the worktree of run ${run} is gone, with what was done in it`;
    return err({ kind: 'gone', message, cure: 'it was removed, perhaps by meow gc: start another run' });
  }
  const base = known?.base ?? settled ?? repository.head;
  const path = worktreePath(project, run);
  const ignored = await asResult(async () => hideFromGit(dirname(path), '*\n'));
  return ignored.ok ? repository.addWorktree({ run, path, base, runFolder: runDir }) : ignored;
}

/** Hides files of a folder from `git status`. Another run, which asks git about the same folder, finds them hidden at any moment. */
export function hideFromGit(folder: string, ignored: string): void {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, '.gitignore');
  if (statSync(file, { throwIfNoEntry: false })?.size) return;
  const whole = `${file}.${randomUUID()}`;
  writeFileSync(whole, ignored, { flag: 'wx' });
  renameSync(whole, file);
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
