// Requirements on tmux, its start-up environment, and the settings of our servers.
//
// A private server gets a small part of our environment and no configuration file; agents inherit nothing from it. The
// user's own server starts as the user would start it, and its settings stay unchanged.

import { chmodSync, existsSync, lstatSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tmpdir } from 'node:os';

import { err, ok, present, type Result } from '../../../base/errors.ts';
import { ABSENT, isErrno, REFUSED } from '../../../sys/errors.ts';
import { MARKER } from '../../../sys/process.ts';
import type { DriverContext } from '../../environment.ts';
import type { Command } from './command-line.ts';

type Environment = Readonly<Record<string, string>>;

/** Without our marker: processes that carry it are killed together with the step that may run us. */
export function clientEnvironment(environment: Environment, isPrivate: boolean): Environment {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => (isPrivate ? SERVER_VARIABLES.test(name) : name !== MARKER)),
  );
}

/** Programs, home folders, language and time zone. */
const SERVER_VARIABLES = /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|TERMINFO|TERMINFO_DIRS)$/;

/** Settings that exist only for the whole server. Idempotent. */
export function privateSettings(environment: Environment): readonly Command[] {
  return [
    ['set-option', '-s', 'default-terminal', terminalName(environment)],
    ['set-option', '-s', 'escape-time', '0'],
    // The default keeps the last thousand commands in memory, including their environments.
    ['set-option', '-s', 'message-limit', '0'],
    ['set-option', '-g', 'mouse', 'on'],
  ];
}

/** A program for a window that only has to exist: waits for a line that never comes. */
export const IDLE_PROGRAM = ['/bin/sh', '-c', 'read -r line'];

/** The same, for a session that people may notice in their own server. */
export const CONTROL_PROGRAM = [
  '/bin/sh',
  '-c',
  'echo "meow talks to tmux by this session, and ends it. Agents are in others: meow agents"; read -r line',
];

/** Keeps pastes unchanged, according to `list-commands`: newer versions sanitize them unless -S is given. */
export function pasteFlags(usage: readonly string[]): string {
  return usage.some((line) => /\[-\w*S\w*\]/.test(line)) ? '-dprS' : '-dpr';
}

/** Whether `tmux -V` reports a version before 3.2. Some builds report no number. */
export function tooOld(version: string): boolean {
  const [, major, minor] = /^tmux (?:next-)?(\d+)\.(\d+)/.exec(version) ?? [];
  return major !== undefined && (Number(major) < 3 || (Number(major) === 3 && Number(minor) < 2));
}

/** tmux's preferred terminal type, if its description is installed. */
function terminalName(environment: Environment): string {
  const { TERMINFO = '', TERMINFO_DIRS = '', HOME = '' } = environment;
  const own = [TERMINFO, HOME === '' ? '' : join(HOME, '.terminfo'), ...TERMINFO_DIRS.split(':')];
  const isKnown = [...own.filter((folder) => folder !== ''), ...TERMINFO_FOLDERS]
    // Some systems use the letter as folder name, others its code.
    .some((folder) => ['t', '74'].some((letter) => existsSync(join(folder, letter, 'tmux-256color'))));
  return isKnown ? 'tmux-256color' : 'screen-256color';
}

const TERMINFO_FOLDERS = ['/etc/terminfo', '/lib/terminfo', '/usr/lib/terminfo', '/usr/share/terminfo'];

// The socket of a run's own tmux server: `tmux-UID/default` in a folder of the run. That is where tmux itself looks
// below TMUX_TMPDIR, so commands of the run and people reach the server with plain `tmux` and that variable.
//
// One server for each run: versions before 3.7 sometimes crash, with all sessions, if several clients use one. The
// folder follows from the run alone, so a later engine finds its terminals. If the run's path is too long for a socket,
// the folder is a temporary one with the run's random mark in its name.

/** Systems allow 103 or 107. */
const SOCKET_BYTES_MAX = 100;

type SocketOwner = Pick<DriverContext, 'files' | 'mark'>;

export function socketPaths(run: SocketOwner): { readonly folder: string; readonly socket: string } {
  const folders = [run.files.localPath('tmux'), join(tmpdir(), `meow-${run.mark}-tmux`), `/tmp/meow-${run.mark}-tmux`];
  const places = folders.map((folder) => ({ folder, socket: join(folder, `tmux-${UID}`, 'default') }));
  const fitting = places.find(({ socket }) => Buffer.byteLength(socket) <= SOCKET_BYTES_MAX);
  return present(fitting, 'no place is short enough for a socket');
}

/** Creates its folders. */
export function privateSocket(run: SocketOwner): Result<ReturnType<typeof socketPaths>, string> {
  const place = socketPaths(run);
  try {
    for (const path of [place.folder, dirname(place.socket)]) {
      if (!isMadePrivate(path)) return err(`${path} is not a folder of yours alone: move it away`);
    }
    return ok(place);
  } catch (error) {
    if (!isErrno(error, ...ABSENT, ...REFUSED)) throw error;
    return err(`cannot create a socket for the run's tmux server: ${error.message}`);
  }
}

const UID = String(process.getuid?.() ?? 0);

/** Mode 0700 whatever the umask. An existing folder must be ours, closed to others, and not a link. */
function isMadePrivate(path: string): boolean {
  try {
    mkdirSync(path, 0o700);
    chmodSync(path, 0o700);
    return true;
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
    const stats = lstatSync(path);
    const isOurs = process.getuid === undefined || stats.uid === process.getuid();
    return stats.isDirectory() && isOurs && (stats.mode & 0o077) === 0;
  }
}
