// The git driver: snapshots, changes and rollbacks. After a crash an operation is repeated: until its outcome is
// recorded nothing else has worked in the worktree. A rollback happens once for each visit (git/restore.ts); a refused
// rollback changed nothing.

import { dirname, join } from 'node:path';
import type { Json } from '../../base/json.ts';
import type { Driver } from '../../engine/ports.ts';
import type { GitOperation } from '../../ir/conducted.ts';
import { success } from '../../ir/effect.ts';
import type { Outcome } from '../../ir/effect.ts';
import { makeFolder } from '../../sys/private-file.ts';
import type { GitProblem } from '../git/git-error.ts';
import type { Worktree } from '../git/worktree.ts';
import { visitFolder } from './artifacts.ts';
import { done, earlierVisits, failed, ownFolder, stepOf, valueOf } from './context.ts';
import type { ConductorContext, OpenWorkspace, Task, Visit } from './context.ts';
import { killLeftovers, restorePointer, lookAfter, observeBefore } from './inspect-worktree.ts';
import type { After, Before } from './inspect-worktree.ts';
import { taskDriver } from './task-driver.ts';
import { PRE_RUN, sentence, snapshotName } from './workspace.ts';

export function gitDriver(context: ConductorContext): Driver {
  return taskDriver(context, 'git', async (task, { operation }) => {
    const opened = await context.workspace.open();
    if (!opened.ok) return failed('refused', opened.error);
    switch (operation.kind) {
      case 'snapshot':
        return takeSnapshot(task, opened.value, operation);
      case 'changes':
        return seeChanges(task, opened.value, operation);
      case 'rollback':
        return rollBack(task, opened.value, operation);
    }
  });
}

type Operation<K extends GitOperation['kind']> = Extract<GitOperation, { kind: K }>;

/** Once for each visit, by its first attempt: `pre_step` restores this state. */
async function takeSnapshot(
  task: Task,
  { folder, git }: OpenWorkspace,
  { writes }: Operation<'snapshot'>,
): Promise<Outcome> {
  if (git === null) return writes ? failed('refused', NO_GIT) : success({ folder, before: null });
  const known = beforeVisit(task.context, task.visit);
  if (known !== null) return done(task, { folder, before: known as unknown as Json });
  const before = await observeBefore(git, task.context.settings, snapshotName(task.visit));
  return before.ok ? done(task, { folder, before: before.value as unknown as Json }) : refused(before.error);
}

const NO_GIT =
  'the run works in a folder that is in no git repository, and this step may change files; ' +
  'run it in a repository, or give the step a policy with execution: read_only';

/** Null if nothing was stored. */
function beforeVisit(context: ConductorContext, visit: string): Before | null {
  const step = context.step(`${visit}.snapshot`);
  return step === null ? null : (valueOf({ context }, step, 'before') as unknown as Before | null);
}

async function seeChanges(
  task: Task,
  { folder, git }: OpenWorkspace,
  { by, ends }: Operation<'changes'>,
): Promise<Outcome> {
  if (ends !== null) await killLeftovers(task.context, stepOf(task, ends));
  if (git === null) return success({ folder, after: null });
  if (by === 'run') {
    const after = await sinceTheRunBegan(git);
    return after.ok ? done(task, { folder, after: after.value as unknown as Json }) : refused(after.error);
  }
  const unseen = (problem: GitProblem): Outcome =>
    failed('refused', `what the ${by} has changed cannot be seen: ${sentence(problem)}`);
  const before = valueOf(task, stepOf(task, 'snapshot'), 'before') as unknown as Before;
  const after = await lookAfter(task, git, before);
  if (!after.ok) return unseen(after.error);
  const outputs = { folder, after: after.value as unknown as Json };
  if (by === 'evaluator') return done(task, outputs);
  let patch: string | null = null;
  if (after.value.changes.length > 0) {
    const { path, inRun } = ownFolder(task);
    makeFolder(path);
    patch = `${inRun}/workspace.patch`;
    const written = await git.diff({ against: before.commit, to: join(path, 'workspace.patch') });
    if (!written.ok) return unseen(written.error);
  }
  const status = await git.status();
  return status.ok ? done(task, { ...outputs, patch, status: status.value as unknown as Json }) : unseen(status.error);
}

async function sinceTheRunBegan(git: Worktree) {
  const now = await git.snapshot('now');
  if (!now.ok) return now;
  const changes = await git.changes({ kind: 'snapshot', name: PRE_RUN }, 'now');
  if (!changes.ok) return changes;
  const after: After = { ...now.value, changes: changes.value, hidden: [], moved: [], tampered: [] };
  return { ok: true, value: after } as const;
}

async function rollBack(task: Task, { git }: OpenWorkspace, { target }: Operation<'rollback'>): Promise<Outcome> {
  const { context, visit } = task;
  if (git === null) return failed('refused', 'the run works without git, so there is nothing to go back to');
  const history = earlierVisits(task);
  const worker = history.findLast(({ kind }) => kind === 'work');
  if (target === 'pre_step' && worker === undefined) {
    return failed('refused', 'no agent has worked yet, so there is no step to go back before; roll back to pre_run');
  }
  const to = target === 'pre_run' || worker === undefined ? PRE_RUN : snapshotName(worker.id);
  const known = history.map(({ id }) => beforeVisit(context, id)).findLast((before) => before !== null) ?? null;
  const led = known === null ? null : restorePointer(task, git, known);
  if (led?.ok === false) return refused(led.error);
  // Written once and found by later engines, out of the agents' reach.
  const folder = dirname(ownFolder(task).path);
  makeFolder(folder);
  const restored = await git.restore({
    id: visit,
    to,
    protectedBranches: context.settings.protectedBranches,
    lastCommit: lastHead(history),
    before: join(folder, BEFORE),
    after: join(folder, AFTER),
  });
  if (!restored.ok) return failed('refused', `the run cannot be rolled back: ${sentence(restored.error)}`);
  const now = await git.snapshot('now');
  if (!now.ok) return refused(now.error);
  const status = await git.status();
  if (!status.ok) return refused(status.error);
  const [undone = null] = restored.value.undone;
  const artifacts = visitFolder(task);
  const outputs = {
    target,
    before_diff: artifacts.copy('workspace_diff', BEFORE, join(folder, BEFORE)).path,
    after_diff: artifacts.copy('workspace_diff', AFTER, join(folder, AFTER)).path,
    undone_ref: undone === null ? null : git.refOf(undone),
    restored_tree: now.value.tree,
    head: now.value.head,
    moved_aside: restored.value.movedAside.slice(0, PATHS_MAX),
    kept_in: restored.value.keptIn,
  };
  artifacts.writeJson('workspace_status', 'workspace_status.json', status.value);
  return success({ ...outputs, artifacts: artifacts.artifacts }, { route: 'completed' });
}

const BEFORE = 'before.patch';
const AFTER = 'after.patch';
const PATHS_MAX = 200;

/** HEAD after the latest visit that may have moved it; null if that visit does not say. */
function lastHead(history: readonly Visit[]): string | null {
  const head = history.findLast(({ kind }) => kind !== 'gate' && kind !== 'halt')?.outputs['head'];
  return typeof head === 'string' ? head : null;
}

function refused(problem: GitProblem): Outcome {
  return failed('refused', sentence(problem));
}
