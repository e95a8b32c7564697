// The command line of a shell that runs a user's script and records its start and exit in `status` (step-folder.ts).
//
// shell/1  The shell creates `status` exclusively and first: of two shells for one attempt, one runs the script.
// shell/2  Builtins of the shell write the second line when the script has ended, however it ended, unless a signal kills the
//          shell itself. It is never a status that the script did not have.
// shell/3  The script sees what it would see in a plain `sh -c`: $0, parameters, umask, line numbers, messages.
//
// There are two forms. `within`: the recording shell runs the script itself, with a trap on EXIT. This costs no more than a
// plain `sh -c`. It works only in dash (bash runs the trap when it is killed, with $? 0, against shell/2), and only for
// scripts that do not change their shell (exec, trap, set …). `around`: for any other script; the recording shell starts the
// user's shell and waits for it, which costs one more process.
//
// A script whose first lines do not parse leaves no record: nothing of it ran, so it may run again.

import { accessSync, constants, realpathSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';

import { shellWord } from '../ir/quote.ts';
import { ABSENT, tolerate } from '../sys/errors.ts';
import { UMASK } from '../sys/files.ts';
import { bootId, HAS_PROC } from '../sys/process.ts';

export interface Shell {
  /** As the user named it: the script's $0. */
  readonly name: string;
  readonly path: string;
  readonly isDash: boolean;
}

export interface CommandLine {
  readonly path: string;
  readonly args: readonly string[];
  /** Contents of the file `script`, which must exist first; null if the shell does not read it. */
  readonly script: string | null;
  /** The script, if it is neither in an argument nor in a file. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Exit status of a shell that could not create `status`: another shell has (shell/1), or the disk refuses. */
export const NOT_BEGUN = 125;

/** Null if the program does not exist. */
export function findShell(name: string, searchPath: string): Shell | null {
  const path = findProgram(name, searchPath);
  return path === null ? null : { name, path, isDash: basename(realpathSync(path)) === 'dash' };
}

export function findProgram(name: string, searchPath: string): string | null {
  const candidates = name.includes('/') ? [name] : searchPath.split(delimiter).map((folder) => join(folder, name));
  return candidates.find(isExecutable) ?? null;
}

export function commandLine(request: {
  readonly shell: Shell;
  /** A POSIX shell, for the form `around`. */
  readonly recorder: Shell;
  readonly script: string;
  /** The paths of the attempt's files without their names (step-folder.ts). */
  readonly prefix: string;
  /** It contains secrets: others can read arguments, and files stay. */
  readonly isHidden?: boolean;
}): CommandLine {
  const { shell, recorder, prefix, isHidden = false } = request;
  const environment = isHidden ? inEnvironment(request.script) : {};
  const script = isHidden ? evaluated(Object.keys(environment)) : request.script;
  const long = Buffer.byteLength(script) > ARGUMENT_MAX;
  const begin = beginning(prefix);
  if (shell.isDash && !long && !MEDDLES.test(script)) {
    const args = ['-c', `${begin}trap ${shellWord(ending(prefix))} EXIT;${script}`, shell.name];
    return { path: shell.path, args, script: null, environment };
  }
  // Discards the shell's own messages ("Killed"): they are not the script's.
  const named = POSIX_SHELLS.has(basename(shell.path)) ? ' "$3"' : '';
  const run = `exec 3>&2 2>/dev/null;"$1" -c "$2"${named} 2>&3 3>&-`;
  const text = `${begin}${run};${ending(prefix)};exit "$meow_status"`;
  const command = long ? `. ${shellWord(`${prefix}script`)}` : script;
  const args = ['-c', text, recorder.name, shell.path, command, shell.name];
  return { path: recorder.path, args, script: long ? script : null, environment };
}

/** In pieces: the system limits a single variable as it limits an argument. */
function inEnvironment(script: string): Readonly<Record<string, string>> {
  const pieces: string[] = [];
  for (const character of script) {
    const last = pieces.at(-1);
    if (last === undefined || last.length >= PIECE_MAX) pieces.push(character);
    else pieces[pieces.length - 1] = last + character;
  }
  return Object.fromEntries(pieces.map((piece, at) => [`MEOW_SCRIPT_${at}`, piece]));
}

/** A script that runs the one in these variables, which its own commands do not inherit. */
function evaluated(names: readonly string[]): string {
  const whole = names.map((name) => `\${${name}}`).join('');
  return `meow_script="${whole}";unset ${names.join(' ')};eval "$meow_script"`;
}

const PIECE_MAX = 30_000;

/** Linux limits a single argument to 128 KiB, part of which the recording needs. */
const ARGUMENT_MAX = 100_000;

const POSIX_SHELLS = new Set(['sh', 'dash', 'ash', 'bash', 'zsh', 'ksh', 'mksh', 'yash']);

/**
 * Matches everything that might replace the shell, its EXIT trap or the builtins that the trap uses, or that might spell
 * one of these in a hidden way. A false match costs a little time: the script runs in the form `around`.
 */
const MEDDLES = new RegExp(
  [
    String.raw`\b(?:exec|trap|eval|source|umask|ulimit|alias|readonly|command)\b`,
    String.raw`\bset\s+(?!-[eu]{1,2}\s*(?:[;\n]|$))`,
    String.raw`\b(?:echo|umask)\s*\(`,
    String.raw`\$\$`,
    // The dot command.
    String.raw`(?:^|[\s;&|({!\x60])\.\s`,
    // A command name that is computed or concatenated.
    String.raw`(?:^|[;&|(){}\n!\x60]|\b(?:then|do|else|elif|if|while|until)\s)\s*["']*[$\x60]`,
    String.raw`\w["'\\]+\w`,
  ].join('|'),
);

/** The first commands of a recording shell (shell/1). `more`: a second line for `status`. */
export function beginning(prefix: string, more: string | null = null): string {
  const uptime = HAS_PROC ? 'read meow_uptime meow_rest </proc/uptime;' : 'meow_uptime=-;';
  const lines = `"$$ $meow_uptime ${bootId()}"${more === null ? '' : ` ${shellWord(more)}`}`;
  const record = `printf '%s\\n' ${lines} 2>/dev/null >${shellWord(`${prefix}status`)}`;
  return `set -C;umask 077;${uptime}${record}||exit ${NOT_BEGUN};set +C;umask ${UMASK.toString(8)};`;
}

/**
 * Records the status of the last command, and keeps it in $meow_status (shell/2). Unless the script has put a link or a pipe in
 * the place of the record: the shell would write through the one, and wait for the other.
 */
export function ending(prefix: string): string {
  const path = shellWord(`${prefix}status`);
  return `meow_status=$?;[ -h ${path} ]||[ -p ${path} ]||echo "exit $meow_status">>${path}`;
}

function isExecutable(path: string): boolean {
  return tolerate([...ABSENT, 'EACCES', 'ELOOP'], false, () => {
    accessSync(path, constants.X_OK);
    return true;
  });
}
