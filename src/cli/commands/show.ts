// `meow show`: a run, or one of its steps, in full.

import { present } from '../../base/assert.ts';
import { nearest } from '../../base/nearest.ts';
import type { StepView } from '../../view/step.ts';
import { runView, stepView, stepViews } from '../../view/step.ts';
import { runLines, stepLines } from '../../view/step-lines.ts';
import { paletteFor } from '../terminal.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../../app/project.ts';
import type { ReadRun } from '../../app/runs.ts';
import { readRun, requireStep, resolveRun, storeOf } from '../../app/runs.ts';
import { printLine } from '../output.ts';

export interface ShowOptions {
  readonly steps?: true;
  readonly json?: true;
}

export async function show(wanted: string, step: string | null, { steps, json }: ShowOptions): Promise<number> {
  const store = storeOf(findProject());
  const run = await readRun(store, await resolveRun(store, wanted));
  const paint = paletteFor(process.stdout);
  if (step !== null) {
    const view = viewOf(run, step);
    for (const line of json ? [JSON.stringify(view, null, 2)] : stepLines(view, paint)) printLine(line);
    return EXIT.done;
  }
  const view = runView(run.state);
  const views = steps ? stepViews(run.state, run.records) : [];
  if (json) {
    printLine(JSON.stringify(steps ? { ...view, steps: views } : view, null, 2));
    return EXIT.done;
  }
  for (const line of runLines(view, paint)) printLine(line);
  for (const one of views) {
    printLine();
    for (const line of stepLines(one, paint)) printLine(line);
  }
  return EXIT.done;
}

function viewOf(run: ReadRun, step: string): StepView {
  requireStep(run, step, nearest(step, run.state.steps.keys()));
  return present(stepView(run.state, step, run.records), `no view of step ${step}`);
}
