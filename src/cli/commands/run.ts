// `meow run` and `meow resume`.

import { basename, dirname, resolve } from 'node:path';

import { hasErrors } from '../../base/diagnostic.ts';
import type { Diagnostic } from '../../base/diagnostic.ts';
import { UsageError } from '../../base/usage-error.ts';
import type { RunState } from '../../app/observer.ts';
import { resumeSession, startSession } from '../../app/run-session.ts';
import type { SessionOptions } from '../../app/run-session.ts';
import type { Store } from '../../app/runs.ts';
import { Adapters } from '../../app/adapters.ts';
import { createRun, prepareRun, refuseAdapters } from '../../app/prepare-run.ts';
import type { Allowance } from '../../app/prepare-run.ts';
import { canRedraw, paletteFor } from '../terminal.ts';
import { reportToStarter, startEngine } from '../../app/engine-process.ts';
import { EXIT } from '../exit.ts';
import { ownEnvironment } from '../../app/project.ts';
import type { Project } from '../../app/project.ts';
import { findProject } from '../../app/project.ts';
import { runInForeground } from '../foreground.ts';
import { jsonReporter } from '../reporters/json.ts';
import { plainReporter } from '../reporters/plain.ts';
import type { Reporter } from '../../app/observer.ts';
import { treeReporter } from '../reporters/tree.ts';
import { openRun, resolveRun, storeOf } from '../../app/runs.ts';
import { tolerateLostOutput, warn, printLine, printJson } from '../output.ts';
import type { Settings } from '../../app/settings.ts';
import { readSettings } from '../../app/settings.ts';
import { Signals } from '../signals.ts';
import { dryRunJson, dryRunLines } from '../../view/dry-run.ts';
import { printDiagnostics } from '../diagnostics.ts';

export interface RunOptions {
  readonly var?: readonly string[];
  readonly varJson?: readonly string[];
  readonly meta?: readonly string[];
  readonly id?: string;
  readonly detach?: true;
  readonly json?: true;
  readonly dryRun?: true;
  readonly language?: string;
  readonly adapter?: string;
  readonly resume?: string;
  readonly workflow?: string;
  readonly onlyPending?: true;
  /** False with `--no-wait`. */
  readonly wait?: boolean;
  readonly allowOutside?: true;
  readonly inPlace?: true;
  readonly maxAgents?: number;
  readonly maxTransitions?: number;
  readonly budgetUsd?: number;
  readonly budgetTokens?: number;
  /** This process is a background engine. */
  readonly asEngine?: true;
}

export async function run(path: string | null, options: RunOptions): Promise<number> {
  const wanted = options.resume ?? (options.workflow === undefined ? null : idOfStateFile(options.workflow));
  if (wanted !== null) {
    refuseBeside(path, options);
    return resume(projectOf(options), wanted, options);
  }
  if (path === null) {
    throw new UsageError('meow run needs a workflow', 'meow run PATH[#WORKFLOW]; to start with an example: meow init');
  }
  if (options.onlyPending) throw new UsageError('--only-pending is for resuming', 'meow resume ID --only-pending');
  return start(findProject(), path, options);
}

async function start(project: Project, reference: string, options: RunOptions): Promise<number> {
  const settings = readSettings(project);
  const adapters = new Adapters(project);
  const flags = { ...options, reference, allowance: allowanceIn(options) };
  const { diagnostics, ready } = await prepareRun(project, settings, adapters, flags);
  printDiagnostics(diagnostics, paletteFor(process.stderr));
  if (ready === null) return exitOfDiagnostics(diagnostics);
  const { program, request, at } = ready;
  if (options.dryRun) {
    if (options.json) printLine(JSON.stringify(dryRunJson(program, request), null, 2));
    else for (const line of dryRunLines(program, request)) printLine(line);
    return EXIT.done;
  }
  refuseAdapters(program, adapters);
  const store = storeOf(project);
  if (!options.detach) {
    return finish({ store, settings, adapters, options }, (session) => startSession(session, program, request));
  }
  return detach(store, project, request.id, options, () => createRun(store, program, request, at));
}

/** If only variables are missing, the command line is wrong and not the workflow. */
function exitOfDiagnostics(diagnostics: readonly Diagnostic[]): number {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  return errors.every(({ code }) => code === 'missing-variable') ? EXIT.usage : EXIT.failed;
}

async function resume(project: Project, wanted: string, options: RunOptions): Promise<number> {
  const store = storeOf(project);
  const id = await resolveRun(store, wanted);
  if (options.detach) {
    // Check here, so that the user sees a refusal; nobody reads the log of a background engine.
    return detach(store, project, id, options, async () => (await openRun(store, id)).close());
  }
  const settings = readSettings(project);
  printDiagnostics(settings.diagnostics, paletteFor(process.stderr));
  if (hasErrors(settings.diagnostics)) return EXIT.failed;
  const how = { retryFailed: options.onlyPending !== true, allowance: allowanceIn(options) };
  return finish({ store, settings, adapters: new Adapters(project), options }, (session) =>
    resumeSession(session, id, how),
  );
}

