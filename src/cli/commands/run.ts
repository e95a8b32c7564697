// `meow run` and `meow resume`.

import { basename, dirname, resolve } from 'node:path';

import { Adapters } from '../../app/adapters.ts';
import { reportToStarter, startEngine } from '../../app/engine-process.ts';
import type { LiveRun, Reporter, RunState } from '../../app/observer.ts';
import {
  lacksOnlyVariables,
  type Allowance,
  createRun,
  type Extra,
  prepareRun,
  type Fork,
  type PreparedRun,
  claimPermissionNote,
  refuseAdapters,
  type RunFlags,
  startsRealAgents,
} from '../../app/prepare-run.ts';
import { findProject, ownEnvironment, type Project } from '../../app/project.ts';
import { resumeSession, type SessionOptions, startSession } from '../../app/run-session.ts';
import { openRun, readRun, type ReadRun, resolveRun, type Store, storeOf } from '../../app/runs.ts';
import { changedSources, readSettings, type Settings, shownPath } from '../../app/sources.ts';
import { describeWorkspace } from '../../app/workspace.ts';
import { UsageError } from '../../base/errors.ts';
import { sanitize } from '../../base/sanitize.ts';
import { hasErrors } from '../../base/source.ts';
import { dryRunJson, dryRunLines } from '../../view/dry-run.ts';
import { plainPalette } from '../../view/row.ts';
import { runInForeground, Signals } from '../foreground.ts';
import { EXIT, printJson, printLine, printLines, printResult, tolerateLostOutput, warn } from '../output.ts';
import { type DescribeWork, jsonReporter, plainReporter, treeReporter } from '../reporters.ts';
import { canRedraw, paletteFor, printDiagnostics } from '../terminal.ts';

interface RunOptions extends Omit<RunFlags, 'reference' | 'allowance'> {
  readonly detach?: true;
  readonly json?: true;
  readonly resume?: string;
  readonly workflow?: string;
  readonly onlyPending?: true;
  /** False with `--no-wait`. */
  readonly wait?: boolean;
  readonly maxAgents?: number;
  readonly maxTransitions?: number;
  readonly budgetUsd?: number;
  readonly budgetTokens?: number;
  readonly extraUsd?: number;
  readonly extraTokens?: number;
  readonly maxDepth?: number;
  readonly maxSteps?: number;
  readonly asEngine?: true;
  readonly varStdin?: string;
  /** A worker shall drive the run. */
  readonly fleet?: true;
}

export async function run(path: string | undefined, options: RunOptions): Promise<number> {
  const wanted = options.resume ?? (options.workflow === undefined ? null : idOfStateFile(options.workflow));
  if (wanted !== null) {
    refuseBeside(path, options);
    return resumeIn(projectOf(options), wanted, options);
  }
  if (path === undefined) {
    throw new UsageError('meow run needs a workflow', 'meow run PATH[#WORKFLOW]; to start with an example: meow init');
  }
  if (options.onlyPending) throw new UsageError('--only-pending is for resuming', 'meow resume ID --only-pending');
  if (options.extraUsd !== undefined || options.extraTokens !== undefined)
    throw new UsageError('--extra-usd and --extra-tokens are for resuming', 'a new run has its budget: --budget-usd X');
  return start(findProject(), path, options);
}

export async function resume(
  id: string,
  { reload, fleet, here, ...options }: RunOptions & { readonly reload?: true; readonly here?: true },
): Promise<number> {
  if (fleet) return (await import('./fleet.ts')).resumeInFleet(id, { reload, here, ...options });
  if (here) throw new UsageError('--here is for runs of a fleet', `meow resume ${id} --fleet --here`);
  if (reload) {
    if (options.extraUsd !== undefined || options.extraTokens !== undefined)
      throw new UsageError('--extra-usd and --extra-tokens raise the budgets of the run itself', 'leave out --reload');
    return fork(id, options, true);
  }
  return run(undefined, { ...options, resume: id });
}

/** A fork of a run. `reload`: with its file as it is now. */
export async function fork(wanted: string, options: ForkOptions, reload = false): Promise<number> {
  const project = findProject();
  const store = storeOf(project);
  const old = await readRun(store, await resolveRun(store, wanted));
  const settings = settingsFor(project, options);
  const adapters = new Adapters(project);
  // The name of a run's workflow counts in the folder in which the run was started.
  const context = {
    project: { ...project, ...(reload ? { cwd: cwdOf(old, project) } : {}) },
    settings,
    adapters,
    store,
  };
  const source = reload ? { source: old.state.request?.given?.reference ?? old.program.source.name } : {};
  const flags = { ...options, ...source, allowance: allowanceIn(options) };
  const { artifactsOf, prepareFork, withKeptFiles } = await import('../../app/fork.ts');
  const prepared = await prepareFork(context, old, flags);
  if (options.dryRun)
    return (await import('./fork.ts')).printPlan(context.project, { store, run: old }, prepared, options.json === true);
  const kept = withKeptFiles(store, prepared.fork, artifactsOf(project, old));
  return startPrepared({ project, settings, adapters }, prepared, options, kept);
}

