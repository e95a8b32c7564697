// The session of a run: everything that one run needs of the process that drives it, composed when its journal is held.
// One process may have any number of sessions. The order of events is that of engine/client.ts.

import { dirname, join, resolve } from 'node:path';

import { err, ok } from '../base/errors.ts';
import { once } from '../base/once.ts';
import { type DriverContext, withoutRunVariables } from '../drivers/environment.ts';
import { revealText, scrubFile, scrubFolder } from '../drivers/guard-secrets.ts';
import { resolveText } from '../drivers/outputs.ts';
import { Spawner } from '../drivers/spawner.ts';
import {
  type EngineServices,
  resumeRun,
  type RunSession,
  type StartedRun,
  startRun,
  stopRun,
} from '../engine/client.ts';
import type { Store, StoredRun } from '../engine/ports.ts';
import type { ProofChecks } from '../ipc/authorize-decision.ts';
import { proofChecks } from '../ipc/decision-proof.ts';
import { addressOf, RunEndpoint } from '../ipc/run-endpoint.ts';
import type { FailureKind } from '../ir/failure.ts';
import { conductorOf, type Program, type RunRequest } from '../ir/program.ts';
import { promptText } from '../ir/prompt-text.ts';
import type { Fork } from '../kernel/fork.ts';
import type { Config } from '../languages/config.ts';
import { probeDisk } from '../stores/errors.ts';
import { systemClock } from '../sys/clock.ts';
import { crash } from '../sys/errors.ts';
import { pinFolder, stateFile } from '../sys/files.ts';
import type { Secrets } from '../sys/secrets.ts';
import { openGates, runStatus } from '../view/status.ts';
import type { Adapters } from './adapters.ts';
import { budgetLedger } from './budget-ledger.ts';
import type { RunSurroundings } from './agent-drivers.ts';
import { conductorDirectory } from './conductor-run.ts';
import { gateReminders } from './gate-reminders.ts';
import type { LiveRun, Reporter, RunObserver, RunState } from './observer.ts';
import { type Project, projectAt, sharedFolder } from './project.ts';
import { budgetsOf, noteFork } from './run-budgets.ts';
import { listProject } from './projects.ts';
import { runNotices } from './run-notices.ts';
import { leavePrints } from './redact.ts';
import { type RunDrivers, runDrivers } from './run-drivers.ts';
import { maskedRun, namesIn, namesOfProgram, requireSecrets, secretsOf } from './run-secrets.ts';
import { signersFile } from './runs.ts';
import { packageFolder, readSettings } from './sources.ts';
import { isTraced } from './telemetry/endpoint.ts';
import { StateRefresh } from './state-refresh.ts';

export interface SessionOptions {
  readonly store: Store;
  readonly config: Config;
  readonly adapters: Adapters;
  readonly reporter: Reporter;
  /** The caller's environment, which steps and agents inherit. */
  readonly environment: Readonly<Record<string, string>>;
  /** False: a run that waits for a person is paused. */
  readonly waits?: boolean;
  /** For a run of a fleet, whose own files are not in a project: the one that it was started in. */
  readonly fleetProject?: Project;
  /** Called once the run is held; its first record may not be durable yet. */
  onHeld?(run: LiveRun): void;
}

/** Resolves when the run has ended and is released; rejects if it is refused or held. */
export function startSession(
  options: SessionOptions,
  program: Program,
  request: RunRequest,
  fork: Fork | null = null,
): Promise<RunState> {
  const taking = { fork, needsSecrets: fork !== null };
  return drive({ ...options, ...taking }, (services) => startRun(services, program, request, fork));
}

/** Resolves when the run has ended and is released; rejects if it is refused or held. */
export function resumeSession(
  options: SessionOptions,
  runId: string,
  how: Parameters<typeof resumeRun>[2],
): Promise<RunState> {
  const runs = dirname(options.store.files(runId).localPath(''));
  const budgets = budgetsOf(options.config, { runs, id: runId });
  const taking = { fork: null, needsSecrets: true };
  return drive({ ...options, ...taking }, (services) => resumeRun(services, runId, { ...how, budgets }));
}

/** Stops a run that has no engine. Resolves when it has ended and is released; rejects if it is refused or held. */
export function stopSession(options: SessionOptions, runId: string, by: string, force: boolean): Promise<RunState> {
  const taking = { fork: null, needsSecrets: false };
  return drive({ ...options, ...taking }, (services) => stopRun(services, runId, by, force));
}

/** How a session begins. */
interface Taking {
  /** What a new run keeps of another one. */
  readonly fork: Fork | null;
  /** Refuses a run without the values of its secrets. */
  readonly needsSecrets: boolean;
}

async function drive(
  options: SessionOptions & Taking,
  take: (services: EngineServices) => Promise<StartedRun>,
): Promise<RunState> {
  try {
    const { run, ended } = await take({
      store: options.store,
      clock: systemClock,
      session: (live, request, stored) => composeSession(options, live, request, stored),
    });
    options.onHeld?.(run);
    return await ended;
  } catch (error) {
    options.reporter.abandon();
    throw error;
  }
}

