// `meow show`: a run, or one of its steps, in full. `meow why`: why a step has its status.

import { findProject } from '../../app/project.ts';
import { readRun, type ReadRun, requireStep, resolveRun, type Store, storeOf } from '../../app/runs.ts';
import { shownRun } from '../../app/shown-run.ts';
import { present } from '../../base/errors.ts';
import { nearest } from '../../base/names.ts';
import { runLines, stepLines } from '../../view/step-lines.ts';
import { runView, stepView, stepViews } from '../../view/step.ts';
import { whyView } from '../../view/why.ts';
import type { Switches } from '../flags.ts';
import { chosenStep } from '../chosen-step.ts';
import { EXIT, printLine } from '../output.ts';
import { paletteFor } from '../terminal.ts';

type ShowOptions = Switches<'steps' | 'json'>;

export async function show(wanted: string, step: string | undefined, { steps, json }: ShowOptions): Promise<number> {
  const run = await readWanted(storeOf(findProject()), wanted, step);
  const paint = paletteFor(process.stdout);
  if (step !== undefined) {
    const view = present(stepView(run.state, step, run.records), `no view of step ${step}`);
    for (const line of json ? [JSON.stringify(view, null, 2)] : stepLines(view, paint)) printLine(line);
    return EXIT.done;
  }
  const view = runView(run.state);
  const views = steps ? stepViews(run.state, run.records) : [];
  if (json) {
    printLine(JSON.stringify(steps ? { ...view, steps: views } : view, null, 2));
    return EXIT.done;
  }
  const lines = [...runLines(view, paint), ...views.flatMap((one) => ['', ...stepLines(one, paint)])];
  for (const line of lines) printLine(line);
  return EXIT.done;
}

export async function why(wanted: string, named: string | undefined): Promise<number> {
  const store = storeOf(findProject());
  const run = await readWanted(store, wanted, named);
  const step = named ?? chosenStep(run);
  const { state, interrupted } = await shownRun(store, run);
  const { status, because } = present(whyView(state, step, interrupted), `no view of step ${step}`);
  printLine(`${paletteFor(process.stdout).bold(step)} is ${status}.`);
  for (const sentence of because) printLine(`  ${sentence}`);
  return EXIT.done;
}

/** The run, which has the step if one is named. */
async function readWanted(store: Store, wanted: string, step: string | undefined): Promise<ReadRun> {
  const run = await readRun(store, await resolveRun(store, wanted));
  if (step !== undefined) requireStep(run, step, nearest(step, run.state.steps.keys()));
  return run;
}
