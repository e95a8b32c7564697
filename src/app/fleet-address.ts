// The fleet that a command means: the address of its database, and what this machine keeps for it.
//
//   ~/.meow/fleet.url                              the address, unless MEOW_FLEET has it
//   ~/.meow/fleets/NAMESPACE-HASH/machine.json     who this machine is in that fleet
//   ~/.meow/fleets/NAMESPACE-HASH/.meow/workflows  the runs that this machine drives
//
//   fleet-address/1  An address may contain a password, so it is never an argument, and its file is private.

import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { checkNamespace, type FleetAddress, parseAddress } from '../stores/postgres/address.ts';
import type { Owner } from '../stores/postgres/owner-session.ts';
import { ABSENT, tolerate } from '../sys/errors.ts';
import { lookAt, makeFolder, readJsonFile, readUntrustedFile, replacePrivate } from '../sys/files.ts';
import { sharedFolder } from './project.ts';

export type { FleetAddress } from '../stores/postgres/address.ts';

/** `namespace`: instead of the one in the address. */
export function fleetAddress(namespace?: string): FleetAddress {
  const address = parseAddress(process.env['MEOW_FLEET'] || addressInFile());
  return namespace === undefined ? address : { ...address, namespace: checkNamespace(namespace) };
}

function addressInFile(): string {
  const path = join(sharedFolder(), 'fleet.url');
  const stats = lookAt(path);
  if (stats === undefined) {
    throw new UsageError(
      'no fleet is named',
      `set MEOW_FLEET to the address of its database, or write it to ${path}; to try one here: meow fleet dev`,
    );
  }
  if (!stats.isFile() || (stats.mode & 0o077) !== 0) {
    throw new UsageError(
      `${path} may be read by others, and may contain a password`,
      `make it private: chmod 600 ${path}`,
    );
  }
  return (readUntrustedFile(path, ADDRESS_BYTES_MAX)?.text ?? '').trim();
}

const ADDRESS_BYTES_MAX = 10_000;

/** What this machine keeps for a fleet. */
export interface FleetHome {
  /** The folder in which commands find the runs that this machine drives. */
  readonly folder: string;
  readonly runs: string;
}

export function fleetHome({ host, port, database, namespace }: FleetAddress): FleetHome {
  const hash = createHash('sha256').update(`${host}\n${port}\n${database}`).digest('hex').slice(0, 8);
  const folder = join(sharedFolder(), 'fleets', `${namespace}-${hash}`);
  return { folder, runs: join(folder, '.meow', 'workflows') };
}

/** This machine, as owner of runs. It gets its id with the first call. */
export function thisMachine({ folder }: FleetHome): Owner {
  const path = join(folder, 'machine.json');
  const known = readJsonFile(path) as { readonly id?: unknown } | null;
  const id = typeof known?.id === 'string' ? known.id : null;
  if (id !== null) return { id, kind: 'machine', hostId: hostId() };
  const made = `${hostname()
    .replaceAll(/[^A-Za-z0-9-]/g, '-')
    .slice(0, 20)}-${randomUUID().slice(0, 8)}`;
  makeFolder(folder);
  replacePrivate(path, `${JSON.stringify({ id: made })}\n`);
  return { id: made, kind: 'machine', hostId: hostId() };
}

/** Of the machine, for all its users. */
export function hostId(): string {
  const id = tolerate(ABSENT, '', () => readFileSync('/etc/machine-id', 'utf8')).trim();
  return createHash('sha256')
    .update(id === '' ? hostname() : id)
    .digest('hex')
    .slice(0, 16);
}
