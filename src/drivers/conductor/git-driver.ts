// The git driver: snapshots, changes and rollbacks. After a crash an operation is repeated: until its outcome is
// recorded nothing else has worked in the worktree. A rollback happens once for each visit (git/restore.ts); a refused
// rollback changed nothing.

import { dirname } from 'node:path';

import { assert } from '../../base/errors.ts';
import type { Driver } from '../../engine/ports.ts';
import type { ConductedSpec, GitOperation } from '../../ir/conductor.ts';
import { type Effect, type Outcome, success } from '../../ir/effect.ts';
import { makeFolder } from '../../sys/files.ts';
import type { GitProblem } from '../git/git.ts';
import { failed } from '../outputs.ts';
import { PendingEffects } from '../pending-effect.ts';
import { sharedFile, stepFile } from '../step-folder.ts';
import { syncDisk, syncing } from '../sync-disk.ts';
import { VisitFolder } from './artifacts.ts';
import {
  type ConductorContext,
  done,
  earlierVisits,
  type OpenWorkspace,
  outputOf,
  stepOf,
  type Task,
  taskOf,
  unrecorded,
  valueOf,
  type Visit,
} from './context.ts';
import {
  type After,
  type Before,
  killLeftovers,
  observeAfter,
  observeBefore,
  restorePointer,
} from './inspect-worktree.ts';
import { sentence } from './workspace.ts';

export function gitDriver(context: ConductorContext): Driver {
  return taskDriver(context, 'git', async (task, { operation }) => {
    const opened = await context.workspace.open();
    if (!opened.ok) return failed('refused', opened.error);
    const outcome = await operate(task, opened.value, operation);
    await syncDisk(opened.value.git?.places ?? []);
    return outcome;
  });
}

function operate(task: Task, workspace: OpenWorkspace, operation: GitOperation): Promise<Outcome> {
  switch (operation.kind) {
    case 'snapshot':
      return takeSnapshot(task, workspace, operation.writes);
    case 'changes':
      return seeChanges(task, workspace, operation);
    case 'rollback':
      return rollBack(task, workspace, operation.target);
  }
}

/** Once for each visit, by its first attempt: `pre_step` restores this state. */
async function takeSnapshot(task: Task, { folder, git, start }: OpenWorkspace, writes: boolean): Promise<Outcome> {
  if (git === null) return writes ? failed('refused', NO_GIT) : success({ folder, before: null });
  const known = beforeVisit(task.context, task.visit);
  if (known !== null) return done(task, { folder, before: known });
  const before = await observeBefore(task, git, start);
  return before.ok ? done(task, { folder, before: before.value }) : refused(before.error);
}

const NO_GIT =
  'the run works in a folder that is in no git repository, and this step may change files; ' +
  'run it in a repository, or give the step a policy with execution: read_only';

/** Null if nothing was stored. */
export function beforeVisit(context: JournalContext, visit: string): Before | null {
  const step = context.step(`${visit}.snapshot`);
  return step === null ? null : (valueOf(context, step, 'before') as Before | null);
}

/** Snapshots before all visits, in order. */
function allBefore(context: ConductorContext): readonly Before[] {
  return context.history().flatMap(({ id }) => beforeVisit(context, id) ?? []);
}

type JournalContext = Pick<ConductorContext, 'step' | 'run'>;

type Compared = Extract<GitOperation, { kind: 'changes' }>;

async function seeChanges(task: Task, { folder, git, start }: OpenWorkspace, { by, ends }: Compared): Promise<Outcome> {
  if (ends !== null) await killLeftovers(task.context, stepOf(task, ends));
  if (git === null) return success({ folder, after: null });
  if (by === 'run') {
    const now = await git.snapshot('now');
    if (!now.ok) return refused(now.error);
    const changes = await git.changes(start, now.value);
    if (!changes.ok) return refused(changes.error);
    const after: After = { ...now.value, changes: changes.value, hidden: [], moved: [], tampered: [] };
    return done(task, { folder, after });
  }
  const unseen = (problem: GitProblem): Outcome =>
    failed('refused', `what the ${by} has changed cannot be seen: ${sentence(problem)}`);
  const before = outputOf(task, 'snapshot', 'before') as Before;
  const snapshots = [start, ...allBefore(task.context), before];
  const after = await observeAfter(task, git, { before, snapshots });
  if (!after.ok) return unseen(after.error);
  const outputs = { folder, after: after.value };
  if (by === 'evaluator') return done(task, outputs);
  let patch: string | null = null;
  if (after.value.changes.length > 0) {
    patch = `${task.folder.inRun}${PATCH}`;
    const to = stepFile(task.folder, PATCH);
    makeFolder(dirname(to));
    const written = await git.diff({ against: before, to });
    if (!written.ok) return unseen(written.error);
  }
  const status = await git.status(start);
  return status.ok ? done(task, { ...outputs, patch, status: status.value }) : unseen(status.error);
}

