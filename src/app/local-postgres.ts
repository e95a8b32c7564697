// A private PostgreSQL server on this machine, for tests and for trying a fleet out: found, created, started and stopped.
//
//   local-db/1  It listens on a Unix socket in a private folder and nowhere else, so it needs no password.
//   local-db/2  PostgreSQL refuses to run as root, so root starts it as another user, `postgres` by default.

import { execFile } from 'node:child_process';
import { accessSync, chmodSync, chownSync, constants, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

import { UsageError } from '../base/errors.ts';
import { outputOf } from '../sys/process.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';

export interface LocalPostgres {
  /** The programs `initdb`, `pg_ctl` and `postgres` are here. */
  readonly binaries: string;
  /** Contains `data/`, `socket/` and `log`. */
  readonly folder: string;
  /** Null: the user of this process. */
  readonly user: SystemUser | null;
}

export interface SystemUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** The newest installed version; null if none is installed. */
export function findPostgres(): string | null {
  const versions = tolerate(UNUSABLE, [], () => readdirSync(DEBIAN)).toSorted((a, b) => Number(b) - Number(a));
  const folders = [
    ...versions.map((version) => join(DEBIAN, version, 'bin')),
    ...(process.env['PATH'] ?? '').split(delimiter),
  ];
  const isComplete = (folder: string): boolean => PROGRAMS.every((program) => isExecutable(join(folder, program)));
  return folders.find((folder) => folder.startsWith('/') && isComplete(folder)) ?? null;
}

/** The user that runs the server. Throws for root without another one. */
export function serverUser(): SystemUser | null {
  if (process.getuid?.() !== 0) return null;
  const name = 'postgres';
  const uid = Number(outputOf('id', ['-u', name])?.trim() || Number.NaN);
  const gid = Number(outputOf('id', ['-g', name])?.trim() || Number.NaN);
  if (Number.isInteger(uid) && uid > 0 && Number.isInteger(gid)) return { name, uid, gid };
  throw new UsageError(
    'PostgreSQL refuses to run as root, and this machine has no user named postgres',
    'run the command as another user, or add that one: useradd --system postgres',
  );
}

/** Creates the data folder, unless it exists. */
export async function initPostgres(server: LocalPostgres): Promise<void> {
  const { data, socket, log } = pathsOf(server);
  if (existsSync(join(data, 'PG_VERSION'))) return;
  for (const folder of [server.folder, socket]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
    if (server.user !== null) chownSync(folder, server.user.uid, server.user.gid);
  }
  const options = ['--data-checksums', '--auth=trust', '--username=meow', '--encoding=UTF8', '--locale=C', '--no-sync'];
  await perform(server, 'initdb', [`--pgdata=${data}`, ...options], log);
}

/** Resolves once it accepts connections; does nothing if it is running. `settings`: `NAME=VALUE` for this start. */
export async function startPostgres(server: LocalPostgres, settings: readonly string[] = []): Promise<void> {
  if (await isRunning(server)) return;
  const { data, socket, log } = pathsOf(server);
  const given = [`unix_socket_directories=${socket}`, 'listen_addresses=', `unix_socket_permissions=0700`, ...settings];
  const options = given.map((setting) => `-c ${setting}`).join(' ');
  await perform(server, 'pg_ctl', ['start', `--pgdata=${data}`, '--wait', `--log=${log}`, `--options=${options}`], log);
}

/** `how`: `immediate` is like a crash. */
export async function stopPostgres(server: LocalPostgres, how: 'fast' | 'immediate' = 'fast'): Promise<boolean> {
  if (!(await isRunning(server))) return false;
  const { data, log } = pathsOf(server);
  await perform(server, 'pg_ctl', ['stop', `--pgdata=${data}`, '--wait', `--mode=${how}`], log);
  return true;
}

/** The address of its database `postgres`. */
export function urlOf(server: LocalPostgres): string {
  return `postgres:///postgres?host=${encodeURIComponent(pathsOf(server).socket)}&user=meow`;
}

async function isRunning(server: LocalPostgres): Promise<boolean> {
  const { data, log } = pathsOf(server);
  return perform(server, 'pg_ctl', ['status', `--pgdata=${data}`], log).then(
    () => true,
    () => false,
  );
}

function pathsOf({ folder }: LocalPostgres): { readonly data: string; readonly socket: string; readonly log: string } {
  return { data: join(folder, 'data'), socket: join(folder, 'socket'), log: join(folder, 'log') };
}

const run = promisify(execFile);

async function perform(
  { binaries, user, folder }: LocalPostgres,
  program: string,
  args: readonly string[],
  log: string,
): Promise<void> {
  const who = user === null ? {} : { uid: user.uid, gid: user.gid };
  try {
    await run(join(binaries, program), [...args], { ...who, cwd: folder, env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } });
  } catch (error) {
    if (!(error instanceof Error) || !('stderr' in error)) throw error;
    const said = String(error.stderr).trim() || tolerate(UNUSABLE, '', () => readFileSync(log, 'utf8')).trim();
    throw new UsageError(`${program} failed: ${said.split('\n').slice(-3).join(' · ')}`, `see ${log}`);
  }
}

function isExecutable(path: string): boolean {
  return tolerate(UNUSABLE, false, () => {
    accessSync(path, constants.X_OK);
    return true;
  });
}

/** Where Debian's packages put each version. */
const DEBIAN = '/usr/lib/postgresql';
const PROGRAMS = ['initdb', 'pg_ctl', 'postgres'];
