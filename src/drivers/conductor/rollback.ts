// Puts the worktree back as it was before the run began, or before the latest turn of an agent. What is undone stays
// reachable by a ref. It happens once for a visit, however often it is asked for (git/restore.ts, R2); what it refuses, it
// has not begun.

import { dirname, join } from 'node:path';
import { success } from '../../ir/effect.ts';
import type { Effect, Outcome } from '../../ir/effect.ts';
import type { RollbackSpec } from '../../ir/conducted.ts';
import { stepFolder } from '../step-folder.ts';
import { makeFolder } from '../../sys/private-file.ts';
import { visitFolder } from './artifacts.ts';
import type { VisitFolder } from './artifacts.ts';
import { earlierVisits, failed, mechanical, withOutputs } from './asking.ts';
import type { OpcodeContext, Perform, Performance, Visit } from './context.ts';
import { leadBackAfter } from './looks.ts';
import { PRE_RUN, sentence, snapshotName } from './workspace.ts';

export const performRollback: Perform<RollbackSpec> = async (context, performance) => {
  const visit = visitFolder(context, performance.effect);
  const outcome = await rollBack(context, performance, visit);
  visit.writeManifest({ opcode: 'ROLLBACK', outcome: mechanical(outcome, null) });
  return withOutputs(outcome, { artifacts: visit.artifacts });
};

async function rollBack(
  context: OpcodeContext,
  { effect, spec }: Performance<RollbackSpec>,
  visit: VisitFolder,
): Promise<Outcome> {
  const opened = await context.workspace.open();
  if (!opened.ok) return failed('refused', opened.error);
  const { git } = opened.value;
  if (git === null) return failed('refused', 'the run works without git, so there is nothing to go back to');
  const history = earlierVisits(context, effect);
  const worker = history.findLast(({ kind }) => kind === 'work');
  if (spec.target === 'pre_step' && worker === undefined) {
    return failed('refused', 'no agent has worked yet, so there is no step to go back before; roll back to pre_run');
  }
  const to = spec.target === 'pre_run' || worker === undefined ? PRE_RUN : snapshotName(worker.id);
  const led = leadBackAfter(
    git,
    context.run,
    effect,
    history.map(({ id }) => id),
  );
  if (!led.ok) return failed('refused', sentence(led.error));
  const folder = patchFolder(context, effect);
  const restored = await git.restore({
    id: effect.step,
    to,
    protectedBranches: context.settings.protectedBranches,
    lastCommit: lastHead(history),
    before: join(folder, BEFORE),
    after: join(folder, AFTER),
  });
  if (!restored.ok) return failed('refused', `the run cannot be rolled back: ${sentence(restored.error)}`);
  const now = await git.snapshot('now');
  const status = await git.status();
  if (!now.ok) return failed('refused', sentence(now.error));
  if (!status.ok) return failed('refused', sentence(status.error));
  const [undone = null] = restored.value.undone;
  const outputs = {
    target: spec.target,
    before_diff: visit.copy('workspace_diff', BEFORE, join(folder, BEFORE)).path,
    after_diff: visit.copy('workspace_diff', AFTER, join(folder, AFTER)).path,
    undone_ref: undone === null ? null : git.refOf(undone),
    restored_tree: now.value.tree,
    head: now.value.head,
    moved_aside: restored.value.movedAside.slice(0, PATHS_MAX),
    kept_in: restored.value.keptIn,
  };
  visit.writeJson('workspace_status', 'workspace_status.json', status.value);
  return success(outputs, { route: 'completed' });
}

const BEFORE = 'before.patch';
const AFTER = 'after.patch';
const PATHS_MAX = 200;

/** They are written once, and a later life of the engine finds them: not where an agent could get at them. */
function patchFolder({ run }: OpcodeContext, { step }: Effect): string {
  const folder = dirname(stepFolder(run.files, step, 1).path);
  makeFolder(folder);
  return folder;
}

/** Where HEAD was when the latest that may have moved it was done; null where that one does not tell. */
function lastHead(history: readonly Visit[]): string | null {
  const head = history.findLast(({ kind }) => kind !== 'gate' && kind !== 'halt')?.outputs['head'];
  return typeof head === 'string' ? head : null;
}
