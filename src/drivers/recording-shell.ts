// The text that a command's shell is given: the user's script, and around it what keeps `status` (step-folder.ts).
//
// W1  `status` is created exclusively and first: of two shells that were started for one attempt, one runs the script.
// W2  Its second line is written by builtins of that shell once the script has ended, however it ended, short of a signal
//     to the shell itself. It never tells a status that the script did not have.
// W3  The script sees what it would see in a plain `sh -c`: $0, parameters, umask, line numbers, messages.
//
// Two forms. `within`: the script is run by the recording shell itself, with a trap on EXIT. It costs no more than a
// plain `sh -c`, and holds only for dash (bash runs that trap when it is killed, with $? 0: a lie, W2) and for scripts
// that do not meddle with the shell they run in (exec, trap, set …). `around`: any other; the recording shell starts
// the user's shell and waits for it, which costs one more process.
//
// A script whose first lines do not parse leaves no record: nothing of it ran, so it may be run again.

import { accessSync, constants, realpathSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { shellWord } from '../ir/quote.ts';
import { ABSENT, isErrno } from '../sys/errno.ts';

export interface Shell {
  /** As the user named it: the script's $0. */
  readonly name: string;
  readonly path: string;
  readonly isDash: boolean;
}

export interface CommandLine {
  readonly path: string;
  readonly args: readonly string[];
  /** The script is read from its file: it must be there before the shell starts. */
  readonly readsScript: boolean;
}

/** The status of a shell that could not create `status`: another has (W1), or the disk refuses. */
export const NOT_BEGUN = 125;

/** Null where there is no such program. */
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
  readonly folder: string;
  readonly bootId: string;
  readonly hasUptime: boolean;
  readonly umask: number;
}): CommandLine {
  const { shell, recorder, script, folder } = request;
  const long = Buffer.byteLength(script) > ARGUMENT_MAX;
  const begin = beginning(request);
  if (shell.isDash && !long && !MEDDLES.test(script)) {
    const end = `meow_status=$?;echo "exit $meow_status">>${shellWord(`${folder}/status`)}`;
    return {
      path: shell.path,
      args: ['-c', `${begin}trap ${shellWord(end)} EXIT;${script}`, shell.name],
      readsScript: false,
    };
  }
  // The shell's own remarks ("Killed") are not the script's: they go nowhere.
  const named = POSIX_SHELLS.has(basename(shell.path)) ? ' "$3"' : '';
  const run = `exec 3>&2 2>/dev/null;"$1" -c "$2"${named} 2>&3 3>&-`;
  const end = `meow_status=$?;echo "exit $meow_status">>${shellWord(`${folder}/status`)};exit "$meow_status"`;
  const given = long ? `. ${shellWord(`${folder}/script`)}` : script;
  return {
    path: recorder.path,
    args: ['-c', `${begin}${run};${end}`, recorder.name, shell.path, given, shell.name],
    readsScript: long,
  };
}

/** No single argument may have more than 128 KiB on Linux; the records around the script need some of it. */
const ARGUMENT_MAX = 100_000;

const POSIX_SHELLS = new Set(['sh', 'dash', 'ash', 'bash', 'zsh', 'ksh', 'mksh', 'yash']);

/**
 * Whatever might replace the shell, its EXIT trap, or the builtins of the trap; and whatever might spell one of them in
 * a way that is not seen here. A script that is suspected wrongly runs all the same, a little slower.
 */
const MEDDLES = new RegExp(
  [
    String.raw`\b(?:exec|trap|eval|source|umask|ulimit|alias|readonly|command)\b`,
    String.raw`\bset\s+(?!-[eu]{1,2}\s*(?:[;\n]|$))`,
    String.raw`\b(?:echo|umask)\s*\(`,
    String.raw`\$\$`,
    // The dot command.
    String.raw`(?:^|[\s;&|({!\x60])\.\s`,
    // A command's name that is computed, or glued together.
    String.raw`(?:^|[;&|(){}\n!\x60]|\b(?:then|do|else|elif|if|while|until)\s)\s*["']*[$\x60]`,
    String.raw`\w["'\\]+\w`,
  ].join('|'),
);

/** What a recording shell does first (W1). */
export function beginning(request: { folder: string; bootId: string; hasUptime: boolean; umask: number }): string {
  const uptime = request.hasUptime ? 'read meow_uptime meow_rest </proc/uptime;' : 'meow_uptime=-;';
  const record = `echo $$ "$meow_uptime" ${request.bootId} 2>/dev/null >${shellWord(`${request.folder}/status`)}`;
  return `set -C;umask 077;${uptime}${record}||exit ${NOT_BEGUN};set +C;umask ${request.umask.toString(8)};`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    if (isErrno(error, ...ABSENT, 'EACCES', 'ELOOP')) return false;
    throw error;
  }
}
