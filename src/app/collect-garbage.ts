// Removes what runs left in the repository (worktrees, branches, snapshots), unless work would be lost.

import { UsageError } from '../base/errors.ts';
import { findRemains, type GcQuestion, type GcVerdict, planGc, removeRemains } from '../drivers/git/gc.ts';
import { Repository } from '../drivers/git/repository.ts';
import type { Store } from '../engine/ports.ts';
import { orThrow } from './errors.ts';
import { ownEnvironment, type Project } from './project.ts';
import { hasRun, readRun, storeOf, unlessRefused } from './runs.ts';

export type { GcVerdict } from '../drivers/git/gc.ts';

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
  // No run can have worked in it.
  if (!opened.ok && opened.error.kind === 'no-commits') return { verdicts: [], problems: [] };
  const repository = orThrow(opened);
  const found = orThrow(await findRemains(repository));
  const known = found.map(({ run }) => run);
  requireRemains(request.runs, known);
  const wanted = found.filter(({ run }) => request.runs.length === 0 || request.runs.includes(run));
  const store = storeOf(project);
  const standings = new Map(
    await Promise.all(wanted.map(async ({ run }) => [run, await standingOf(store, run)] as const)),
  );
  const question: GcQuestion = { standing: (run) => standings.get(run) ?? 'unknown', isForced: () => request.force };
  const verdicts: GcVerdict[] = [];
  const problems: GarbageResult['problems'][number][] = [];
  for (const verdict of planGc(wanted, question)) {
    const { run } = verdict;
    if (!verdict.isRemoved || request.dryRun) {
      verdicts.push(verdict);
      continue;
    }
    // Somebody may have resumed it meanwhile.
    standings.set(run, await standingOf(store, run));
    const removed = await removeRemains(repository, run, question);
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
  const read = async (): Promise<'live' | 'ended'> => {
    if ((await store.holder(run)) !== null) return 'live';
    const { state } = await readRun(store, run);
    return state.phase === 'ended' && state.end !== 'paused' ? 'ended' : 'live';
  };
  // It may be damaged or unreadable.
  return (await hasRun(store, run)) ? unlessRefused(read(), 'unknown') : 'unknown';
}
