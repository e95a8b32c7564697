// `meow gc`: remove what ended runs left in the repository, or with a selection whole runs, and say why the rest is kept.

import { collectGarbage } from '../../app/collect-garbage.ts';
import { findProject } from '../../app/project.ts';
import { REMOVED_STATUSES, type RemovedStatus, removeRuns, type RunSelection } from '../../app/remove-runs.ts';
import { UsageError } from '../../base/errors.ts';
import { parseDuration } from '../../base/time.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printLine, printLines, warn } from '../output.ts';

interface GcOptions extends Switches<'force' | 'dryRun' | 'json' | 'logsOnly'> {
  readonly olderThan?: string;
  readonly keep?: string;
  readonly status?: readonly string[];
}

interface Verdict {
  readonly run: string;
  readonly removed: boolean;
  /** Null if unknown: what is removed from a repository. */
  readonly bytes: number | null;
  readonly reasons: readonly string[];
}

/** `runs`: only these; none means all. */
export async function gc(runs: readonly string[], options: GcOptions): Promise<number> {
  const { force, dryRun = false, json } = options;
  if (force && runs.length === 0) {
    throw new UsageError('--force needs the runs to remove', 'meow gc RUN… --force; without --force no work is lost');
  }
  const selection = selectionIn(runs, options);
  const { verdicts, failed } = selection === null ? await inRepository(runs, options) : await ofRuns(selection);
  if (json) printLine(JSON.stringify(verdicts));
  else printLines(lines(verdicts, dryRun, selection === null));
  return failed ? EXIT.failed : EXIT.done;
}

/** Null if whole runs are not to be removed. */
function selectionIn(runs: readonly string[], options: GcOptions): RunSelection | null {
  const { olderThan, keep, status, logsOnly } = options;
  if (olderThan === undefined && keep === undefined && status === undefined && logsOnly !== true) return null;
  const olderThanMs = olderThan === undefined ? null : parseDuration(olderThan);
  if (olderThan !== undefined && olderThanMs === null)
    throw new UsageError(`--older-than ${JSON.stringify(olderThan)} is not a duration`, 'for example --older-than 30d');
  if (keep !== undefined && !/^\d{1,9}$/.test(keep))
    throw new UsageError(`--keep ${JSON.stringify(keep)} is not a number`, 'for example --keep 100');
  const known = (word: string): word is RemovedStatus => REMOVED_STATUSES.some((each) => each === word);
  const wrong = status?.find((word) => !known(word));
  if (wrong !== undefined)
    throw new UsageError(`--status cannot be ${JSON.stringify(wrong)}`, `choose of ${REMOVED_STATUSES.join(', ')}`);
  return {
    runs,
    olderThanMs,
    keep: keep === undefined ? null : Number(keep),
    status: (status ?? []).filter(known),
    logsOnly: logsOnly === true,
    force: options.force === true,
    dryRun: options.dryRun === true,
  };
}

interface Verdicts {
  readonly verdicts: readonly Verdict[];
  readonly failed: boolean;
}

async function inRepository(runs: readonly string[], { force, dryRun }: GcOptions): Promise<Verdicts> {
  const request = { runs, force: force === true, dryRun: dryRun === true };
  const { verdicts, problems } = await collectGarbage(findProject(), request);
  for (const { run, message, cure } of problems) warn(`meow: ${run}: ${message}\n  ${cure}`);
  const shown = verdicts.map(({ run, isRemoved, reasons }) => ({ run, removed: isRemoved, bytes: null, reasons }));
  return { verdicts: shown, failed: problems.length > 0 };
}

async function ofRuns(selection: RunSelection): Promise<Verdicts> {
  return { verdicts: await removeRuns(findProject(), selection, Date.now()), failed: false };
}

function lines(verdicts: readonly Verdict[], dryRun: boolean, isRepository: boolean): readonly string[] {
  if (verdicts.length === 0) return ['nothing to remove'];
  const shown = verdicts.map(({ run, removed, bytes, reasons }) => {
    const size = bytes === null ? '' : ` (${bytes} bytes)`;
    if (removed) return `${run}: ${dryRun ? 'would be removed' : 'removed'}${size}`;
    return [`${run}: kept`, ...reasons.map((reason) => `  ${reason}`)].join('\n');
  });
  const kept = verdicts.find(({ removed }) => !removed);
  return kept === undefined || !isRepository
    ? shown
    : [...shown, `to remove a kept run as well: meow gc ${kept.run} --force`];
}