async function rollBack(task: Task, { git, start }: OpenWorkspace, target: 'pre_run' | 'pre_step'): Promise<Outcome> {
  const { context, visit } = task;
  if (git === null) return failed('refused', 'the run works without git, so there is nothing to go back to');
  const history = earlierVisits(task);
  const worker = history.findLast(({ kind }) => kind === 'work');
  if (target === 'pre_step' && worker === undefined) {
    return failed('refused', 'no agent has worked yet, so there is no step to go back before; roll back to pre_run');
  }
  const to = target === 'pre_run' || worker === undefined ? start : beforeVisit(context, worker.id);
  if (to === null) return failed('refused', 'the journal has no snapshot of the state before that step');
  const known = allBefore(context).at(-1) ?? null;
  const pointer = known === null ? null : restorePointer(task, git, known);
  if (pointer?.ok === false) return refused(pointer.error);
  // Written once and found by later engines, out of the agents' reach.
  const before = sharedFile(context.run.files, task.effect.step, BEFORE);
  const after = sharedFile(context.run.files, task.effect.step, AFTER);
  makeFolder(dirname(before));
  const restored = await git.restore({
    id: visit,
    to,
    start,
    protectedBranches: context.settings.protectedBranches,
    lastCommit: lastHead(history),
    before,
    after,
  });
  if (!restored.ok) return failed('refused', `the run cannot be rolled back: ${sentence(restored.error)}`);
  const now = await git.snapshot('now');
  if (!now.ok) return refused(now.error);
  const status = await git.status(start);
  if (!status.ok) return refused(status.error);
  const [undone = null] = restored.value.undone;
  const artifacts = new VisitFolder(task);
  const outputs = {
    target,
    before_diff: artifacts.copy('workspace_diff', BEFORE, before).path,
    after_diff: artifacts.copy('workspace_diff', AFTER, after).path,
    undone_ref: undone === null ? null : git.refOf(undone),
    restored_tree: now.value.tree,
    head: now.value.head,
    moved_aside: restored.value.movedAside.slice(0, PATHS_MAX),
    kept_in: restored.value.keptIn,
  };
  artifacts.writeJson('workspace_status', 'workspace_status.json', status.value);
  return success({ ...outputs, artifacts: artifacts.artifacts }, { route: 'completed' });
}

const PATCH = 'workspace.patch';
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

// A driver for short tasks: they are not stopped, and after a crash they are repeated. Files that a task has written, or that
// its outcome describes, are durable before the outcome is recorded. Problems of the world are failures in the outcome; an exception is a bug and ends the engine, except for system errors about the run's own
// files.

type Spec<K extends ConductedSpec['kind']> = Extract<ConductedSpec, { kind: K }>;

/** Folders that effects of a run write to. The repository may be on another disk (Worktree.places). */
export function placesOf({ run, runDir }: ConductorContext): readonly string[] {
  return [run.files.localPath(''), runDir, run.cwd];
}

export function taskDriver<K extends ConductedSpec['kind']>(
  context: ConductorContext,
  kind: K,
  perform: (task: Task, spec: Spec<K>) => Promise<Outcome>,
): Driver {
  const open = new PendingEffects();
  const answered = async (effect: Effect): Promise<Outcome> => {
    const { spec } = effect;
    assert(spec.kind === kind, `${effect.id} is a ${spec.kind}, and asked of the driver of ${kind}`);
    try {
      return await perform(taskOf(context, effect), spec as Spec<K>);
    } catch (error) {
      return failed('refused', unrecorded(error));
    }
  };
  const start: Driver['start'] = (effect, answer) => open.ask(effect.id, answer, () => answered(effect));
  return syncing({ start, find: start, stop: () => undefined }, placesOf(context));
}
