// The stores of a fleet: for commands that create and read runs from anywhere, and for the worker that drives them.
//
//   home/1  The worker keeps a run as a folder like any other: journal, Program, files, socket and inbox. So commands on that
//           machine work with it. The file `fleet.json` says that the database decides, and no engine but the worker opens it.
//   home/2  What a step printed is in the database before its end is recorded, with secrets masked.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import type { Journal, RunFiles, Store } from '../engine/ports.ts';
import { FLEET_MARK, runLockedError } from '../stores/errors.ts';
import { localRunFiles } from '../stores/local-run-files.ts';
import { takeLock } from '../stores/lock.ts';
import { clientOwner } from '../stores/postgres/owner-session.ts';
import { type PostgresStore, postgresStore } from '../stores/postgres/store.ts';
import { replacePrivate } from '../sys/files.ts';
import { type FleetAddress, fleetAddress, type FleetHome, fleetHome, hostId, thisMachine } from './fleet-address.ts';
import { redactorOfRun } from './redact.ts';
import { shipOutputs } from './ship-outputs.ts';

export type { FleetMachine, PostgresStore, Whereabouts } from '../stores/postgres/store.ts';

/** For a command that creates and reads runs. */
export function fleetStore(address: FleetAddress = fleetAddress()): PostgresStore {
  return postgresStore({ address, owner: clientOwner(hostId()) });
}

export interface HomeStore {
  /** Opens runs to drive them here. */
  readonly store: Store;
  readonly shared: PostgresStore;
  readonly home: FleetHome;
}

export function homeStore(address: FleetAddress): HomeStore {
  const home = fleetHome(address);
  const shared = postgresStore({ address, owner: thisMachine(home), home: home.runs });
  const { isShared: _, ...local } = shared;
  const files = (runId: string): RunFiles => localRunFiles(join(home.runs, runId));
  return { shared, home, store: { ...local, files, open: (runId) => openAtHome(shared, home, runId) } };
}

async function openAtHome(shared: PostgresStore, { runs }: FleetHome, runId: string): Promise<Journal> {
  const folder = join(runs, runId);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const answer = await takeLock(`${folder}.yaml.lock`);
  if (answer.kind === 'held') throw runLockedError(runId, answer.by);
  try {
    const journal = await shared.open(runId);
    replacePrivate(join(folder, FLEET_MARK), '{"format":1}\n');
    replacePrivate(join(folder, 'program.json'), await shared.programText(runId));
    const local = localRunFiles(folder);
    const ship = shipOutputs(local, shared.files(runId), () => redactorOfRun(folder));
    return {
      ...journal,
      async append(records) {
        await ship(records);
        await journal.append(records);
      },
      async close() {
        await journal.close();
        await answer.lock.release();
      },
    };
  } catch (error) {
    await answer.lock.release();
    throw error;
  }
}