function composeSession(
  { reporter: shown, ...others }: SessionOptions & Taking,
  live: LiveRun,
  request: RunRequest,
  stored: StoredRun,
): RunSession {
  const { program, records: before } = stored;
  const named = new Set([...namesOfProgram(program), ...namesIn([request, before, others.fork])]);
  if (others.needsSecrets) requireSecrets(live.id, named, others.environment);
  const secrets = secretsOf(others.environment, others.config, { cwd: request.cwd, named });
  const reporter = maskedReporter(shown, secrets);
  const options = { ...others, reporter };
  const { config } = options;
  const run = maskedRun(live, secrets);
  const surroundings = surroundingsOf(options, run.id, request, secrets);
  const runFolder = surroundings.files.localPath('');
  const warn = (line: string): void => reporter.warn(line);

  // Before anything of the run can start.
  const runs = dirname(runFolder);
  if (request.origin !== undefined && before.length === 0) noteFork(runs, request.origin, run.id);
  const pins = [runs, runFolder].map(pinFolder);
  warnOfKinds(secrets, warn);
  const proofs = proofChecks(
    options.environment,
    signersFile(options.fleetProject === undefined ? runFolder : resolve(options.fleetProject.runs, run.id), config),
  );
  const drivers: RunDrivers = runDrivers({
    run,
    surroundings,
    program,
    config,
    adapters: options.adapters,
    isNew: before.length === 0,
    // Folders that answers name must be in the folder of the project.
    within: request.allowOutside ? null : dirname(options.fleetProject?.meow ?? resolve(runFolder, '../..')),
    waits: options.waits !== false,
    quiet: () =>
      request.background === true
        ? readSettings(options.fleetProject ?? projectAt(resolve(runs, '..'))).config.money.quiet
        : null,
    inboxRead: () => endpoint.drainInbox(),
  });
  const endpoint = endpointOf(run, surroundings, drivers, { reporter, proofs });
  const stateFile = stateFileOf(options, run, runFolder);
  const { conductor, environment } = drivers;
  const directories =
    conductorOf(program) === null ? [] : [conductorDirectory({ surroundings, program, run, conductor, warn })];
  const { remind: command, remindEveryMs: everyMs } = config.gates;
  const reminding = { runId: run.id, cwd: request.cwd, environment, everyMs, warn };

  const ledger = once(() =>
    budgetLedger({
      runId: run.id,
      runs,
      shared: sharedFolder(),
      budgets: config.money.budgets,
      origin: request.origin ?? null,
      warn,
    }),
  );

  const observers: readonly RunObserver[] = [
    stateFile,
    endpoint,
    ...directories,
    ...(command === null ? [] : [gateReminders({ ...reminding, command })]),
    runNotices({
      runFolder,
      config: config.notify,
      isTraced: isTraced(config.telemetry, options.environment),
      environment: options.environment,
      bell: () => reporter.bell?.(),
    }),
    reporter,
    ...(options.waits === false ? [pauseWhenWaiting(run, endpoint)] : []),
    // `meow serve` resumes runs of listed projects, but never those of a fleet.
    ...(options.fleetProject === undefined ? [projectLister(dirname(runFolder))] : []),
  ];
  const opened: RunObserver[] = [];
  return {
    drivers: drivers.byKind,
    ledger: { admit: (turns, signal) => ledger().admit(turns, signal) },
    open() {
      if (secrets.forms.size > 0) leavePrints(runFolder, secrets.forms);
      for (const observer of observers) {
        opened.push(observer);
        observer.open?.(run, before);
      }
    },
    observe(records, state) {
      for (const observer of observers) observer.observe(records, state);
    },
    // Every effect leaves files: if none can be written, nothing can be started.
    fatalError: (outcome) =>
      outcome.kind === 'failure' && WITHOUT_FILES.has(outcome.failure.kind) ? probeDisk(run.id, runFolder) : null,
    async close() {
      await closeAll(opened);
      scrubRun(runFolder, secrets);
      for (const unpin of pins) unpin();
    },
    async catchUp() {
      const files = [stateFile, ...directories];
      for (const file of files) file.open?.(run, before);
      await closeAll(files);
    },
  };
}

/** How commands, turns, agents and prompts fail whose files cannot be written. */
const WITHOUT_FILES: ReadonlySet<FailureKind> = new Set(['not-started', 'spawn-failed', 'not-delivered']);