/** Only what the flags name. */
function allowanceIn(options: RunOptions): Partial<Allowance> {
  const { budgetUsd: usd, budgetTokens: tokens, maxTransitions: transitions, maxAgents: agents } = options;
  return {
    ...(usd === undefined ? {} : { usd }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(transitions === undefined ? {} : { transitions }),
    ...(agents === undefined ? {} : { agents }),
  };
}

interface Means {
  readonly store: Store;
  readonly settings: Settings;
  readonly adapters: Adapters;
  readonly options: RunOptions;
}

/** Drives the run to its end and reports how it ended. */
async function finish(
  { store, settings, adapters, options }: Means,
  session: (options: SessionOptions) => Promise<RunState>,
): Promise<number> {
  const reporter = reporterFor(options);
  tolerateLostOutput();
  try {
    const { state, signalStatus } = await runInForeground(
      {
        store,
        config: settings.config,
        adapters,
        reporter,
        environment: ownEnvironment(),
        waits: options.wait !== false,
        ...(options.asEngine ? { onHeld: () => reportToStarter({ kind: 'held' }) } : {}),
      },
      session,
    );
    const exit = exitOf(state, signalStatus);
    reporter.end(state, exit);
    return exit;
  } catch (error) {
    if (error instanceof UsageError) reportToStarter({ kind: 'refused', message: error.message, hint: error.hint });
    throw error;
  }
}

/** `take`: runs before the engine is started; signals that arrive meanwhile are obeyed. */
async function detach(
  store: Store,
  project: Project,
  id: string,
  options: RunOptions,
  take: () => Promise<void>,
): Promise<number> {
  const signals = new Signals();
  try {
    await take();
  } finally {
    signals.close();
  }
  if (signals.exitStatus !== null) {
    warn(`meow: stopped before an engine was started; resume the run: meow resume ${id}`);
    return signals.exitStatus;
  }
  const flags = flagsForEngine(options);
  const pid = await startEngine(id, store.files(id).localPath(''), project.meow, flags);
  if (options.json) printJson({ kind: 'run-detached', id, pid });
  else printLine(id);
  if (process.stdout.isTTY) warn(`  watch it: meow status ${id} --watch · stop it: meow stop ${id}`);
  return EXIT.done;
}

/** Flags for the background engine. A new run has its limits in the journal. */
function flagsForEngine(options: RunOptions): readonly string[] {
  const given: readonly (readonly [string, number | undefined])[] =
    options.resume === undefined && options.workflow === undefined
      ? []
      : [
          ['--budget-usd', options.budgetUsd],
          ['--budget-tokens', options.budgetTokens],
          ['--max-transitions', options.maxTransitions],
          ['--max-agents', options.maxAgents],
        ];
  return [
    ...(options.onlyPending ? ['--only-pending'] : []),
    ...(options.wait === false ? ['--no-wait'] : []),
    ...given.flatMap(([flag, value]) => (value === undefined ? [] : [flag, String(value)])),
  ];
}

export function exitOf(state: RunState, signalStatus: number | null): number {
  switch (state.end) {
    case 'done':
      return EXIT.done;
    case 'failed':
      return EXIT.failed;
    case 'stopped':
      return signalStatus ?? 143;
    case 'paused':
    case null:
      return EXIT.paused;
  }
}

function reporterFor(options: RunOptions): Reporter {
  if (options.json) return jsonReporter();
  return canRedraw(process.stdout) && !options.asEngine ? treeReporter() : plainReporter();
}

function refuseBeside(path: string | null, options: RunOptions): void {
  const beside = [
    ...(path === null ? [] : [path]),
    ...(options.var === undefined ? [] : ['--var']),
    ...(options.varJson === undefined ? [] : ['--var-json']),
    ...(options.meta === undefined ? [] : ['--meta']),
    ...(options.id === undefined ? [] : ['--id']),
    ...(options.dryRun === undefined ? [] : ['--dry-run']),
    ...(options.language === undefined ? [] : ['--language']),
    ...(options.resume !== undefined && options.workflow !== undefined ? ['--workflow'] : []),
  ];
  if (beside.length === 0) return;
  throw new UsageError(
    `a resumed run keeps its original workflow and flags: ${beside.join(', ')} cannot be given`,
    'leave it out, or start a new run: meow run PATH',
  );
}

/** `.meow/workflows/ID.yaml` → `ID`, and the project that it belongs to. */
function idOfStateFile(file: string): string {
  const id = basename(file).replace(/\.ya?ml$/, '');
  if (id === basename(file))
    throw new UsageError(`${file} is not a state file of a run`, '--workflow .meow/workflows/ID.yaml');
  return id;
}

function projectOf({ workflow }: RunOptions): Project {
  const project = findProject();
  if (workflow === undefined) return project;
  const runs = dirname(resolve(project.cwd, workflow));
  return { ...project, runs, meow: dirname(runs), exists: true };
}
