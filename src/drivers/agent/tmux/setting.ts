// What tmux must be, what it is started with, and how a server of ours is set.
//
// A private server sees little of our environment, no configuration file, and none of it reaches the agents. The user's own
// server is started as the user would start it, and none of its settings is changed.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { MARKER } from '../../environment.ts';
import type { Command } from './command-line.ts';

type Environment = Readonly<Record<string, string>>;

/** Without our marker: what carries it is ended together with the step that we may be part of. */
export function clientEnvironment(environment: Environment, isPrivate: boolean): Environment {
  return Object.fromEntries(
    Object.entries(environment).filter(([name]) => (isPrivate ? SERVER_VARIABLES.test(name) : name !== MARKER)),
  );
}

/** Where programs and homes are, and in which language and zone. */
const SERVER_VARIABLES = /^(?:PATH|HOME|USER|LOGNAME|SHELL|LANG|LC_\w+|TZ|TMPDIR|TERMINFO|TERMINFO_DIRS)$/;

/** What can only be set for all sessions of a server at once. Harmless to repeat. */
export function privateSettings(environment: Environment): readonly Command[] {
  return [
    ['set-option', '-s', 'default-terminal', terminalName(environment)],
    ['set-option', '-s', 'escape-time', '0'],
    // It would keep the last thousand commands in memory, with the environments that are in them.
    ['set-option', '-s', 'message-limit', '0'],
    ['set-option', '-g', 'mouse', 'on'],
  ];
}

/** What a window runs that only has to be there: it waits for a line that nobody types. */
export const IDLE_PROGRAM = ['/bin/sh', '-c', 'read -r line'];

/** The same, for a session that people may come across in a server of their own. */
export const CONTROL_PROGRAM = [
  '/bin/sh',
  '-c',
  'echo "meow talks to tmux by this session, and ends it. Agents are in others: meow agents"; read -r line',
];

/** So that a paste is not touched, by what `list-commands` tells: newer ones make it harmless unless told not to (-S). */
export function pasteFlags(usage: readonly string[]): string {
  return usage.some((line) => /\[-\w*S\w*\]/.test(line)) ? '-dprS' : '-dpr';
}

/** Whether `tmux -V` tells of one before 3.2. Some builds tell no number. */
export function tooOld(version: string): boolean {
  const [, major, minor] = /^tmux (?:next-)?(\d+)\.(\d+)/.exec(version) ?? [];
  return major !== undefined && (Number(major) < 3 || (Number(major) === 3 && Number(minor) < 2));
}

/** The one that tmux itself asks for, where programs will find its description. */
function terminalName(environment: Environment): string {
  const { TERMINFO = '', TERMINFO_DIRS = '', HOME = '' } = environment;
  const own = [TERMINFO, HOME === '' ? '' : join(HOME, '.terminfo'), ...TERMINFO_DIRS.split(':')];
  const isKnown = [...own.filter((folder) => folder !== ''), ...TERMINFO_FOLDERS]
    // Some systems file by the letter, others by its number.
    .some((folder) => ['t', '74'].some((letter) => existsSync(join(folder, letter, 'tmux-256color'))));
  return isKnown ? 'tmux-256color' : 'screen-256color';
}

const TERMINFO_FOLDERS = ['/etc/terminfo', '/lib/terminfo', '/usr/lib/terminfo', '/usr/share/terminfo'];