function surroundingsOf(
  options: SessionOptions,
  runId: string,
  request: RunRequest,
  secrets: Secrets,
): RunSurroundings {
  const { mark, cwd, permissions = null, traceparent = null } = request;
  const files = options.store.files(runId);
  const environment = withoutRunVariables(options.environment);
  const address = addressOf(files.localPath(''), mark);
  // The `meow` that steps find on their PATH is the one that runs them.
  const binFolder = resolve(packageFolder(), 'bin');
  const spawner = new Spawner(environment);
  return { runId, mark, files, cwd, permissions, traceparent, environment, spawner, secrets, binFolder, ...address };
}

function endpointOf(
  run: LiveRun,
  context: DriverContext,
  drivers: RunDrivers,
  { reporter, proofs }: { readonly reporter: Reporter; readonly proofs: ProofChecks },
): RunEndpoint {
  const { mark, files, secrets } = context;
  return new RunEndpoint({
    run,
    mark,
    proofs,
    runFolder: files.localPath(''),
    clock: systemClock,
    promptText({ prompt, expects }) {
      const text = secrets === undefined ? resolveText(prompt, files) : revealText(prompt, { files, secrets });
      return text.ok ? ok(promptText(text.value, 'autonomous', expects)) : text;
    },
    hasAccepted: (agent, effect) => drivers.agents()?.hasTaken(agent, effect) ?? false,
    mayReportOn: (agent, effect) => drivers.agents()?.couldHave(agent, effect) ?? true,
    typeKeys: async (agent, keys, by) =>
      (await drivers.agents()?.typeKeys(agent, keys, by)) ?? err(`agent ${agent} is not running`),
    note: (line) => reporter.note(line),
    ...(secrets === undefined ? {} : { secrets }),
  });
}

function stateFileOf({ config, reporter }: SessionOptions, run: LiveRun, runFolder: string): StateRefresh {
  return new StateRefresh({
    file: stateFile(`${runFolder}.yaml`, runFolder),
    // From the configuration, not from the Program: with a higher limit a run can continue that was paused because of it.
    bytesMax: config.limits.stateFileBytesMax,
    tooLarge(limit) {
      const problem = `workflow file size exceeded: ${limit}, max_workflow_file_size under [limits]`;
      if (run.state.phase === 'ended') reporter.warn(`${problem}; the state file leaves out the steps`);
      else run.pause(problem);
    },
    warn: (line) => reporter.warn(line),
  });
}

/** After everything that the run starts at once. */
function projectLister(runs: string): RunObserver {
  return { open: () => void setImmediate(() => listProject(runs)), observe: () => {} };
}

/** Pauses the run as soon as only a person can continue it, and nobody has answered in the inbox meanwhile. */
function pauseWhenWaiting(run: LiveRun, endpoint: RunEndpoint): RunObserver {
  const pauseUnlessAnswered = async (): Promise<void> => {
    await endpoint.drainInbox();
    if (runStatus(run.state) !== 'waiting') return;
    const gates = openGates(run.state).map(({ id }) => id);
    run.pause(`waiting for a person: ${gates.length === 1 ? 'gate' : 'gates'} ${gates.join(', ')}`);
  };
  return {
    observe(_records, state) {
      if (runStatus(state) === 'waiting') pauseUnlessAnswered().catch(crash);
    },
  };
}

/** Texts of the system, and of other programs, may contain secrets. */
function maskedReporter(reporter: Reporter, secrets: Secrets): Reporter {
  return {
    open: (run, before) => reporter.open(run, before),
    observe: (records, state) => reporter.observe(records, state),
    close: () => reporter.close?.(),
    note: (line) => reporter.note(secrets.redact(line)),
    warn: (line) => reporter.warn(secrets.redact(line)),
    bell: () => reporter.bell?.(),
    end: (state, exit, work) => reporter.end(state, exit, work),
    abandon: () => reporter.abandon(),
  };
}

/** Files of steps and agents, without logs, records and stored outputs. */
function scrubRun(runFolder: string, secrets: Secrets): void {
  if (!secrets.used && secrets.forms.size === 0) return;
  scrubFile(join(runFolder, 'diff.patch'), secrets);
  for (const name of ['steps', 'agents', 'sessions'])
    scrubFolder(join(runFolder, name), secrets, (path) => UNSCRUBBED.test(path));
}

const UNSCRUBBED = /(?:^|[./])(?:stdout|stderr|status|outputs|transcript[^/]*)(?:\/|$)|\/mail\/[^/]*\.json$/;

/** Once for each kind. */
function warnOfKinds(secrets: Secrets, warn: (line: string) => void): void {
  const warned = new Set<string>();
  secrets.onKind = (label) => {
    if (warned.has(label)) return;
    warned.add(label);
    warn(
      `a secret (${label}) that no environment variable has is masked: later steps see •••${label} in its place. ` +
        'To pass it on, start the run with it in an environment variable',
    );
  };
}

/** In reverse order. Every observer is closed, even if an earlier one fails. */
async function closeAll(opened: readonly RunObserver[]): Promise<void> {
  const errors: unknown[] = [];
  for (const observer of opened.toReversed()) {
    try {
      await observer.close?.();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors[0];
}
