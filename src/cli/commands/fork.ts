// `meow plan`: what a fork of a run would keep. The fork itself is a run: see run.ts.

import { Adapters } from '../../app/adapters.ts';
import { type OldRun, planLines, planView, plannedState, type PreparedFork, prepareFork } from '../../app/fork.ts';
import { lacksOnlyVariables } from '../../app/prepare-run.ts';
import { findProject, type Project } from '../../app/project.ts';
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
  return printPlan(project, { store, run }, prepared, json === true);
}

/** Also of a fork that is only tried: `--dry-run`. */
export async function printPlan(project: Project, old: OldRun, prepared: PreparedFork, json: boolean): Promise<number> {
  printDiagnostics(prepared.diagnostics, paletteFor(process.stderr));
  const planned = await plannedState(old, prepared);
  if (planned === null) return lacksOnlyVariables(prepared.diagnostics) ? EXIT.usage : EXIT.failed;
  const view = planView(old.run.state, planned, lineFinder(project, planned.program));
  if (json) return printResult(view);
  printLines(planLines(view));
  return EXIT.done;
}
