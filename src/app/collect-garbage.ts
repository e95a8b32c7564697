// Removes what runs left in the repository (worktrees, branches, snapshots), unless work would be lost.

import { UsageError } from '../base/usage-error.ts';
import { findRemains, removeRemains } from '../drivers/git/gc.ts';
import { planGc } from '../drivers/git/gc-plan.ts';
import type { GcQuestion, GcVerdict } from '../drivers/git/gc-plan.ts';
import type { GitProblem } from '../drivers/git/git-error.ts';
import { Repository } from '../drivers/git/repository.ts';
import type { RunState } from '../kernel/state.ts';
import type { Store } from '../engine/ports.ts';
import { ownEnvironment } from './project.ts';
import type { Project } from './project.ts';
import { hasRun, readRun, storeOf } from './runs.ts';

export type { GcVerdict } from '../drivers/git/gc-plan.ts';

export interface GarbageRequest {
  /** Only these; none means all. */
  readonly runs: readonly string[];
  /** Also if work is lost. */
  readonly force: boolean;
  /** Only plan. */
  readonly dryRun: boolean;
}

export interface GarbageResult {
  readonly verdicts: readonly GcVerdict[];
  readonly problems: readonly { readonly run: string; readonly message: string; readonly cure: string }[];
}

export async function collectGarbage(project: Project, request: GarbageRequest): Promise<GarbageResult> {
  const opened = await Repository.open(project.cwd, ownEnvironment());
  if (!opened.ok) {
    // No run can have worked in it.
    if (opened.error.kind === 'no-commits') return { verdicts: [], problems: [] };
    throw asUsageError(opened.error);
  }
  const found = await findRemains(opened.value);
  if (!found.ok) throw asUsageError(found.error);
  requireRemains(
    request.runs,
    found.value.map(({ run }) => run),
  );
  const wanted = found.value.filter(({ run }) => request.runs.length === 0 || request.runs.includes(run));
  const store = storeOf(project);
  const standings = new Map(
    await Promise.all(wanted.map(async ({ run }) => [run, await standingOf(store, run)] as const)),
  );
  const question: GcQuestion = {
    standing: (run) => standings.get(run) ?? 'unknown',
    isForced: () => request.force,
  };
  const verdicts: GcVerdict[] = [];
  const problems: { readonly run: string; readonly message: string; readonly cure: string }[] = [];
  for (const verdict of planGc(wanted, question)) {
    const { run } = verdict;
    if (!verdict.isRemoved || request.dryRun) {
      verdicts.push(verdict);
      continue;
    }
    // Somebody may have resumed it meanwhile.
    standings.set(run, await standingOf(store, run));
    const removed = await removeRemains(opened.value, run, question);
    if (removed.ok) verdicts.push(removed.value);
    else problems.push({ run, message: removed.error.message, cure: removed.error.cure });
  }
  return { verdicts, problems };
}

function requireRemains(runs: readonly string[], known: readonly string[]): void {
  const unknown = runs.find((run) => !known.includes(run));
  if (unknown === undefined) return;
  const hint = known.length === 0 ? 'no run has left anything' : `runs that have: ${known.join(', ')}`;
  throw new UsageError(`run ${unknown} has left nothing in this repository`, hint);
}

async function standingOf(store: Store, run: string): Promise<'live' | 'ended' | 'unknown'> {
  if (!(await hasRun(store, run))) return 'unknown';
  let state: RunState;
  try {
    if ((await store.holder(run)) !== null) return 'live';
    ({ state } = await readRun(store, run));
  } catch (error) {
    // Its journal is damaged or unreadable.
    if (error instanceof UsageError) return 'unknown';
    throw error;
  }
  return state.phase === 'ended' && state.end !== 'paused' ? 'ended' : 'live';
}

function asUsageError({ message, cure }: GitProblem): UsageError {
  return new UsageError(message, cure);
}
