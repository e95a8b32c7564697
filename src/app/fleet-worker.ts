// Drives runs of a fleet on this machine, many in one process.
//
//   worker/1  It drives new runs and those that it drove before. A run that another machine drove stays with its files.
//   worker/2  One worker at a time works for a machine and user. The database refuses a second one.
//   worker/3  A run whose folder does not exist here is left to others.
//   worker/4  It waits for a database that does not answer. Every other reason why it cannot work is refused at once.
//   worker/5  When it is told to end, it takes nothing more and waits for its runs, for as long as it is told. What still runs
//             then continues without it, and the next worker finds it.

import { statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { UsageError } from '../base/errors.ts';
import { hasErrors } from '../base/source.ts';
import { ConnectionLost } from '../stores/postgres/connection.ts';
import { crash, tolerate, UNUSABLE } from '../sys/errors.ts';
import { Adapters } from './adapters.ts';
import { fleetAddress } from './fleet-address.ts';
import { type HomeStore, homeStore } from './fleet-stores.ts';
import type { LiveRun, Reporter, RunState } from './observer.ts';
import { findProject, ownEnvironment, type Project } from './project.ts';
import { resumeSession, type SessionOptions, stopSession } from './run-session.ts';
import { readRun } from './runs.ts';
import { readSettings } from './sources.ts';

export interface WorkerOptions {
  /** Runs at once. */
  readonly room: number;
  /** Ends the worker; `drainMs` later at the latest. */
  readonly signal: AbortSignal;
  readonly drainMs: number;
  readonly note: (line: string) => void;
}

const LOOK_MS = 1_000;
/** A run that was refused is not tried again for so long. */
const REFUSED_MS = 60_000;

/** Resolves when it has been told to end; false if runs still go on without it. */
export async function work({ room, signal, drainMs, note }: WorkerOptions): Promise<boolean> {
  const address = fleetAddress();
  const at = homeStore(address);
  if (!(await isWelcome(at, signal, note))) return true;
  note(`working for ${address.namespace} in ${address.shown}; its runs: ${at.home.folder}`);
  const running = new Map<string, { live: LiveRun | null }>();
  const refused = new Map<string, number>();
  const refuse = (id: string, error: unknown): void => {
    if (!(error instanceof UsageError)) crash(error);
    // Without the database, the loop says so.
    else if (!(error instanceof ConnectionLost)) {
      refused.set(id, Date.now() + REFUSED_MS);
      note(`${error.message}${error.hint === null ? '' : `\n  ${error.hint}`}`);
    }
  };
  let isAway = false;
  while (!signal.aborted) {
    try {
      for (const { id } of running.size < room ? await at.shared.waiting() : []) {
        if (running.size >= room || running.has(id) || (refused.get(id) ?? 0) > Date.now() || signal.aborted) continue;
        const driven: { live: LiveRun | null } = { live: null };
        running.set(id, driven);
        void drive(at, id, note, (run) => (driven.live = run))
          .catch((error: unknown) => refuse(id, error))
          .finally(() => running.delete(id));
      }
      if (running.size > 0) {
        for (const { id, by, force } of await at.shared.stops()) running.get(id)?.live?.stop(by, force);
      }
      if (isAway) note('the database answers again');
      isAway = false;
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      if (!isAway) note(`${error.message}; running steps continue, and nothing new starts`);
      isAway = true;
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
  }
  if (running.size > 0 && drainMs > 0) note(`waiting for ${[...running.keys()].join(', ')}`);
  const deadline = Date.now() + drainMs;
  while (running.size > 0 && Date.now() < deadline) await sleep(Math.min(LOOK_MS / 10, drainMs));
  if (running.size === 0) await at.shared.close();
  return running.size === 0;
}

/** Waits for a database that does not answer: perhaps it starts later than this machine. False if it shall end before. */
async function isWelcome({ shared }: HomeStore, signal: AbortSignal, note: (line: string) => void): Promise<boolean> {
  for (let hasSaid = false; !signal.aborted; hasSaid = true) {
    try {
      await shared.hello();
      return true;
    } catch (error) {
      if (!(error instanceof ConnectionLost)) throw error;
      if (!hasSaid) note(`${error.message}; waiting for it`);
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {});
  }
  return false;
}

async function drive(
  { store, shared }: HomeStore,
  id: string,
  note: (line: string) => void,
  onHeld: (run: LiveRun) => void,
): Promise<void> {
  const run = await readRun(shared, id);
  const project = projectOf(id, run.state);
  const settings = readSettings(project);
  if (hasErrors(settings.diagnostics))
    throw new UsageError(`the settings in ${project.meow} are wrong`, 'see: meow doctor');
  const { config } = settings;
  note(`${id}: ${run.records.length === 1 ? 'started' : 'resumed'} (${run.program.source.name})`);
  const session: SessionOptions = {
    store,
    config,
    adapters: new Adapters(project),
    reporter: quietReporter(id, note),
    environment: ownEnvironment(),
    fleetProject: project,
    onHeld,
  };
  const stop = (await shared.stops()).find((each) => each.id === id);
  const how = { retryFailed: run.state.phase === 'ended', allowance: {}, limits: config.limits };
  const state = await (stop === undefined
    ? resumeSession(session, id, how)
    : stopSession(session, id, stop.by, stop.force));
  note(`${id}: ${state.end ?? 'paused'}`);
}

/** Of the folder in which the run was started. */
function projectOf(id: string, { request }: RunState): Project {
  const cwd = request?.cwd ?? '';
  if (tolerate(UNUSABLE, false, () => statSync(cwd).isDirectory())) return findProject(cwd);
  throw new UsageError(
    `run ${id} waits: its folder ${cwd} does not exist on this machine`,
    'create it, or start a worker where it exists',
  );
}

function quietReporter(id: string, note: (line: string) => void): Reporter {
  const say = (line: string): void => note(`${id}: ${line}`);
  return { open: () => {}, observe: () => {}, note: say, warn: say, end: () => {}, abandon: () => {} };
}
