// `meow plan`: what a fork of a run would keep. The fork itself is a run: see run.ts.

import { Adapters } from '../../app/adapters.ts';
import { planLines, planView, plannedState, prepareFork } from '../../app/fork.ts';
import { findProject } from '../../app/project.ts';
import { readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { readSettings } from '../../app/sources.ts';
import { lineFinder } from '../../app/source-lines.ts';
import { UsageError } from '../../base/errors.ts';
import { EXIT, printLines, printResult } from '../output.ts';
import { paletteFor, printDiagnostics } from '../terminal.ts';

interface PlanOptions {
  readonly since?: string;
  readonly var?: readonly string[];
  readonly varJson?: readonly string[];
  readonly json?: true;
}

export async function plan(source: string, { since, json, ...given }: PlanOptions): Promise<number> {
  if (since === undefined) throw new UsageError('meow plan needs a run', 'meow plan PATH --since RUN');
  const project = findProject();
  const store = storeOf(project);
  const run = await readRun(store, await resolveRun(store, since));
  const context = { project, settings: readSettings(project), adapters: new Adapters(project), store };
  const prepared = await prepareFork(context, run, { ...given, source, dryRun: true, allowance: {} });
  printDiagnostics(prepared.diagnostics, paletteFor(process.stderr));
  const planned = plannedState(prepared);
  if (planned === null) return EXIT.failed;
  const view = planView(run.state, planned, lineFinder(project, planned.program));
  if (json) return printResult(view);
  printLines(planLines(view));
  return EXIT.done;
}
