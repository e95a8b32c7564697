// The work of a Conductor run, for people and scripts. Where a run works, and what it began with, is known from its journal
// alone: agents can write everything that the repository says about it.

import { realpathSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';

import { type Before, startFacts, type StartFacts, worktreePath } from '../drivers/conductor/workspace.ts';
import type { KnownRun } from '../drivers/git/gc.ts';
import { branchOf, Repository } from '../drivers/git/repository.ts';
import { workDone } from '../drivers/git/work-done.ts';
import { isFolder } from '../drivers/git/worktree-paths.ts';
import { conductorOf, workplaceOf } from '../ir/program.ts';
import type { RunState } from '../kernel/state.ts';
import { ABSENT, tolerate } from '../sys/errors.ts';
import type { Palette } from '../view/row.ts';
import { visitsOf } from '../view/visits.ts';
import { type WorkspaceView, workspaceLines } from '../view/workspace.ts';
import { ownEnvironment } from './project.ts';

/** Null for other runs, and if there is no tree (yet, or any more). */
export async function workspaceOf(state: RunState): Promise<WorkspaceView | null> {
  const { program, request } = state;
  if (request === null || conductorOf(program)?.mutates !== true) return null;
  const opened = await Repository.open(request.cwd, ownEnvironment());
  if (!opened.ok) return null;
  const repository = opened.value;
  // Runs of earlier versions do not know their folder.
  const project = request.folder === undefined ? request.cwd : resolve(request.folder, '../../..');
  const known = knownRun(request.id, project, state);
  const path = known.kind === 'in-place' ? repository.info.path : known.path;
  const done = await workDone(repository, { ...known, path, base: known.base ?? repository.head });
  if (!done.ok || done.value === null) return null;
  const { branch, base, commits, uncommitted, diffstat, from, tree } = done.value;
  return { branch, worktree: path, base, commits, uncommitted, diffstat, from, tree };
}

/** `state`: null if the run has no journal. `project`: the folder that contains `.meow`. */
export function knownRun(run: string, project: string, state: RunState | null): KnownRun {
  const { base, inPlace } = state === null ? { base: null, inPlace: false } : workplaceOf(state.program);
  const start = state === null ? null : startIn(state);
  return {
    run,
    kind: inPlace ? 'in-place' : 'worktree',
    path: realWorktreePath(project, run),
    branch: inPlace ? (start?.snapshot.branch ?? null) : branchOf(run),
    base: start?.snapshot.head ?? base,
    pointer: start?.pointer ?? null,
    start: start?.snapshot ?? null,
    excludes: start?.excludes ?? null,
  };
}

/** The path by which git knows the worktree: it follows a link only if `.meow` itself is one. */
function realWorktreePath(project: string, run: string): string {
  const path = worktreePath(project, run);
  const worktrees = resolve(path, '..');
  const real = isFolder(worktrees) ? tolerate(ABSENT, worktrees, () => realpathSync(worktrees)) : worktrees;
  return join(real, run);
}

function startIn(state: RunState): StartFacts | null {
  for (const { id } of visitsOf(state.steps.values())) {
    const { outputs = {}, kept = [] } = state.steps.get(`${id}.snapshot`) ?? {};
    const before = kept.includes('before') ? null : (outputs['before'] as Before | null | undefined);
    const start = startFacts(before ?? null);
    if (start !== null) return start;
  }
  return null;
}

/** `cwd`: the folder in which the user types commands. */
export async function describeWorkspace(state: RunState, palette: Palette, cwd: string): Promise<readonly string[]> {
  const view = await workspaceOf(state);
  if (view === null) return [];
  const folder = relative(cwd, view.worktree) || '.';
  const { inPlace } = workplaceOf(state.program);
  return workspaceLines(state.request?.id ?? '', view, inPlace ? null : folder, palette);
}
