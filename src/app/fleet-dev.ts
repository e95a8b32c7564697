// `meow fleet dev`: a fleet on this machine, for trying it out.

import { join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { parseAddress } from '../stores/postgres/address.ts';
import { initFleet } from './fleet-database.ts';
import {
  findPostgres,
  initPostgres,
  type LocalPostgres,
  serverUser,
  startPostgres,
  stopPostgres,
  urlOf,
} from './local-postgres.ts';
import { sharedFolder } from './project.ts';

/** Starts the server, unless it is running. Returns the address of the fleet. */
export async function startDevFleet(): Promise<string> {
  const server = devServer();
  await initPostgres(server);
  await startPostgres(server);
  const url = urlOf(server);
  await initFleet(parseAddress(url));
  return url;
}

/** False if it is not running. The runs are kept. */
export function stopDevFleet(): Promise<boolean> {
  return stopPostgres(devServer());
}

function devServer(): LocalPostgres {
  const binaries = findPostgres();
  if (binaries === null) {
    throw new UsageError(
      'PostgreSQL is not installed: there is no initdb, pg_ctl and postgres',
      'install it (Debian: apt-get install postgresql; macOS: brew install postgresql), or name a server: MEOW_FLEET',
    );
  }
  const user = serverUser();
  // Another user cannot enter the home folder of root.
  const folder = user === null ? join(sharedFolder(), 'fleet-dev') : ROOT_FOLDER;
  if (folder.length > SOCKET_PATH_MAX - SOCKET_NAME.length) {
    throw new UsageError(`the path ${folder} is too long for a socket`, 'use a shorter HOME');
  }
  return { binaries, folder, user };
}

const ROOT_FOLDER = process.env['MEOW_FLEET_DEV'] ?? '/var/lib/meow-fleet-dev';
const SOCKET_NAME = '/socket/.s.PGSQL.5432';
/** The system's limit. */
const SOCKET_PATH_MAX = 100;
