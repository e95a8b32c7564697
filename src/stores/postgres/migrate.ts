// The schema of a namespace: created, brought up to date, and checked.
//
//   migrate/1  One process at a time migrates a namespace, under an advisory lock, in one transaction.
//   migrate/2  A later schema is refused, and an earlier one is not used before it is migrated.
//   migrate/3  Roles get functions and nothing else: SCHEMA_viewer reads, SCHEMA_operator and SCHEMA_worker also write what
//              they own.

import { UsageError } from '../../base/errors.ts';
import { type FleetAddress, schemaOf } from './address.ts';
import type { Connection } from './connection.ts';
import { RUNS } from './migrations/001-runs.ts';

/** Never change one that was released: add another. */
const MIGRATIONS: readonly string[] = [RUNS];
const SCHEMA_VERSION = MIGRATIONS.length;
/** What the functions use, such as `starts_with` and `idle_session_timeout`. */
const SERVER_MIN = 14;

export const ROLES = ['viewer', 'operator', 'worker'] as const;
export type FleetRole = (typeof ROLES)[number];

const READING = [
  'version',
  'list_runs',
  'read_program',
  'read_lines',
  'holder',
  'list_files',
  'read_file',
  'files_mark',
  'whereabouts',
  'list_machines',
  'count_waiting',
];
const WRITING = [
  'hello',
  'beat',
  'goodbye',
  'create_run',
  'show_run',
  'take_run',
  'append',
  'release',
  'waiting_runs',
  'make_waiting',
  'stop_run',
  'move_run',
  'stops',
  'put',
  'new_version',
  'stage',
  'publish',
  'remove_files',
];

/** Returns the versions before and after. */
export async function migrate(
  db: Connection,
  address: FleetAddress,
): Promise<{ readonly from: number; readonly to: number }> {
  await requireServer(db, address);
  const schema = schemaOf(address);
  const from = (await storedVersion(db, schema)) ?? 0;
  if (from > SCHEMA_VERSION) throw laterSchema(address, from);
  await db.query(`
    select pg_advisory_xact_lock(hashtextextended('meow/migrate/${schema}', 0));
    create schema if not exists ${schema};
    set local search_path = ${schema}, pg_temp;
    create table if not exists migrations (number int primary key, at timestamptz not null default clock_timestamp());
    ${ROLES.map((role) => createRole(`${schema}_${role}`)).join('\n')}
    ${MIGRATIONS.map((text, at) => applyOnce(text.replaceAll('SCHEMA', schema), at + 1)).join('\n')}
    ${grants(schema)}
  `);
  return { from, to: SCHEMA_VERSION };
}

/** Throws unless the namespace has the schema of this version. */
export async function requireSchema(db: Connection, address: FleetAddress): Promise<void> {
  const [row] = await db.query<{ version: number }>(`select ${schemaOf(address)}.version() as version`);
  const found = row?.version ?? 0;
  if (found > SCHEMA_VERSION) throw laterSchema(address, found);
  if (found < SCHEMA_VERSION) {
    throw new UsageError(
      `namespace ${address.namespace} has schema ${found}, and this version of meow needs ${SCHEMA_VERSION}`,
      `bring it up to date, as its owner: meow fleet init --namespace ${address.namespace}`,
    );
  }
}

async function requireServer(db: Connection, { shown }: FleetAddress): Promise<void> {
  const [row] = await db.query<{ version: string }>(`select current_setting('server_version_num') as version`);
  const major = Math.floor(Number(row?.version ?? 0) / 10_000);
  if (major >= SERVER_MIN) return;
  throw new UsageError(
    `the database ${shown} is PostgreSQL ${major}, and a fleet needs at least ${SERVER_MIN}`,
    'upgrade the server, or use another one',
  );
}

/** Null if the namespace does not exist. */
async function storedVersion(db: Connection, schema: string): Promise<number | null> {
  const [table] = await db.query<{ found: boolean }>('select to_regclass($1) is not null as found', [
    `${schema}.migrations`,
  ]);
  if (table?.found !== true) return null;
  const [row] = await db.query<{ version: number | null }>(`select max(number) as version from ${schema}.migrations`);
  return row?.version ?? 0;
}

function laterSchema({ namespace }: FleetAddress, found: number): UsageError {
  return new UsageError(
    `namespace ${namespace} has schema ${found}, which this version of meow does not know (it knows ${SCHEMA_VERSION})`,
    'update meow on this machine',
  );
}

function createRole(role: string): string {
  return `do $do$ begin
    if not exists (select from pg_roles where rolname = '${role}') then create role ${role} nologin; end if;
  end $do$;`;
}

function applyOnce(text: string, number: number): string {
  return `do $once$ begin
    if not exists (select from migrations where number = ${number}) then
      execute $text$${text}$text$;
      insert into migrations (number) values (${number});
    end if;
  end $once$;`;
}

function grants(schema: string): string {
  return `
    revoke all on schema ${schema} from public;
    revoke all on all tables in schema ${schema} from public;
    revoke all on all functions in schema ${schema} from public;
    grant usage on schema ${schema} to ${ROLES.map((role) => `${schema}_${role}`).join(', ')};
    do $do$ declare each record; begin
      for each in select p.oid::regprocedure as signature, p.proname as name from pg_proc p
        where p.pronamespace = '${schema}'::regnamespace and p.prosecdef
      loop
        execute format('alter function %s set search_path = ${schema}, pg_temp', each.signature);
        if each.name in (${READING.map((name) => `'${name}'`).join(', ')}) then
          execute format('grant execute on function %s to ${schema}_viewer, ${schema}_operator, ${schema}_worker', each.signature);
        elsif each.name in (${WRITING.map((name) => `'${name}'`).join(', ')}) then
          execute format('grant execute on function %s to ${schema}_operator, ${schema}_worker', each.signature);
        end if;
      end loop;
    end $do$;`;
}
