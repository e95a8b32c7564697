// `meow fleet`: sets a fleet up, checks and shows it. Also what other commands do with --fleet.

import { fleetAddress, fleetHome, thisMachine } from '../../app/fleet-address.ts';
import { checkFleet, type FleetCheck, giveRole, initFleet } from '../../app/fleet-database.ts';
import { startDevFleet, stopDevFleet } from '../../app/fleet-dev.ts';
import { fleetStatus, type FleetStatus } from '../../app/fleet-status.ts';
import { fleetStore, homeStore } from '../../app/fleet-stores.ts';
import { resolveRun } from '../../app/runs.ts';
import { UsageError } from '../../base/errors.ts';
import { didYouMean } from '../../base/names.ts';
import { EXIT, printLine, printLines, printResult } from '../output.ts';
import { inColumns } from '../terminal.ts';

interface FleetFlags {
  readonly namespace?: string;
  readonly json?: true;
  readonly stop?: true;
}

const ACTIONS = ['init', 'role', 'status', 'check', 'restore', 'dev'] as const;

export async function fleet(wanted: string, names: readonly string[], flags: FleetFlags): Promise<number> {
  const action = ACTIONS.find((each) => each === wanted);
  if (action === undefined) {
    throw new UsageError(
      `meow fleet cannot ${JSON.stringify(wanted)}`,
      `${didYouMean(wanted, ACTIONS)}it can ${ACTIONS.join(', ')}`,
    );
  }
  if (flags.stop && action !== 'dev') throw new UsageError('--stop is for meow fleet dev', 'leave it out');
  const takes = NAMES[action];
  if (names.length !== takes.length)
    throw new UsageError(
      `meow fleet ${action} needs ${takes.join(' and ') || 'no name'}`,
      `meow fleet ${[action, ...takes].join(' ')}`,
    );
  const [first = '', second = ''] = names;
  switch (action) {
    case 'init':
      return init(flags.namespace);
    case 'role':
      return role(first, second, flags.namespace);
    case 'status':
      return status(flags.json === true);
    case 'check':
      return check(flags);
    case 'restore':
      return restore(first);
    case 'dev':
      return dev(flags.stop === true);
  }
}

const NAMES: Readonly<Record<(typeof ACTIONS)[number], readonly string[]>> = {
  init: [],
  role: ['ROLE', 'USER'],
  status: [],
  check: [],
  restore: ['RUN'],
  dev: [],
};

async function init(namespace: string | undefined): Promise<number> {
  const address = fleetAddress(namespace);
  const { from, to } = await initFleet(address);
  const done = from === to ? 'is up to date' : from === 0 ? 'created' : `brought from schema ${from} to ${to}`;
  printLine(`namespace ${address.namespace} in ${address.shown}: ${done}`);
  return EXIT.done;
}

async function role(name: string, user: string, namespace: string | undefined): Promise<number> {
  const isKnown = await giveRole(fleetAddress(namespace), name, user);
  printLine(`${user} is ${name}`);
  if (!isKnown) printLine(`  the user is new and has no password; set one: psql -c '\\password ${user}'`);
  return EXIT.done;
}

async function check({ namespace, json }: FleetFlags): Promise<number> {
  const checks = await checkFleet(fleetAddress(namespace));
  const exit = checks.some(({ status: found }) => found === 'failed') ? EXIT.failed : EXIT.done;
  if (json) printResult({ checks });
  else printLines(checks.flatMap(checkLines));
  return exit;
}

function checkLines({ name, status: found, detail, cure }: FleetCheck): readonly string[] {
  return [`${found.padEnd(8)} ${name}: ${detail}`, ...(cure === null ? [] : [`           ${cure}`])];
}

async function status(json: boolean): Promise<number> {
  const found = await fleetStatus();
  if (json) return printResult(found);
  printLines(statusLines(found));
  return EXIT.done;
}

function statusLines({ machines, waiting }: FleetStatus): readonly string[] {
  const cells = machines.map((each) => [
    each.host,
    each.lives ? `working (pid ${each.process})` : 'not connected',
    each.since,
    String(each.driven),
    String(each.waiting),
    each.id,
  ]);
  const table =
    machines.length === 0
      ? ['no machine has worked for this fleet; start one: meow worker']
      : inColumns(['HOST', 'WORKER', 'SINCE', 'DRIVES', 'WAITING', 'MACHINE'], cells);
  return waiting === 0 ? table : [...table, `${waiting === 1 ? '1 run waits' : `${waiting} runs wait`} for any worker`];
}

async function restore(wanted: string): Promise<number> {
  const { shared } = homeStore(fleetAddress());
  const id = await resolveRun(shared, wanted);
  const count = await shared.restore(id);
  await shared.close();
  if (count === 0) printLine(`the database has every record of ${id} that this machine knows`);
  else printLine(`restored ${count === 1 ? '1 record' : `${count} records`} of ${id}`);
  return EXIT.done;
}

async function dev(stop: boolean): Promise<number> {
  if (stop) {
    printLine(
      (await stopDevFleet())
        ? 'stopped the database of the fleet; its runs are kept'
        : 'the database of the fleet is not running',
    );
    return EXIT.done;
  }
  const url = await startDevFleet();
  printLines([
    `export MEOW_FLEET='${url}'`,
    'meow worker',
    '# then, with the same MEOW_FLEET: meow run FILE --fleet · stop the database: meow fleet dev --stop',
  ]);
  return EXIT.done;
}

/** `meow resume --fleet`. `here`: on this machine, without the files of the run. `others`: other flags that were given. */
export async function resumeInFleet(
  wanted: string,
  { here, ...others }: Readonly<Record<string, unknown>>,
): Promise<number> {
  const given = Object.entries(others).find(
    ([key, value]) => value !== undefined && !(key === 'wait' && value === true),
  );
  if (given !== undefined) {
    const flag = given[0].replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    throw new UsageError(`--${flag} does not go with --fleet`, 'leave it out');
  }
  const store = fleetStore();
  const id = await resolveRun(store, wanted);
  if (here === true) {
    await store.moveTo(id, thisMachine(fleetHome(fleetAddress())).id);
    await store.close();
    printLine(`${id} waits for the worker on this machine; steps that were running elsewhere run again`);
    return EXIT.done;
  }
  const waits = await store.makeWaiting(id);
  const where = await store.whereabouts(id);
  await store.close();
  if (!waits && where?.isDriven)
    throw new UsageError(`run ${id} is driven on ${where.host ?? 'a machine'}`, `watch it: meow status ${id} --fleet`);
  printLine(`${id} waits for ${where?.host === null || where === null ? 'a worker' : `the worker on ${where.host}`}`);
  return EXIT.done;
}

/** `meow stop --fleet`. */
export async function stopInFleet(wanted: string, force: boolean): Promise<number> {
  const store = fleetStore();
  const id = await resolveRun(store, wanted);
  const isAsked = await store.stop(id, force ? 'meow stop --force' : 'meow stop', force);
  const where = await store.whereabouts(id);
  await store.close();
  if (!isAsked) throw new UsageError(`run ${id} has ended`, `meow status ${id} --fleet shows it`);
  printLine(
    where?.isDriven
      ? `stopping ${id} (on ${where.host ?? 'its machine'})`
      : `${id} is stopped as soon as a worker takes it`,
  );
  return EXIT.done;
}
