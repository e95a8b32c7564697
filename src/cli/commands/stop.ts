// `meow stop`: stop a run from anywhere. The engine of the run receives a signal and stops it; if there is none, this
// process takes over the run just to stop it.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { Adapters } from '../../app/adapters.ts';
import { FORCE_SIGNAL, signalEngine, STOP_SIGNAL } from '../../app/engine-signals.ts';
import type { RunState } from '../../app/observer.ts';
import { findProject, ownEnvironment } from '../../app/project.ts';
import { stopSession } from '../../app/run-session.ts';
import { FLEET_MARK, readRun, resolveRun, type RunHolder, type Store, storeOf } from '../../app/runs.ts';
import { readSettings } from '../../app/sources.ts';
import { UsageError } from '../../base/errors.ts';
import { runStatus } from '../../view/status.ts';
import { runInForeground } from '../foreground.ts';
import { EXIT, printLine, warn } from '../output.ts';
import { plainReporter } from '../reporters.ts';

export async function stop(
  wanted: string,
  { force = false, fleet }: { readonly force?: boolean; readonly fleet?: true },
): Promise<number> {
  if (fleet) return (await import('./fleet.ts')).stopInFleet(wanted, force);
  const project = findProject();
  const store = storeOf(project);
  const id = await resolveRun(store, wanted);
  // Its holder drives other runs too, so it gets no signal.
  if (existsSync(join(store.files(id).localPath(''), FLEET_MARK)))
    throw new UsageError(`run ${id} belongs to a fleet`, `stop it there: meow stop ${id} --fleet`);
  const holder = await store.holder(id);
  if (holder !== null) {
    printLine(`stopping ${id} (engine ${holder.pid})`);
    if (signalEngine(holder, force ? FORCE_SIGNAL : STOP_SIGNAL)) await released(store, id, holder, force);
    const { state } = await readRun(store, id);
    // If the engine died instead, this process stops the run.
    if (state.phase === 'ended') return reportEnd(id, state);
  }
  const { state } = await readRun(store, id);
  if (state.phase === 'ended') return reportNothingToStop(id, state);
  const session = {
    store,
    config: readSettings(project).config,
    adapters: new Adapters(project),
    reporter: plainReporter(),
    environment: ownEnvironment(),
  };
  const by = force ? 'meow stop --force' : 'meow stop';
  const stopped = await runInForeground(session, (options) => stopSession(options, id, by, force));
  return reportEnd(id, stopped.state);
}

function reportEnd(id: string, state: RunState): number {
  const status = runStatus(state);
  if (status === 'paused') return reportNothingToStop(id, state);
  if (status === 'stopped') printLine(`${id} is stopped; resume it: meow resume ${id}`);
  else printLine(`${id} is ${status}: it ended before it could be stopped`);
  return EXIT.done;
}

function reportNothingToStop(id: string, state: RunState): number {
  const status = runStatus(state);
  if (status !== 'stopped' && status !== 'paused') {
    throw new UsageError(`run ${id} has ended: it is ${status}`, `meow status ${id} shows it`);
  }
  printLine(`run ${id} is ${status}; it has no running commands`);
  return EXIT.done;
}

const LOOK_MS = 100;
const WARN_AFTER_MS = 15_000;

/** Resolves when the engine has let go of the run, or died. */
async function released(store: Store, id: string, holder: RunHolder, force: boolean): Promise<void> {
  const warnAt = Date.now() + WARN_AFTER_MS;
  let hasWarned = force;
  while ((await store.holder(id))?.take === holder.take) {
    if (!hasWarned && Date.now() > warnAt) {
      hasWarned = true;
      warn(`  its commands have not exited yet; kill them: meow stop ${id} --force`);
    }
    await sleep(LOOK_MS);
  }
}