function cwdOf({ state }: ReadRun, project: Project): string {
  return state.request?.cwd ?? project.cwd;
}

interface ForkOptions extends RunOptions {
  readonly from?: readonly string[];
  readonly source?: string;
}

async function start(project: Project, reference: string, options: RunOptions): Promise<number> {
  const settings = settingsFor(project, options);
  const adapters = new Adapters(project);
  const read = options.varStdin === undefined ? [] : [`${options.varStdin}=${await readStdin()}`];
  const variables = [...(options.var ?? []), ...read];
  const flags = { ...options, var: variables, reference, allowance: allowanceIn(options) };
  const prepared = await prepareRun(project, settings, adapters, flags);
  return startPrepared({ project, settings, adapters }, prepared, options, storeOf(project));
}

async function readStdin(): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of process.stdin) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('utf8');
}

async function startPrepared(
  {
    project,
    settings,
    adapters,
  }: { readonly project: Project; readonly settings: Settings; readonly adapters: Adapters },
  { diagnostics, ready, fork: kept = null }: PreparedRun & { readonly fork?: Fork | null },
  options: RunOptions,
  store: Store,
): Promise<number> {
  printDiagnostics(diagnostics, paletteFor(process.stderr));
  if (ready === null) return lacksOnlyVariables(diagnostics) ? EXIT.usage : EXIT.failed;
  const { program, request, at } = ready;
  if (options.dryRun) {
    if (options.json) return printResult(dryRunJson(program, request));
    printLines(dryRunLines(program, request));
    return EXIT.done;
  }
  const { permissions = null } = request;
  if (options.fleet) return startInFleet(ready, options);
  refuseAdapters(program, adapters, { channel: settings.config.channel, permissions });
  const isUnasked = permissions === null && process.stderr.isTTY && startsRealAgents(program, adapters);
  if (isUnasked && claimPermissionNote(project)) warn(UNASKED);
  if (options.detach) {
    return detach(store, project, request.id, options, () => createRun(store, program, request, at, kept));
  }
  const parts = { store, config: settings.config, adapters };
  return finish(parts, options, (session) => startSession(session, program, request, kept));
}

async function startInFleet(
  { program, request, at }: NonNullable<PreparedRun['ready']>,
  options: RunOptions,
): Promise<number> {
  if (options.detach)
    throw new UsageError('--detach does not go with --fleet', 'leave it out: a worker drives the run');
  const { fleetStore } = await import('../../app/fleet-stores.ts');
  const store = fleetStore();
  await createRun(store, program, request, at);
  await store.close();
  if (options.json) printJson({ kind: 'run-created', id: request.id });
  else printLine(request.id);
  if (process.stdout.isTTY) warn(`  a worker drives it: meow worker · watch it: meow status ${request.id} --fleet`);
  return EXIT.done;
}

const UNASKED = `meow: agents of this run may do what you may, without asking: run commands, change and send files
  --permissions edits or ask makes them ask, and so does [agents] permissions in .meow/config.toml`;

async function resumeIn(project: Project, wanted: string, options: RunOptions): Promise<number> {
  const store = storeOf(project);
  const id = await resolveRun(store, wanted);
  if (options.detach) {
    // Check here, so that the user sees a refusal; nobody reads the log of a background engine.
    return detach(store, project, id, options, async () => {
      const run = await openRun(store, id);
      await run.close();
      warnOfChanges(project, id, run.program);
    });
  }
  const settings = settingsFor(project, options);
  printDiagnostics(settings.diagnostics, paletteFor(process.stderr));
  if (hasErrors(settings.diagnostics)) return EXIT.failed;
  const { limits } = settings.config;
  const how = {
    retryFailed: options.onlyPending !== true,
    allowance: allowanceIn(options),
    limits,
    ...extraIn(options),
  };
  const parts = { store, config: settings.config, adapters: new Adapters(project) };
  const onHeld = ({ state }: LiveRun): void => warnOfChanges(project, id, state.program);
  return finish(parts, options, (session) => resumeSession(session, id, how), onHeld);
}

function warnOfChanges(project: Project, id: string, program: RunState['program']): void {
  const { compiled, scripts } = changedSources(program);
  const warnOf = (paths: readonly string[], effect: string): void => {
    if (paths.length > 0) warn(`meow: ${changedText(project, paths)} changed since the run began; ${effect}`);
  };
  warnOf(
    compiled,
    `it continues with the workflow that it started with; to use the new text: meow resume ${id} --reload`,
  );
  warnOf(scripts, 'scripts are read when they run, so the new text takes effect');
}

