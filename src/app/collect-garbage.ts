// Removes what runs left in the repository (worktrees, branches, snapshots), unless work would be lost.

import { dirname } from 'node:path';

import { UsageError } from '../base/errors.ts';
import {
  findRemains,
  findRuns,
  type GcQuestion,
  type GcVerdict,
  judge,
  type KnownRun,
  removeRemains,
} from '../drivers/git/gc.ts';
import type { GitProblem } from '../drivers/git/git.ts';
import { Repository } from '../drivers/git/repository.ts';
import type { Store } from '../engine/ports.ts';
import { orThrow } from './errors.ts';
import { ownEnvironment, type Project } from './project.ts';
import { hasRun, readRun, storeOf, unlessRefused } from './runs.ts';
import { knownRun } from './workspace.ts';

export type { GcVerdict } from '../drivers/git/gc.ts';

export interface GarbageRequest {
  /** Only these; none means all. */
  readonly runs: readonly string[];
  /** Also if work is lost. */
  readonly force: boolean;
  readonly dryRun: boolean;
}

export interface GarbageResult {
  readonly verdicts: readonly GcVerdict[];
  readonly problems: readonly { readonly run: string; readonly message: string; readonly cure: string }[];
}

export async function collectGarbage(project: Project, request: GarbageRequest): Promise<GarbageResult> {
  const opened = await Repository.open(project.cwd, ownEnvironment());
  // No run can have worked in a repository without a commit.
  if (!opened.ok && opened.error.kind === 'no-commits') return { verdicts: [], problems: [] };
  const repository = orThrow(opened);
  const found = orThrow(await findRuns(repository));
  requireRemains(request.runs, found);
  const wanted = found.filter((run) => request.runs.length === 0 || request.runs.includes(run));
  const store = storeOf(project);
  const verdicts: GcVerdict[] = [];
  const problems: GarbageResult['problems'][number][] = [];
  for (const run of wanted) {
    const failed = ({ message, cure }: GitProblem): unknown => problems.push({ run, message, cure });
    const known = await knownFrom(project, store, run);
    const remains = await findRemains(repository, known);
    if (!remains.ok) {
      failed(remains.error);
      continue;
    }
    const verdict = judge(remains.value, await questionOf(store, run, request));
    if (!verdict.isRemoved || request.dryRun) {
      verdicts.push(verdict);
      continue;
    }
    // Somebody may have resumed it meanwhile.
    const removed = await removeRemains(repository, known, await questionOf(store, run, request));
    if (removed.ok) verdicts.push(removed.value);
    else failed(removed.error);
  }
  return { verdicts, problems };
}

async function questionOf(store: Store, run: string, { force }: GarbageRequest): Promise<GcQuestion> {
  const standing = await standingOf(store, run);
  return { standing: () => standing, isForced: () => force };
}

/** What is known about a run: from its journal, if it has a readable one. */
async function knownFrom(project: Project, store: Store, run: string): Promise<KnownRun> {
  const state = (await hasRun(store, run)) ? await unlessRefused(readRun(store, run), null) : null;
  return knownRun(run, dirname(project.meow), state?.state ?? null);
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
