// `meow gc`: remove what ended runs left in the repository, and say why the rest is kept.

import { collectGarbage, type GcVerdict } from '../../app/collect-garbage.ts';
import { findProject } from '../../app/project.ts';
import { UsageError } from '../../base/errors.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printLine, printLines, warn } from '../output.ts';

type GcOptions = Switches<'force' | 'dryRun' | 'json'>;

/** `runs`: only these; none means all. */
export async function gc(runs: readonly string[], { force, dryRun, json }: GcOptions): Promise<number> {
  if (force && runs.length === 0) {
    throw new UsageError('--force needs the runs to remove', 'meow gc RUN… --force; without --force no work is lost');
  }
  const request = { runs, force: force === true, dryRun: dryRun === true };
  const { verdicts, problems } = await collectGarbage(findProject(), request);
  for (const { run, message, cure } of problems) warn(`meow: ${run}: ${message}\n  ${cure}`);
  if (json)
    printLine(JSON.stringify(verdicts.map(({ run, isRemoved, reasons }) => ({ run, removed: isRemoved, reasons }))));
  else printLines(lines(verdicts, request.dryRun));
  return problems.length > 0 ? EXIT.failed : EXIT.done;
}

function lines(verdicts: readonly GcVerdict[], dryRun: boolean): readonly string[] {
  if (verdicts.length === 0) return ['nothing to remove'];
  const shown = verdicts.map(({ run, isRemoved, reasons }) => {
    if (isRemoved) return `${run}: ${dryRun ? 'would be removed' : 'removed'}`;
    return [`${run}: kept`, ...reasons.map((reason) => `  ${reason}`)].join('\n');
  });
  const kept = verdicts.find(({ isRemoved }) => !isRemoved);
  return kept === undefined ? shown : [...shown, `to remove a kept run as well: meow gc ${kept.run} --force`];
}
