// `meow diff`: what differs between two runs.

import { findProject } from '../../app/project.ts';
import { readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { runDiffLines } from '../../view/run-diff-lines.ts';
import { runDiff } from '../../view/run-diff.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printLines, printResult } from '../output.ts';
import { paletteFor } from '../terminal.ts';

/** Exits with 0 whether they differ or not. */
export async function diff(wantedA: string, wantedB: string, { json }: Switches<'json'>): Promise<number> {
  const store = storeOf(findProject());
  const a = await readRun(store, await resolveRun(store, wantedA));
  const b = await readRun(store, await resolveRun(store, wantedB));
  if (json) return printResult(runDiff(a.state, b.state, Date.now()));
  printLines(runDiffLines(a.state, b.state, Date.now(), paletteFor(process.stdout)));
  return EXIT.done;
}
