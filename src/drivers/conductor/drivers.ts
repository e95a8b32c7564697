// The two drivers of Conductor runs: one for git operations (snapshots, changes, rollbacks), one for inspections (what
// the engine reads, writes for people, and judges from recorded outcomes).
//
// Their tasks are short. They are not stopped, and after a crash they are repeated: until an outcome is recorded nothing
// else has worked in the worktree. A rollback happens once for each visit (git/restore.ts); a refused rollback changed
// nothing. Files that a task has written, or that its outcome describes, are durable before the outcome is recorded.
// Problems of the world are failures in the outcome; an exception is a bug and ends the engine, except for system errors
// about the run's own files.

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
import type { ConductorContext, OpenWorkspace, Task } from './context.ts';
import { done, earlierVisits, outputOf, stepOf, taskOf, unrecorded, valueOf } from './context.ts';
import { decide, gatherEvidence } from './evaluation.ts';
import { listed, pendingGoldens } from './evidence.ts';
import { fillAgentPrompt, judgeTurn } from './run-agent.ts';
import { collectValidator, judgeValidators, prepareValidator } from './validators.ts';
import { judgeWitness } from './witness.ts';
import { type After, type Before, killLeftovers, observeAfter, observeBefore } from './workspace.ts';
import { repairWorktree, sentence } from './workspace.ts';

export function gitDriver(context: ConductorContext): Driver {
  return taskDriver(context, 'git', async (task, { operation }) => {
    const opened = await context.workspace.open();
    if (!opened.ok) return failed('refused', opened.error);
    const outcome = await operate(task, opened.value, operation);
    await syncDisk(opened.value.git?.places ?? []);
    return outcome;
  });
}

export function inspectDriver(context: ConductorContext): Driver {
  return taskDriver(context, 'inspect', async (task, { inspection: wanted }) => {
    switch (wanted.kind) {
      case 'prompt':
        return fillAgentPrompt(task, wanted);
      case 'policy':
        return judgeTurn(task, wanted);
      case 'witness':
        return judgeWitness(task, wanted);
      case 'evidence':
        return gatherEvidence(task, wanted);
      case 'decision':
        return decide(task, wanted);
      case 'prepare':
        return prepareValidator(task, wanted.validator);
      case 'collect':
        return collectValidator(task, wanted.validator, wanted.idleMs);
      case 'report':
        return judgeValidators(task, wanted.validators);
      case 'end':
        return mayEnd(task, wanted.verdict);
    }
  });
}

/** Folders that effects of a run write to. The repository may be on another disk (Worktree.places). */
export function placesOf({ run, runDir }: ConductorContext): readonly string[] {
  return [run.files.localPath(''), runDir, run.cwd];
}

function taskDriver<K extends ConductedSpec['kind']>(
  context: ConductorContext,
  kind: K,
  perform: (task: Task, spec: Extract<ConductedSpec, { kind: K }>) => Promise<Outcome>,
): Driver {
  const open = new PendingEffects();
  const answered = async (effect: Effect): Promise<Outcome> => {
    const { spec } = effect;
    assert(spec.kind === kind, `${effect.id} is a ${spec.kind}, and asked of the driver of ${kind}`);
    try {
      return await perform(taskOf(context, effect), spec as Extract<ConductedSpec, { kind: K }>);
    } catch (error) {
      return failed('refused', unrecorded(error));
    }
  };
  const start: Driver['start'] = (effect, answer) => open.ask(effect.id, answer, () => answered(effect));
  return syncing({ start, find: start, stop: () => undefined }, placesOf(context));
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
export function beforeVisit(context: Pick<ConductorContext, 'step' | 'run'>, visit: string): Before | null {
  const step = context.step(`${visit}.snapshot`);
  return step === null ? null : (valueOf(context, step, 'before') as Before | null);
}

function allBefore(context: ConductorContext): readonly Before[] {
  return context.history().flatMap(({ id }) => beforeVisit(context, id) ?? []);
}

async function seeChanges(
  task: Task,
  { folder, git, start }: OpenWorkspace,
  { by, ends }: Extract<GitOperation, { kind: 'changes' }>,
): Promise<Outcome> {
  if (ends !== null) await killLeftovers(task.context, stepOf(task, ends));
  if (git === null) return success({ folder, after: null });
  if (by === 'run') {
    const repaired = await git.repair(() => undefined);
    if (!repaired.ok) return refused(repaired.error);
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
  const to = stepFile(task.folder, PATCH);
  makeFolder(dirname(to));
  // Only for people: without a patch or a status, the changes still count.
  const written = after.value.changes.length > 0 ? await git.diff({ against: before, to }) : null;
  const status = await git.status(start);
  const problem = written?.ok === false ? written.error : status.ok ? null : status.error;
  return done(task, {
    ...outputs,
    patch: written?.ok === true ? `${task.folder.inRun}${PATCH}` : null,
    status: status.ok ? status.value : null,
    ...(problem === null ? {} : { unrecorded: sentence(problem) }),
  });
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
  const repaired = await repairWorktree(task, git, allBefore(context).at(-1) ?? null);
  if (!repaired.ok) return refused(repaired.error);
  // Written once and found by later engines, out of the agents' reach.
  const before = sharedFile(context.run.files, task.effect.step, BEFORE);
  const after = sharedFile(context.run.files, task.effect.step, AFTER);
  makeFolder(dirname(before));
  // HEAD after the latest visit that may have moved it.
  const head = history.findLast(({ kind }) => kind !== 'gate' && kind !== 'halt')?.outputs['head'];
  const restored = await git.restore({
    id: visit,
    to,
    start,
    protectedBranches: context.settings.protectedBranches,
    lastCommit: typeof head === 'string' ? head : null,
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

function refused(problem: GitProblem): Outcome {
  return failed('refused', sentence(problem));
}

/** Proposed golden snapshots without an approval prevent success, on any path. */
function mayEnd(task: Task, verdict: 'success' | 'failure'): Outcome {
  const goldens = verdict === 'success' ? pendingGoldens(earlierVisits(task)) : [];
  if (goldens.length === 0) return success();
  const message =
    `golden snapshots were proposed and nobody approved them: ${listed(goldens)}. ` +
    'A gate that blocks must be approved after the validation that proposes them';
  return failed('refused', message);
}
