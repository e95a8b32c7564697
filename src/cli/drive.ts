// A run in the hands of this process, from the moment it is taken to its end: signals reach it, a reporter shows it, its
// state file follows it.

import { join } from 'node:path';

import type { LiveRun, World } from '../engine/client.ts';
import type { Journal } from '../engine/ports.ts';
import { fold } from '../engine/loop.ts';
import { commandDriver } from '../drivers/command.ts';
import { systemClock } from '../drivers/clock.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState } from '../kernel/state.ts';
import type { Config } from '../languages/config.ts';
import type { FileStore } from '../stores/files.ts';
import { workingOn } from './exit.ts';
import type { Reporter } from './reporters/reporter.ts';
import { openRun } from './runs.ts';
import { Signals } from './signals.ts';
import { StateRefresh } from './state-refresh.ts';

export interface DriveRequest {
  readonly store: FileStore;
  readonly runId: string;
  readonly config: Config;
  readonly reporter: Reporter;
  /** Takes the run. */
  begin(world: World): Promise<LiveRun>;
  /** Told once the run is ours. */
  held?(run: LiveRun): void;
}

export interface Driven {
  readonly state: RunState;
  /** 128 and the number of the signal that came first; null where none came. */
  readonly signalStatus: number | null;
}

export async function drive(request: DriveRequest): Promise<Driven> {
  const { store, runId, reporter } = request;
  let run: LiveRun | null = null;
  let refresh: StateRefresh | null = null;
  let before: readonly JournalRecord[] = [];

  // The last state is on disk before the run is released: who waits for its end, or takes it after us, finds it complete.
  const guarded = (journal: Journal): Journal => {
    before = journal.records;
    const file = new StateRefresh({
      file: store.stateFile(runId),
      // Not the one that is kept with the run: a larger one lets a run go on that was paused for it.
      bytesMax: request.config.limits.stateFileBytesMax,
      // Without an engine there is nothing but what the journal holds.
      durable: () => run?.durable ?? true,
      tooLarge: (limit) => run?.pause(`workflow file size exceeded: ${limit}`),
    });
    refresh = file;
    return {
      program: journal.program,
      programHash: journal.programHash,
      records: journal.records,
      append(records) {
        const appended = journal.append(records);
        appended.catch(() => file.silence());
        return appended;
      },
      async close() {
        // Also one that is refused, for it is done: a crash after its last record has left the file behind it.
        if (!begun && journal.records.length > 0) file.seen([], fold(journal.program, journal.records));
        await file.finish();
        await journal.close();
      },
    };
  };
  const world: World = {
    store: {
      create: async (id, program) => guarded(await store.create(id, program)),
      open: async (id) => guarded(await openRun(store, id)),
      read: (id) => store.read(id),
    },
    clock: systemClock,
    drivers: ({ id, mark, cwd }) => ({
      command: commandDriver({
        runId: id,
        mark,
        runFolder: store.runFolder(id),
        cwd,
        environment: environment(),
        binFolder: BIN_FOLDER,
        shell: request.config.shell,
      }),
    }),
    observe(records, state) {
      refresh?.seen(records, state);
      begin(state);
      reporter.seen(records, state);
    },
  };
  // Nothing is said about a run before its first record is durable: until then it may still come to nothing.
  let begun = false;
  const begin = (state: RunState): void => {
    if (begun) return;
    begun = true;
    reporter.begin(runId, before, state, () => run?.durable ?? false);
  };

  const signals = new Signals(
    (line) => reporter.note(line),
    () => reporter.close(),
  );
  try {
    const taken = await request.begin(world);
    run = taken;
    workingOn(runId);
    request.held?.(taken);
    signals.directTo(taken);
    const state = await taken.ended;
    begin(state);
    workingOn(null);
    return { state, signalStatus: signals.exitStatus };
  } catch (error) {
    reporter.close();
    throw error;
  } finally {
    signals.close();
  }
}

/** The `meow` that steps find on their PATH is the one that runs them. */
const BIN_FOLDER = join(import.meta.dirname, '..', 'bin');

function environment(): Readonly<Record<string, string>> {
  const entries = Object.entries(process.env);
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
