// What an operator does with the database of a fleet: create a namespace, give rights, and check that all is well.

import { randomUUID } from 'node:crypto';

import { UsageError } from '../base/errors.ts';
import { DEFAULT_LIMITS } from '../ir/program.ts';
import { checkNamespace, type FleetAddress, schemaOf } from '../stores/postgres/address.ts';
import { Connection } from '../stores/postgres/connection.ts';
import { type FleetRole, migrate, requireSchema, ROLES } from '../stores/postgres/migrate.ts';
import { fleetStore } from './fleet-stores.ts';

/** Returns the versions of the schema before and after; 0 if there was none. */
export async function initFleet(address: FleetAddress): Promise<{ readonly from: number; readonly to: number }> {
  return connected(address, (db) => migrate(db, address));
}

/** Creates the user if it does not exist. Returns whether it did. */
export async function giveRole(address: FleetAddress, role: string, user: string): Promise<boolean> {
  const known = ROLES.find((each) => each === role);
  if (known === undefined) throw new UsageError(`${JSON.stringify(role)} is not a role`, `roles: ${ROLES.join(', ')}`);
  const name = checkUser(user);
  return connected(address, async (db) => {
    await requireSchema(db, address);
    const [found] = await db.query<{ name: string }>('select rolname as name from pg_roles where rolname = $1', [name]);
    if (found === undefined) await db.query(`create role "${name}" login`);
    await db.query(`grant ${schemaOf(address)}_${known satisfies FleetRole} to "${name}"`);
    return found !== undefined;
  });
}

function checkUser(name: string): string {
  if (/^[a-z_][a-z0-9_-]{0,62}$/.test(name)) return name;
  throw new UsageError(`${JSON.stringify(name)} is not a user name`, 'use lower-case letters, digits, "_" and "-"');
}

export interface FleetCheck {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'failed';
  readonly detail: string;
  readonly cure: string | null;
}

/** What can be known without changing anything; and whether a run can be stored, by storing one that is removed again. */
export async function checkFleet(address: FleetAddress): Promise<readonly FleetCheck[]> {
  checkNamespace(address.namespace);
  const checks = await connected(address, async (db) => [
    await attempt('connection', async () => {
      const { greeted, answers } = await db.backends();
      return greeted === answers
        ? ok('direct')
        : failed('there is a connection pooler before the server', 'name the server itself in the address');
    }),
    ...(await settingsOf(db)),
    await attempt('clock', async () => {
      const before = Date.now();
      const [row] = await db.query<{ now: number }>(
        'select extract(epoch from clock_timestamp())::float8 * 1000 as now',
      );
      const apart = Math.round((row?.now ?? 0) - (before + Date.now()) / 2);
      const text = `the server is ${Math.abs(apart)} ms ${apart < 0 ? 'behind' : 'ahead'}`;
      return Math.abs(apart) < CLOCK_MS ? ok(text) : warning(text, 'let both synchronize their clocks (NTP)');
    }),
    await attempt('schema', async () => {
      await requireSchema(db, address);
      return ok(`namespace ${address.namespace}`);
    }),
  ]);
  if (checks.some(({ status }) => status === 'failed')) return checks;
  return [...checks, await attempt('runs', () => storeProbe(address))];
}

const CLOCK_MS = 1_000;

type Finding = Omit<FleetCheck, 'name'>;

async function settingsOf(db: Connection): Promise<readonly FleetCheck[]> {
  const [row] = await db.query<Readonly<Record<'version' | 'fsync' | 'commit' | 'checksums', string>>>(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
       (select reset_val from pg_settings where name = 'synchronous_commit') as commit,
       current_setting('data_checksums') as checksums`,
  );
  const { version = '', fsync, commit = '', checksums } = row ?? {};
  return [
    { name: 'server', ...ok(`PostgreSQL ${version}`) },
    {
      name: 'fsync',
      ...(fsync === 'on'
        ? ok('on')
        : warning('off: if the machine of the database crashes, finished steps are lost', 'set fsync = on')),
    },
    {
      name: 'synchronous_commit',
      ...(commit === 'off'
        ? warning('off by default; meow turns it on for its own sessions', 'set synchronous_commit = on')
        : ok(commit)),
    },
    {
      name: 'data_checksums',
      ...(checksums === 'on'
        ? ok('on')
        : warning('off: a damaged page is noticed only if it has a record', 'enable them: pg_checksums --enable')),
    },
  ];
}

async function storeProbe(address: FleetAddress): Promise<Finding> {
  const store = fleetStore(address);
  try {
    const began = performance.now();
    await (await store.create(`check-${randomUUID().slice(0, 8)}`, PROBE)).close();
    return ok(`stored and removed one in ${Math.round(performance.now() - began)} ms`);
  } finally {
    await store.close();
  }
}

const PROBE: Parameters<ReturnType<typeof fleetStore>['create']>[1] = {
  format: 2,
  source: { language: 'meow', name: 'check' },
  entry: 'main',
  blocks: { main: { name: 'main', parameters: [], steps: [], naming: 'path', visits: null } },
  cleanup: { success: null, failure: null, stop: null },
  limits: DEFAULT_LIMITS,
  drainMs: 0,
  onFailure: 'drain',
  machines: {},
  steerings: {},
  attachments: {},
};

async function attempt(name: string, act: () => Promise<Finding>): Promise<FleetCheck> {
  try {
    return { name, ...(await act()) };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { name, ...failed(error.message, error.hint) };
  }
}

async function connected<T>(address: FleetAddress, act: (db: Connection) => Promise<T>): Promise<T> {
  const db = new Connection(address, { name: 'meow fleet' });
  try {
    return await act(db);
  } finally {
    await db.close();
  }
}

function ok(detail: string): Finding {
  return { status: 'ok', detail, cure: null };
}

function warning(detail: string, cure: string): Finding {
  return { status: 'warning', detail, cure };
}

function failed(detail: string, cure: string | null): Finding {
  return { status: 'failed', detail, cure };
}
