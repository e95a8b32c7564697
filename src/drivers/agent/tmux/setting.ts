// Requirements on tmux, its start-up environment, and the settings of our servers.
//
// A private server gets a small part of our environment and no configuration file; agents inherit nothing from it. The
// user's own server starts as the user would start it, and its settings stay unchanged.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MARKER } from '../../../sys/process-table.ts';
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
