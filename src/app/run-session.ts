// A run in the hands of this process, from the moment it is taken to its end: signals and messages reach it, a reporter
// shows it, its state file follows it.

import { join, resolve } from 'node:path';

import { crash } from '../sys/throw-uncaught.ts';
import { present } from '../base/assert.ts';
import type { LiveRun, EngineServices } from '../engine/client.ts';
import type { Journal, Store } from '../engine/ports.ts';
import { fold } from '../engine/loop.ts';
import type { AgentsDriver } from '../drivers/agent/driver.ts';
import { commandDriver } from '../drivers/command/command-driver.ts';
import { Spawner } from '../drivers/spawner.ts';
import { outsideOfRuns } from '../drivers/environment.ts';
import { readDriver } from '../drivers/read-driver.ts';
import { SIM_SCRIPT } from '../drivers/agent/sim-host.ts';
import { steered } from '../drivers/transition-reader.ts';
import { systemClock } from '../sys/clock.ts';
import { wholeText } from '../drivers/resolve-text.ts';
import { addressOf } from '../ipc/address.ts';
import { RunEndpoint } from '../ipc/run-endpoint.ts';
import { promptText } from '../ir/prompt-text.ts';
import type { Program } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState } from '../kernel/state.ts';
import type { Config } from '../languages/config.ts';
import { probeDisk } from '../stores/disk-failure.ts';
import { stateFile } from '../stores/state-file.ts';
import { asUsageError } from '../stores/usage-errors.ts';
import { openGates, runStatus } from '../view/status.ts';
import type { Adapters } from './adapters.ts';
import { agentDrivers, reachingTerminals } from './agent-drivers.ts';
import { conductorRun } from './conductor-run.ts';
import type { ConductorRun } from './conductor-run.ts';
import { GateReminders } from './gate-reminders.ts';
import type { Reporter } from './reporter.ts';
import { ownEnvironment } from './own-environment.ts';
import { openRun } from './runs.ts';
import { StateRefresh } from './state-refresh.ts';

export interface DriveRequest {
  readonly store: Store;
  readonly runId: string;
  readonly config: Config;
  /** For agents that it starts. */
  readonly adapters: Adapters;
  readonly reporter: Reporter;
  /** False: a run that only a person can go on with is paused. */
  readonly waits?: boolean;
  /** Takes the run. */
  begin(world: EngineServices): Promise<LiveRun>;
  /** Told once the run is ours. */
  held?(run: LiveRun): void;
}

