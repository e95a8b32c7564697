// The session of a run: everything that one run needs of the process that drives it, composed when its journal is held.
// One process may have any number of sessions. The order of events is that of engine/client.ts.

import { resolve } from 'node:path';

import { ok } from '../base/result.ts';
import type { EngineServices } from '../engine/client.ts';
import { resumeRun, startRun } from '../engine/client.ts';
import type { StartedRun } from '../engine/client.ts';
import type { Store, StoredRun } from '../engine/ports.ts';
import { Spawner } from '../drivers/spawner.ts';
import { withoutRunVariables } from '../drivers/environment.ts';
import type { DriverContext } from '../drivers/environment.ts';
import { resolveText } from '../drivers/resolve-text.ts';
import { addressOf } from '../ipc/address.ts';
import { RunEndpoint } from '../ipc/run-endpoint.ts';
import { conductorOf } from '../ir/conductor.ts';
import { promptText } from '../ir/prompt-text.ts';
import type { Allowance, Program, RunRequest } from '../ir/program.ts';
import type { Config } from '../languages/config.ts';
import { probeDisk } from '../stores/disk-failure.ts';
import { stateFile } from '../stores/state-file.ts';
import { asUsageError } from '../stores/usage-errors.ts';
import { systemClock } from '../sys/clock.ts';
import { crash } from '../sys/throw-uncaught.ts';
import { openGates, runStatus } from '../view/status.ts';
import type { Adapters } from './adapters.ts';
import { conductorDirectory } from './conductor-directory.ts';
import { GateReminders } from './gate-reminders.ts';
import type { LiveRun, Reporter, RunObserver, RunState } from './observer.ts';
import { RunDrivers } from './run-drivers.ts';
import { StateRefresh } from './state-refresh.ts';
import { packageFolder } from './sources.ts';

export interface SessionOptions {
  readonly store: Store;
  readonly config: Config;
  readonly adapters: Adapters;
  readonly reporter: Reporter;
  /** Of the caller; steps and agents inherit it. */
  readonly environment: Readonly<Record<string, string>>;
  /** False: a run that waits for a person is paused. */
  readonly waits?: boolean;
  /** Called once the run is held; its first record may not be durable yet. */
  onHeld?(run: LiveRun): void;
}

/** Resolves when the run has ended and is released; rejects if it is refused or held. */
export function startSession(options: SessionOptions, program: Program, request: RunRequest): Promise<RunState> {
  return drive(options, (services) => startRun(services, program, request));
}

export interface ResumeOptions {
  readonly retryFailed: boolean;
  /** What the run may use from now on; what it leaves out stays as it was. */
  readonly allowance?: Partial<Allowance>;
}

/** Resolves when the run has ended and is released; rejects if it is refused or held. */
export function resumeSession(options: SessionOptions, runId: string, how: ResumeOptions): Promise<RunState> {
  return drive(options, (services) => resumeRun(services, runId, how.retryFailed, how.allowance ?? null));
}

async function drive(
  options: SessionOptions,
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

type Session = ReturnType<EngineServices['session']>;

function composeSession(options: SessionOptions, run: LiveRun, request: RunRequest, stored: StoredRun): Session {
  const { config, reporter } = options;
  const { program, records: before } = stored;
  const surroundings = surroundingsOf(options, run, request);
  const runFolder = surroundings.files.localPath('');
  const warn = (line: string): void => reporter.warn(line);

  const drivers: RunDrivers = new RunDrivers({
    run,
    surroundings,
    program,
    config,
    adapters: options.adapters,
    isNew: before.length === 0,
    // Folders that answers name must be in the folder of the project.
    within: request.allowOutside ? null : resolve(runFolder, '../../..'),
    waits: options.waits !== false,
    inboxRead: () => endpoint.drainInbox(),
  });
  const endpoint = endpointOf(run, surroundings, drivers, reporter);
  const stateFile = stateFileOf(options, run);
  const conductor = (): ReturnType<RunDrivers['conductor']> => drivers.conductor();
  const directories =
    conductorOf(program) === null ? [] : [conductorDirectory({ surroundings, program, run, conductor, warn })];

  const observers: readonly RunObserver[] = [
    stateFile,
    endpointObserver(endpoint, surroundings),
    ...directories,
    ...remindersOf(options, drivers, surroundings),
    reporter,
    ...(options.waits === false ? [pauseWhenWaiting(run, endpoint)] : []),
  ];
  const opened: RunObserver[] = [];
  return {
    drivers: drivers.byKind,
    open() {
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
      outcome.kind === 'failure' && outcome.failure.kind === 'not-started' ? probeDisk(run.id, runFolder) : null,
    close: () => closeAll(opened),
    async catchUp() {
      const files = [stateFile, ...directories];
      for (const file of files) file.open?.(run, before);
      await closeAll(files);
    },
  };
}

function surroundingsOf(
  { store, environment }: SessionOptions,
  run: LiveRun,
  { mark, cwd }: RunRequest,
): DriverContext & { readonly binFolder: string } {
  const files = store.files(run.id);
  const inherited = withoutRunVariables(environment);
  return {
    runId: run.id,
    mark,
    files,
    cwd,
    environment: inherited,
    spawner: new Spawner(inherited),
    // The `meow` that steps find on their PATH is the one that runs them.
    binFolder: resolve(packageFolder(), 'bin'),
    ...addressOf(files.localPath(''), mark),
  };
}

function endpointOf(
  run: LiveRun,
  { mark, files }: DriverContext,
  drivers: RunDrivers,
  reporter: Reporter,
): RunEndpoint {
  return new RunEndpoint({
    run,
    mark,
    runFolder: files.localPath(''),
    clock: systemClock,
    promptText({ prompt, expects }) {
      const text = resolveText(prompt, files);
      return text.ok ? ok(promptText(text.value, 'autonomous', expects)) : text;
    },
    hasAccepted: (agent, effect) => drivers.agents?.hasTaken(agent, effect) ?? false,
    mayReportOn: (agent, effect) => drivers.agents?.couldHave(agent, effect) ?? true,
    note: (line) => reporter.note(line),
  });
}

function endpointObserver(endpoint: RunEndpoint, { runId, files }: DriverContext): RunObserver {
  return {
    open() {
      try {
        endpoint.open();
      } catch (error) {
        throw asUsageError(error, `open the inbox of run ${runId}`, files.localPath(''));
      }
    },
    observe: (records, state) => endpoint.observe(records, state),
    close: () => endpoint.close(),
  };
}

function remindersOf(
  { config, reporter }: SessionOptions,
  { environment }: RunDrivers,
  { runId, cwd }: DriverContext,
): readonly RunObserver[] {
  const { remind: command, remindEveryMs: everyMs } = config.gates;
  const warn = (line: string): void => reporter.warn(line);
  return command === null ? [] : [new GateReminders({ runId, cwd, environment, command, everyMs, warn })];
}

function stateFileOf({ store, config, reporter }: SessionOptions, run: LiveRun): StateRefresh {
  return new StateRefresh({
    file: stateFile(`${store.files(run.id).localPath('')}.yaml`),
    // From the configuration, not from the Program: with a higher limit a run can continue that was paused because of it.
    bytesMax: config.limits.stateFileBytesMax,
    tooLarge(limit) {
      const problem = `workflow file size exceeded: ${limit}`;
      if (run.state.phase === 'ended') reporter.warn(`${problem}; the state file leaves out the steps`);
      else run.pause(problem);
    },
    warn: (line) => reporter.warn(line),
  });
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
