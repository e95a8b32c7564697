// `meow gc`: removes what runs have left in the repository (worktrees, branches, snapshots), where nothing is lost by it, and
// says why the rest is kept.

import { UsageError } from '../../base/usage-error.ts';
import { findRemains, removeRemains } from '../../drivers/git/gc.ts';
import { planGc } from '../../drivers/git/gc-plan.ts';
import type { GcQuestion, GcVerdict } from '../../drivers/git/gc-plan.ts';
import type { GitProblem } from '../../drivers/git/git-error.ts';
import { Repository } from '../../drivers/git/repository.ts';
import type { RunState } from '../../kernel/state.ts';
import type { Store } from '../../engine/ports.ts';
import { EXIT } from '../exit.ts';
import { ownEnvironment } from '../../app/own-environment.ts';
import { findProject } from '../../app/project.ts';
import { hasRun, readRun, storeOf } from '../../app/runs.ts';
import { complain, say } from '../output.ts';

export interface GcOptions {
  readonly force?: true;
  readonly dryRun?: true;
  readonly json?: true;
}

/** `runs`: those alone; none are all. */
export async function gc(runs: readonly string[], { force, dryRun, json }: GcOptions): Promise<number> {
  if (force && runs.length === 0) {
    throw new UsageError('--force is for runs that are named', 'meow gc RUN… --force; without it nothing is lost');
  }
  const project = findProject();
  const opened = await Repository.open(project.cwd, ownEnvironment());
  if (!opened.ok) {
    // Nothing can have been run in it.
    if (opened.error.kind === 'no-commits') return nothing(json === true);
    throw refusal(opened.error);
  }
  const found = await findRemains(opened.value);
  if (!found.ok) throw refusal(found.error);
  const named = new Set(runs);
  const unknown = runs.find((run) => !found.value.some((remains) => remains.run === run));
  if (unknown !== undefined) {
    const left = found.value.map(({ run }) => run).join(', ');
    const hint = left === '' ? 'no run has left anything' : `runs that have: ${left}`;
    throw new UsageError(`run ${unknown} has left nothing in this repository`, hint);
  }
  const wanted = found.value.filter(({ run }) => named.size === 0 || named.has(run));
  const store = storeOf(project);
  const standings = new Map(
    await Promise.all(wanted.map(async ({ run }) => [run, await standingOf(store, run)] as const)),
  );
  const question: GcQuestion = {
    standing: (run) => standings.get(run) ?? 'unknown',
    isForced: () => force === true,
  };
  const verdicts: GcVerdict[] = [];
  let problems = 0;
  for (const verdict of planGc(wanted, question)) {
    if (!verdict.isRemoved || dryRun === true) {
      verdicts.push(verdict);
      continue;
    }
    // It may have been taken up meanwhile.
    standings.set(verdict.run, await standingOf(store, verdict.run));
    const removed = await removeRemains(opened.value, verdict.run, question);
    if (removed.ok) verdicts.push(removed.value);
    else {
      problems += 1;
      complain(`meow: ${verdict.run}: ${removed.error.message}\n  ${removed.error.cure}`);
    }
  }
  if (json) say(JSON.stringify(verdicts.map(({ run, isRemoved, reasons }) => ({ run, removed: isRemoved, reasons }))));
  else for (const line of lines(verdicts, dryRun === true)) say(line);
  return problems > 0 ? EXIT.failed : EXIT.done;
}

function nothing(json: boolean): number {
  say(json ? '[]' : 'nothing to remove');
  return EXIT.done;
}

function lines(verdicts: readonly GcVerdict[], isRehearsal: boolean): readonly string[] {
  if (verdicts.length === 0) return ['nothing to remove'];
  const told = verdicts.map(({ run, isRemoved, reasons }) => {
    if (isRemoved) return `${run}: ${isRehearsal ? 'would be removed' : 'removed'}`;
    return [`${run}: kept`, ...reasons.map((reason) => `  ${reason}`)].join('\n');
  });
  const lossy = verdicts.find(({ isRemoved }) => !isRemoved);
  return lossy === undefined ? told : [...told, `what is kept goes with: meow gc ${lossy.run} --force`];
}

async function standingOf(store: Store, run: string): Promise<'live' | 'ended' | 'unknown'> {
  if (!(await hasRun(store, run))) return 'unknown';
  let state: RunState;
  try {
    if ((await store.holder(run)) !== null) return 'live';
    ({ state } = await readRun(store, run));
  } catch (error) {
    // Its journal is damaged, or may not be read: nobody knows.
    if (error instanceof UsageError) return 'unknown';
    throw error;
  }
  return state.phase === 'ended' && state.end !== 'paused' ? 'ended' : 'live';
}

function refusal({ message, cure }: GitProblem): UsageError {
  return new UsageError(message, cure);
}