/** `a.md, b.md and 2 more have`. */
function changedText(project: Project, paths: readonly string[]): string {
  const changed = paths.map((path) => sanitize(shownPath(project, path)));
  const last = changed.length > CHANGED_SHOWN_MAX ? `${changed.length - CHANGED_SHOWN_MAX + 1} more` : changed.at(-1);
  const files = [changed.slice(0, Math.min(changed.length, CHANGED_SHOWN_MAX) - 1).join(', '), last];
  return `${files.filter(Boolean).join(' and ')} ${changed.length === 1 ? 'has' : 'have'}`;
}

const CHANGED_SHOWN_MAX = 3;

/** The configuration, with the limits that the flags name. */
function settingsFor(project: Project, options: RunOptions): Settings {
  const settings = readSettings(project);
  const limits = { ...settings.config.limits };
  for (const { limit, option } of GROWTH_LIMITS) limits[limit] = options[option] ?? limits[limit];
  return { ...settings, config: { ...settings.config, limits } };
}

const GROWTH_LIMITS = [
  { limit: 'expansionDepthMax', option: 'maxDepth', flag: '--max-depth' },
  { limit: 'stepsMax', option: 'maxSteps', flag: '--max-steps' },
] as const;

const LIMITS = [
  { limit: 'usd', option: 'budgetUsd', flag: '--budget-usd' },
  { limit: 'tokens', option: 'budgetTokens', flag: '--budget-tokens' },
  { limit: 'transitions', option: 'maxTransitions', flag: '--max-transitions' },
  { limit: 'agents', option: 'maxAgents', flag: '--max-agents' },
] as const;

const EXTRAS = [
  { option: 'extraUsd', flag: '--extra-usd' },
  { option: 'extraTokens', flag: '--extra-tokens' },
] as const;

/** Only the limits that the flags name. */
function allowanceIn(options: RunOptions): Partial<Allowance> {
  const given = LIMITS.filter(({ option }) => options[option] !== undefined);
  return Object.fromEntries(given.map(({ limit, option }) => [limit, options[option] ?? null]));
}

function extraIn({ extraUsd, extraTokens }: RunOptions): { readonly extra?: Partial<Extra> } {
  if (extraUsd === undefined && extraTokens === undefined) return {};
  return { extra: { usd: extraUsd ?? 0, tokens: extraTokens ?? 0 } };
}

async function finish(
  parts: Pick<SessionOptions, 'store' | 'config' | 'adapters'>,
  options: RunOptions,
  session: (options: SessionOptions) => Promise<RunState>,
  onHeld: (run: LiveRun) => void = () => {},
): Promise<number> {
  const reporter = reporterFor(options);
  tolerateLostOutput();
  try {
    const { state, signalStatus } = await runInForeground(
      {
        ...parts,
        reporter,
        environment: ownEnvironment(),
        waits: options.wait !== false,
        onHeld(run) {
          onHeld(run);
          if (options.asEngine) reportToStarter({ kind: 'held' });
        },
      },
      session,
    );
    const exit = state.end === 'stopped' ? (signalStatus ?? 143) : EXIT[state.end ?? 'paused'];
    const palette = options.asEngine ? plainPalette : paletteFor(process.stdout);
    const work = options.json ? [] : await describeWorkspace(state, palette, findProject().cwd);
    reporter.end(state, exit, work);
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
  const pid = await startEngine(id, store.files(id).localPath(''), project.meow, flagsForEngine(options));
  if (options.json) printJson({ kind: 'run-detached', id, pid });
  else printLine(id);
  if (process.stdout.isTTY) warn(`  watch it: meow status ${id} --watch · stop it: meow stop ${id}`);
  return EXIT.done;
}

/** Flags for the background engine. A new run has its allowance in the journal. */
function flagsForEngine(options: RunOptions): readonly string[] {
  const isNew = options.resume === undefined && options.workflow === undefined;
  return [
    ...(options.onlyPending ? ['--only-pending'] : []),
    ...(options.wait === false ? ['--no-wait'] : []),
    ...[...(isNew ? [] : [...LIMITS, ...EXTRAS]), ...GROWTH_LIMITS].flatMap(({ option, flag }) =>
      options[option] === undefined ? [] : [flag, String(options[option])],
    ),
  ];
}

function reporterFor(options: RunOptions): Reporter {
  if (options.json) return jsonReporter();
  const describe: DescribeWork = (state, palette) => describeWorkspace(state, palette, findProject().cwd);
  // The log of a background engine is a file, whatever the environment says about colours.
  if (options.asEngine) return plainReporter(plainPalette, describe);
  return canRedraw(process.stdout) ? treeReporter(describe) : plainReporter(paletteFor(process.stdout), describe);
}

function refuseBeside(path: string | undefined, options: RunOptions): void {
  const flags = {
    '--var': options.var,
    '--var-json': options.varJson,
    '--var-stdin': options.varStdin,
    '--meta': options.meta,
    '--id': options.id,
    '--dry-run': options.dryRun,
    '--language': options.language,
    '--workflow': options.resume === undefined ? undefined : options.workflow,
  };
  const given = Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [flag]));
  const beside = path === undefined ? given : [path, ...given];
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
