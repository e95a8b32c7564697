// What a run, or one visit of a step, has changed in its worktree, as a patch that people read. Secrets in it are masked.

import { type Before, startFacts } from '../drivers/conductor/workspace.ts';
import { Repository } from '../drivers/git/repository.ts';
import type { RunState } from '../kernel/state.ts';
import type { Redactor } from '../sys/secrets.ts';
import { visitsOf } from '../view/visits.ts';
import { ownEnvironment } from './project.ts';
import { workspaceOf } from './workspace.ts';

export interface RunPatch {
  /** Null: there is nothing to compare. `message` says why. */
  readonly text: string | null;
  readonly truncated: boolean;
  readonly message: string | null;
}

const PATCH_BYTES_MAX = 1 << 20;
/** Nothing of the repository's configuration decides what is printed, and no program of it is run. */
const DIFF = ['diff-tree', '-r', '-p', '-M', '--no-ext-diff', '--no-textconv', '--no-color'];

/** `step`: the visit that it belongs to; null: the whole run. */
export async function runPatch(state: RunState, step: string | null, redactor: Redactor): Promise<RunPatch> {
  const workspace = await workspaceOf(state);
  if (workspace === null || state.request === null)
    return nothing('The run has no worktree of its own, so nothing can be compared.');
  const trees = step === null ? { from: workspace.from, to: workspace.tree } : visitTrees(state, step, workspace.tree);
  if (trees === null) return nothing('No snapshot was taken before this step: only visits in a worktree have one.');
  const opened = await Repository.open(state.request.cwd, ownEnvironment());
  if (!opened.ok) return nothing(`The repository cannot be read: ${opened.error.message}`);
  const { git, path, gitDir, commonDir } = opened.value.info;
  const answer = await git.inTree(path, gitDir, commonDir).ask([...DIFF, trees.from, trees.to, '--']);
  if (answer.status !== 0) return nothing('The objects of git that it compares are gone.');
  // More than is shown, so that the cut shows no part of a secret.
  const masked = redactor.redactBytes(answer.stdout.subarray(0, 2 * PATCH_BYTES_MAX));
  const text = masked.subarray(0, PATCH_BYTES_MAX).toString('utf8');
  if (text === '') return nothing('Nothing has changed.');
  return { text, truncated: answer.stdout.length > PATCH_BYTES_MAX, message: null };
}

function nothing(message: string): RunPatch {
  return { text: null, truncated: false, message };
}

/** From the snapshot before the visit to that before the next one, or to the present tree. */
function visitTrees(state: RunState, step: string, present: string): { readonly from: string; to: string } | null {
  const snapshots = visitsOf(state.steps.values()).flatMap(({ id }) => {
    const { outputs = {}, kept = [], startedAt = null } = state.steps.get(`${id}.snapshot`) ?? {};
    const before = kept.includes('before') ? null : ((outputs['before'] ?? null) as Before | null);
    return before === null || startFacts(before) === null ? [] : [{ id, tree: before.tree, at: startedAt ?? 0 }];
  });
  const inOrder = snapshots.toSorted((a, b) => a.at - b.at);
  const index = inOrder.findIndex(({ id }) => step === id || step.startsWith(`${id}.`));
  const found = inOrder[index];
  return found === undefined ? null : { from: found.tree, to: inOrder[index + 1]?.tree ?? present };
}
