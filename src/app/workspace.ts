// The work of a Conductor run, for people and scripts.

import { relative } from 'node:path';

import { Repository } from '../drivers/git/repository.ts';
import { workDone } from '../drivers/git/work-done.ts';
import { conductorOf, workplaceOf } from '../ir/conductor-facts.ts';
import type { RunState } from '../kernel/state.ts';
import type { Palette } from '../view/row.ts';
import { type WorkspaceView, workspaceLines } from '../view/workspace.ts';
import { ownEnvironment } from './project.ts';

/** Null for other runs, and if there is no tree (yet, or any more). */
export async function workspaceOf({ program, request }: RunState): Promise<WorkspaceView | null> {
  if (request === null || conductorOf(program)?.mutates !== true) return null;
  const repository = await Repository.open(request.cwd, ownEnvironment());
  const done = repository.ok ? await workDone(repository.value, request.id) : repository;
  if (!done.ok || done.value === null) return null;
  const { branch, path: worktree, base, commits, uncommitted, diffstat } = done.value;
  return { branch, worktree, base, commits, uncommitted, diffstat };
}

/** `cwd`: where commands are typed. */
export async function describeWorkspace(state: RunState, palette: Palette, cwd: string): Promise<readonly string[]> {
  const view = await workspaceOf(state);
  if (view === null) return [];
  const folder = relative(cwd, view.worktree) || '.';
  const { inPlace } = workplaceOf(state.program);
  return workspaceLines(state.request?.id ?? '', view, inPlace ? null : folder, palette);
}