/** Resolves when the run has ended and is released. */
export async function drive(request: DriveRequest): Promise<RunState> {
  const { store, runId, reporter } = request;
  const runFolder = store.files(runId).localPath('');
  let run: LiveRun | null = null;
  let refresh: StateRefresh | null = null;
  let before: readonly JournalRecord[] = [];
  let mark = '';
  let program: Program | null = null;
  let agents: AgentsDriver | null = null;
  let endpoint: RunEndpoint | null = null;
  let conducted: ConductorRun | null = null;
  let reminders: GateReminders | null = null;
  let isDirectoryOpen = false;

  // A run that comes to nothing leaves nothing behind, so it is not talked to before there is a record of it; and no step
  // starts before it can be.
  const receive = (): void => {
    endpoint ??= endpointOf(runId, runFolder, mark, reporter, () => agents);
    openDirectory();
    if (run !== null) endpoint.open(run);
  };

  const openDirectory = (): void => {
    if (conducted === null || isDirectoryOpen) return;
    isDirectoryOpen = true;
    conducted.directory.open(before);
  };

  // The last state is on disk before the run is released: who waits for its end, or takes it after us, finds it complete.
  const guarded = (journal: Journal): Journal => {
    before = journal.records;
    program = journal.program;
    const file = new StateRefresh({
      file: stateFile(`${runFolder}.yaml`),
      // Not the one that is kept with the run: a larger one lets a run go on that was paused for it.
      bytesMax: request.config.limits.stateFileBytesMax,
      // Without an engine there is nothing but what the journal holds.
      durable: () => run?.durable ?? true,
      tooLarge(limit) {
        const what = `workflow file size exceeded: ${limit}`;
        // One that is over can only be told of it.
        if (run === null || run.state.phase === 'ended') reporter.note(`${what}; its state file tells of no steps`);
        else run.pause(what);
      },
      warn: (line) => reporter.warn(line),
    });
    refresh = file;
    return {
      program: journal.program,
      programHash: journal.programHash,
      records: journal.records,
      append(records) {
        const appended = journal.append(records);
        appended.catch(() => file.silence());
        return appended.then(receive);
      },
      async close() {
        // Also one that is refused, for it is done: a crash after its last record has left the file behind it.
        if (!begun && journal.records.length > 0) file.seen([], fold(journal.program, journal.records));
        reminders?.close();
        const last = run?.state ?? (journal.records.length > 0 ? fold(journal.program, journal.records) : null);
        if (last !== null) await conducted?.finish(last);
        await endpoint?.close(run?.durable === true && run.state.phase === 'ended' && run.state.end === 'done');
        await file.finish();
        await journal.close();
      },
    };
  };
  const world: EngineServices = {
    store: {
      create: async (id, program) => guarded(await store.create(id, program)),
      open: async (id) => guarded(await openRun(store, id)),
    },
    clock: systemClock,
    drivers(asked) {
      mark = asked.mark;
      if (before.length > 0 && !isDone(before)) receive();
      const outside = outsideOfRuns(ownEnvironment());
      const around = {
        runId,
        mark,
        runFolder,
        cwd: asked.cwd,
        environment: outside,
        spawner: new Spawner(outside),
        binFolder: BIN_FOLDER,
        ...addressOf(runFolder, mark),
      };
      const { adapters, config } = request;
      const of = present(program, 'drivers for a run without a program');
      const simScript = of.attachments[SIM_SCRIPT] ?? null;
      const environment = reachingTerminals(around, of, config);
      const heard = async (): Promise<void> => endpoint?.drainInbox();
      const ofAgents = agentDrivers({
        run: around,
        adapters,
        config,
        simScript,
        parks: request.waits !== false,
        heard,
      });
      agents = ofAgents.agents;
      const note = (line: string): void => reporter.note(line);
      reminders = new GateReminders({ runId, cwd: asked.cwd, config: config.gates, environment, note });
      conducted = conductorRun({
        run: around,
        program: of,
        config,
        turns: ofAgents.turns,
        state: () => run?.state ?? null,
        warn: (line) => reporter.warn(line),
      });
      if (before.length > 0) openDirectory();
      // Where the folder is that has the runs.
      const within = asked.allowOutside ? null : resolve(runFolder, '../../..');
      const steering = { program: of, runFolder, cwd: asked.cwd, within };
      const known = before.length > 0 ? 0 : commandsIn(of);
      return {
        ...ofAgents.drivers,
        command: steered(commandDriver({ ...around, environment, shell: config.shell, known }), steering),
        turn: steered(ofAgents.drivers.turn, steering),
        read: readDriver({ runFolder, cwd: asked.cwd }),
        ...conducted?.drivers,
      };
    },
    // Whatever is started leaves files: where none can be, nothing can be started.
    fatalError: (outcome) =>
      outcome.kind === 'failure' && outcome.failure.kind === 'not-started' ? probeDisk(runId, runFolder) : null,
    observe(records, state) {
      endpoint?.observe(records, state);
      refresh?.seen(records, state);
      conducted?.directory.seen(records, state);
      reminders?.seen(state);
      begin(state);
      reporter.seen(records, state);
      if (request.waits === false && runStatus(state) === 'waiting') pauseUnlessAnswered().catch(crash);
    },
  };
  // People may have answered while no engine was there.
  const pauseUnlessAnswered = async (): Promise<void> => {
    await endpoint?.drainInbox();
    if (run !== null && runStatus(run.state) === 'waiting') run.pause(waitsFor(run.state));
  };

  // Nothing is said about a run before its first record is durable: until then it may still come to nothing.
  let begun = false;
  const begin = (state: RunState): void => {
    if (begun) return;
    begun = true;
    reporter.begin(runId, before, state, () => run?.durable ?? false);
  };

  try {
    const taken = await request.begin(world);
    run = taken;
    if (endpoint !== null) receive();
    request.held?.(taken);
    const state = await taken.ended;
    begin(state);
    return state;
  } catch (error) {
    reporter.close();
    throw error;
  }
}

/** Those of the block that it begins with. */
function commandsIn({ blocks, entry }: Program): number {
  const steps = blocks[entry]?.steps ?? [];
  return steps.filter(({ act }) => act.kind === 'effect' && act.effect.kind === 'command').length;
}

function isDone(records: readonly JournalRecord[]): boolean {
  return (
    records.at(-1)?.decisions.some((decision) => decision.kind === 'run-ended' && decision.end === 'done') ?? false
  );
}

function endpointOf(
  runId: string,
  runFolder: string,
  mark: string,
  reporter: Reporter,
  agents: () => AgentsDriver | null,
): RunEndpoint {
  try {
    return new RunEndpoint({
      runId,
      mark,
      runFolder,
      clock: systemClock,
      promptText({ prompt, expects }) {
        const text = wholeText(prompt, runFolder);
        return text.ok ? { ...text, value: promptText(text.value, 'autonomous', expects) } : text;
      },
      hasAccepted: (agent, effect) => agents()?.hasTaken(agent, effect) ?? false,
      mayReportOn: (agent, effect) => agents()?.couldHave(agent, effect) ?? true,
      note: (line) => reporter.note(line),
    });
  } catch (error) {
    throw asUsageError(error, `open the inbox of run ${runId}`, runFolder);
  }
}

function waitsFor(state: RunState): string {
  const gates = openGates(state).map(({ id }) => id);
  return `only a person can go on: ${gates.length === 1 ? 'gate' : 'gates'} ${gates.join(', ')}`;
}

/** The `meow` that steps find on their PATH is the one that runs them. */
const BIN_FOLDER = join(import.meta.dirname, '..', 'bin');
