// `meow stop`: stop a run from anywhere. The engine of the run receives a signal and stops it; if there is none, this
// process resumes the run just to stop it.

import { setTimeout as sleep } from 'node:timers/promises';

import { UsageError } from '../../base/usage-error.ts';
import type { RunHolder, Store } from '../../app/runs.ts';
import type { LiveRun, RunState } from '../../app/observer.ts';
import { ownEnvironment } from '../../app/project.ts';
import { resumeSession } from '../../app/run-session.ts';
import { isErrno } from '../../sys/errno.ts';
import { runStatus } from '../../view/status.ts';
import { Adapters } from '../../app/adapters.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../../app/project.ts';
import { runInForeground } from '../foreground.ts';
import { plainReporter } from '../reporters/plain.ts';
import { readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { warn, printLine } from '../output.ts';
import { readSettings } from '../../app/settings.ts';
import { FORCE_SIGNAL, STOP_SIGNAL } from '../signals.ts';

export async function stop(wanted: string, { force = false }: { readonly force?: boolean }): Promise<number> {
  const project = findProject();
  const store = storeOf(project);
  const id = await resolveRun(store, wanted);
  const holder = await store.holder(id);
  if (holder !== null) {
    printLine(`stopping ${id} (engine ${holder.pid})`);
    if (ask(holder, force ? FORCE_SIGNAL : STOP_SIGNAL)) await released(store, id, holder, force);
    const { state } = await readRun(store, id);
    // If the engine died instead, this process stops the run.
    if (state.phase === 'ended') return tell(id, state);
  }
  const { state } = await readRun(store, id);
  if (state.phase === 'ended') return already(id, state);
  const session = {
    store,
    config: readSettings(project).config,
    adapters: new Adapters(project),
    reporter: plainReporter(),
    environment: ownEnvironment(),
    onHeld: (run: LiveRun) => run.stop(force ? 'meow stop --force' : 'meow stop', force),
  };
  const stopped = await runInForeground(session, (options) => resumeSession(options, id, { retryFailed: false }));
  return tell(id, stopped.state);
}

function tell(id: string, state: RunState): number {
  const status = runStatus(state);
  if (status === 'stopped') printLine(`${id} is stopped; resume it: meow resume ${id}`);
  else if (status === 'paused') return already(id, state);
  else printLine(`${id} is ${status}: it ended before it could be stopped`);
  return EXIT.done;
}

function already(id: string, state: RunState): number {
  const status = runStatus(state);
  if (status === 'stopped' || status === 'paused') {
    printLine(`run ${id} is ${status}; it has no running commands`);
    return EXIT.done;
  }
  throw new UsageError(`run ${id} has ended: it is ${status}`, `meow status ${id} shows it`);
}

/** False if the process is gone. A suspended process (Ctrl-Z) handles the signal only after SIGCONT. */
function ask({ pid }: RunHolder, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    process.kill(pid, 'SIGCONT');
    return true;
  } catch (error) {
    if (isErrno(error, 'ESRCH')) return false;
    if (!isErrno(error, 'EPERM')) throw error;
    throw new UsageError(`the engine with pid ${pid} belongs to another user`, 'ask them to stop it');
  }
}

const LOOK_MS = 100;
const PATIENCE_MS = 15_000;

/** Resolves when the engine has let go of the run, or died. */
async function released(store: Store, id: string, holder: RunHolder, force: boolean): Promise<void> {
  const patience = Date.now() + PATIENCE_MS;
  let told = force;
  while ((await store.holder(id))?.take === holder.take) {
    if (!told && Date.now() > patience) {
      told = true;
      warn(`  its commands have not exited yet; kill them: meow stop ${id} --force`);
    }
    await sleep(LOOK_MS);
  }
}
