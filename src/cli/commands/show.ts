// `meow show`: a run, or one of its steps, in full. `meow why`: why a step has its status.

import { chosenStore, type StoreChoice } from '../../app/choose-store.ts';
import { findProject } from '../../app/project.ts';
import { readRun, type ReadRun, requireStep, resolveRun, type Store } from '../../app/runs.ts';
import { shownRun } from '../../app/shown-run.ts';
import { present, UsageError } from '../../base/errors.ts';
import { sanitize } from '../../base/sanitize.ts';
import { runLines, stepLines } from '../../view/step-lines.ts';
import { runView, stepView, stepViews } from '../../view/step.ts';
import { mainOutput, mainStep } from '../../view/cause.ts';
import { type Cost, stepCost } from '../../view/usage.ts';
import { whyView } from '../../view/why.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printLine, printLines, printResult, warn } from '../output.ts';
import { paletteFor } from '../terminal.ts';

type ShowOptions = Switches<'steps' | 'json'> & StoreChoice;

export async function show(
  wanted: string,
  step: string | undefined,
  { steps, json, fleet }: ShowOptions,
): Promise<number> {
  const run = await readWanted(await chosenStore({ fleet }), wanted, step);
  const paint = paletteFor(process.stdout);
  const costOf = (id: string): Cost | null => {
    const found = run.state.steps.get(id);
    return found === undefined ? null : stepCost(found);
  };
  if (step !== undefined) {
    const view = present(stepView(run.state, step, run.records), `no view of step ${step}`);
    if (json) return printResult(view);
    printLines(stepLines(view, costOf(step), paint));
    return EXIT.done;
  }
  const view = runView(run.state);
  const views = steps ? stepViews(run.state, run.records) : [];
  if (json) return printResult(steps ? { ...view, steps: views } : view);
  const lines = views.flatMap((one) => ['', ...stepLines(one, costOf(one.id), paint)]);
  printLines([...runLines(view, run.state.cost, paint), ...lines]);
  return EXIT.done;
}

export async function why(wanted: string, named: string | undefined, options: StoreChoice): Promise<number> {
  const store = await chosenStore(options);
  const run = await readWanted(store, wanted, named);
  const step = named ?? chosenStep(run, 'status');
  const { state, interrupted } = await shownRun(store, run);
  const { status, because } = present(whyView(state, step, interrupted), `no view of step ${step}`);
  printLine(`${paletteFor(process.stdout).bold(step)} is ${status}.`);
  for (const sentence of because) printLine(`  ${sentence}`);
  if (state.fork !== null) await printWhyKept(run, step);
  return EXIT.done;
}

async function printWhyKept({ program, records }: ReadRun, step: string): Promise<void> {
  const [{ whyKept }, { lineFinder }] = [await import('../../app/fork.ts'), await import('../../app/source-lines.ts')];
  const sentence = whyKept(program, records, step, lineFinder(findProject(), program));
  if (sentence !== null) printLine(`  ${sanitize(sentence)}`);
}

/**
 * The step that `why` shows if none is named, and `logs` if it has output: otherwise a step that has. Says on stderr which
 * it is.
 */
export function chosenStep({ id, state }: Pick<ReadRun, 'id' | 'state'>, wants: 'status' | 'output'): string {
  const main = mainStep(state);
  if (main === null) throw new UsageError(`run ${id} has no steps`, `meow status ${id} shows it`);
  const step = (wants === 'output' ? mainOutput(state) : null) ?? main;
  const instead = step === main ? '' : `, since ${main.id} (${main.status}) has no output of its own`;
  warn(`step ${step.id} (${step.status})${instead}; for another one, name it: meow show ${id} --steps`);
  return step.id;
}

async function readWanted(store: Store, wanted: string, step: string | undefined): Promise<ReadRun> {
  const run = await readRun(store, await resolveRun(store, wanted));
  if (step !== undefined) requireStep(run, step);
  return run;
}
