// `meow why`: why a step is where it is.

import { present } from '../../base/assert.ts';
import { nearest } from '../../base/nearest.ts';
import { whyView } from '../../view/why.ts';
import { paletteFor } from '../terminal.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../../app/project.ts';
import { readRun, requireStep, resolveRun, storeOf } from '../../app/runs.ts';
import { printLine } from '../output.ts';

export async function why(wanted: string, step: string): Promise<number> {
  const store = storeOf(findProject());
  const run = await readRun(store, await resolveRun(store, wanted));
  requireStep(run, step, nearest(step, run.state.steps.keys()));
  const view = present(whyView(run.state, step), `no view of step ${step}`);
  const paint = paletteFor(process.stdout);
  printLine(`${paint.bold(view.step)} is ${view.status}.`);
  for (const sentence of view.because) printLine(`  ${sentence}`);
  return EXIT.done;
}
