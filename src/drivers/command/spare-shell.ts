// What a shell is told that was started before anybody knew what for (launcher.ts). To start one takes longer than most
// commands do; this one has done that, waits for a text on its stdin, and becomes the shell of the command by reading it.
//
// H1  The script sees what it would see in a shell of its own (drivers/recording-shell.ts, W3), and its processes are known by its marker. The
//     shell itself is known by that of the spares of its run (environment.ts): what a process was started with cannot be changed.
// H2  The whole text is read before anything of it is done, since it is one line to the shell. What does not parse ends the
//     shell, and then the command is started in one of its own, and says what is wrong there.
// H3  Whatever else is in the way ends it as well, with the status of one that has not begun; but not once it has said `begun`.
//
// It is for dash, and for what can be told so; all else is started as a whole.

import { join } from 'node:path';
import { shellWord } from '../../ir/quote.ts';
import type { ProcessRequest } from '../process.ts';
import { NOT_BEGUN } from '../recording-shell.ts';

/** The descriptors by which it says that it begins, and on which it is told that it may. */
export const REPORTS = 7;
export const GO_AHEAD = 8;

export interface SpareOrders {
  /** The script's $0, which the shell was started with. */
  readonly name: string;
  readonly text: string;
}

/** `variables`: names and values by turns. `id`: of the request, as it is told and waited for. Null where it cannot be. */
export function ordersFor(request: ProcessRequest, variables: readonly string[], id: string): SpareOrders | null {
  const { cwd, folder, path, args, isDash } = request;
  const [flag, script = '', name = '', ...parameters] = args;
  const exported = assignments(variables);
  if (isDash !== true || flag !== '-c' || exported === null || !standsAlone(script)) return null;
  const files = `>>${shellWord(join(folder, 'stdout'))} 2>>${shellWord(join(folder, 'stderr'))}`;
  const opening = [
    `meow_go=;trap 'exit ${NOT_BEGUN}' EXIT;umask 077`,
    // The folder may have been replaced since.
    `[ . -ef ${shellWord(cwd)} ]||exit`,
    `exec </dev/null ${files}`,
    ...(exported === '' ? [] : [`export ${exported}`]),
  ].join(';');
  // Messages of the shell tell lines, and the first is the script's.
  if (/\n/.test(`${opening}${path}${name}`)) return null;
  const text = [
    opening,
    ...(parameters.length === 0 ? [] : [`set -- ${parameters.map(shellWord).join(' ')}`]),
    // An id of another is of one that died before it could read it.
    `until [ "$meow_go" = ${id} ];do read -r meow_go <&${GO_AHEAD}||exit;done`,
    `echo begun ${id} $$ >&${REPORTS};exec ${REPORTS}>&- ${GO_AHEAD}<&-;unset meow_go;trap - EXIT`,
    `case x in x) ${script}\n;;esac`,
  ].join(';');
  return Buffer.byteLength(text) > TEXT_MAX ? null : { name, text };
}

/** Half of what a pipe takes without anybody reading. */
const TEXT_MAX = 32 * 1024;

/**
 * Whether it is the same between `case x in x)` and `;;esac`: it cannot end what it has not begun, nor draw our line to its last
 * one. And it does not ask how its shell was started, by `$-`.
 */
function standsAlone(script: string): boolean {
  const text = script.replaceAll('\\\n', '');
  return !/;;|esac|\\$|\$\{?#?-/.test(text);
}

/** Null where one of them cannot be set as it would be found at the start of a shell. */
function assignments(variables: readonly string[]): string | null {
  const texts: string[] = [];
  for (let at = 0; at < variables.length; at += 2) {
    const name = variables[at] ?? '';
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || OF_ITS_START.test(name)) return null;
    texts.push(`${name}=${shellWord(variables[at + 1] ?? '')}`);
  }
  return texts.join(' ');
}

/** What shells ignore in what they are started with, or look at first; what their loader does; and what we use ourselves. */
const OF_ITS_START = /^(?:(?:IFS|LINENO|OLDPWD|OPTIND|PPID|PWD)$|LD_|GLIBC_|MALLOC_|meow_)/;
