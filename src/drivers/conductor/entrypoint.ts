// The program of a script validator: where it is, whether it may run, and how.
//
// entrypoint/1  A relative path below the run directory as workflows write it (`.meow/run/ID/…`) means the run
//               directory or, if it does not exist there, the same path in the worktree. Any other relative path means
//               the worktree.
// entrypoint/2  It may run if it is in one of these two folders, or on the list. A link out of the folder in which it
//               is allowed is refused; so is a listed one that leads out of worktree and run directory.
// entrypoint/3  A file that is not executable runs with the interpreter of its first line, or else of its extension.

import { accessSync, closeSync, constants, existsSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { extname, isAbsolute, join, normalize, relative, resolve } from 'node:path';
import { execFile } from 'node:child_process';

import { err, ok, type Result } from '../../base/errors.ts';
import { ABSENT, isErrno, REFUSED, tolerate } from '../../sys/errors.ts';
import { isWithin, writePrivate } from '../../sys/files.ts';
import type { ConductorContext } from './context.ts';
import { globs } from './globs.ts';

export interface Refusal {
  readonly outcome: 'error' | 'killed_policy';
  readonly message: string;
}

/** The command, before its arguments. */
export function findEntrypoint(
  entrypoint: string,
  worktree: string,
  context: ConductorContext,
): Result<readonly string[], Refusal> {
  const { runDir, settings } = context;
  if (entrypoint === '' || entrypoint.includes('\0')) return failed(`${JSON.stringify(entrypoint)} is no path`);
  const { path, home } = locate(entrypoint, worktree, context);
  const onList = globs(settings.allowedEntrypoints.map((one) => one.replace(/^(?:\.\/)+/, '')));
  const listed = onList(path) || (isWithin(worktree, path) && onList(relative(worktree, path)));
  if (home === null && !listed) {
    return refused(
      `the entrypoint ${entrypoint} is not in the run's directory, and [conductor] allowed_entrypoints does not list it`,
    );
  }
  try {
    const real = realpathSync.native(path);
    // A listed program outside both folders is used as it is.
    const trees = home !== null ? [home] : [worktree, runDir].filter((tree) => isWithin(tree, path));
    if (trees.length > 0 && !trees.some((tree) => isWithin(realpathSync.native(tree), real))) {
      return refused(`the entrypoint ${entrypoint} is a link that leads to ${real}, out of where it may be`);
    }
    if (!statSync(real).isFile()) return failed(`the entrypoint ${entrypoint} is not a regular file`);
    return wordsFor(path, entrypoint);
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return failed(`the entrypoint ${entrypoint} does not exist (${path})`);
    if (isErrno(error, ...REFUSED)) return failed(`the entrypoint ${entrypoint} cannot be read (${error.code})`);
    throw error;
  }
}

/** `home`: which of the two folders contains it; null if neither. */
function locate(entrypoint: string, worktree: string, { runDir, runDirName }: ConductorContext) {
  const inTree = resolve(worktree, runDirName);
  const path = resolve(worktree, entrypoint);
  if (!isAbsolute(entrypoint) && isWithin(inTree, path)) {
    const inRun = join(runDir, relative(inTree, path));
    return exists(inRun) || !exists(path) ? { path: inRun, home: runDir } : { path, home: inTree };
  }
  return { path, home: [runDir, inTree].find((folder) => isWithin(normalize(folder), path)) ?? null };
}

function wordsFor(path: string, entrypoint: string): Result<readonly string[], Refusal> {
  const isExecutable = tolerate(['EACCES'], false, () => accessSync(path, constants.X_OK)) !== false;
  if (isExecutable) return ok([path]);
  // Interpreter and the rest of the line as one argument, as the system passes it.
  const [line = ''] = readFileStart(path, SHEBANG_BYTES).split('\n');
  const [, interpreter, argument = ''] = /^#![ \t]*(\S+)[ \t]*(.*?)[ \t\r]*$/.exec(line) ?? [];
  if (interpreter !== undefined) return ok([interpreter, ...(argument === '' ? [] : [argument]), path]);
  const program = PROGRAMS[extname(path).toLowerCase()];
  if (program !== undefined) return ok([program, path]);
  return failed(
    `the entrypoint ${entrypoint} is not executable, and neither its first line nor its name says what runs it: ` +
      'make it executable, begin it with #!, or name it .sh, .py or .js',
  );
}

const PROGRAMS: Readonly<Record<string, string>> = {
  '.sh': 'sh',
  '.py': 'python3',
  '.js': 'node',
  '.mjs': 'node',
  '.cjs': 'node',
};

const SHEBANG_BYTES = 256;

/** A character that the cut splits becomes U+FFFD. Throws system errors. */
export function readFileStart(path: string, bytesMax: number): string {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(Math.min(statSync(path).size, bytesMax));
    return bytes.toString('utf8', 0, readSync(file, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(file);
  }
}

function exists(path: string): boolean {
  return tolerate([...ABSENT, 'ELOOP', 'EACCES', 'ENAMETOOLONG'], null, () => statSync(path)) !== null;
}

function failed(message: string): Result<never, Refusal> {
  return err({ outcome: 'error', message });
}

function refused(message: string): Result<never, Refusal> {
  return err({ outcome: 'killed_policy', message });
}

/** How this system starts a program without network access, if it can. */
export interface NetworkDenial {
  readonly kind: 'denied' | 'open';
  /** The method, or why there is none, for people. */
  readonly reason: string;
  readonly prefix: readonly string[];
  /** The program can have a loopback of its own, so that a server and its client inside one validator can connect. */
  readonly loopback: boolean;
}

/** The command without network. `folder`: for a file of ours. */
export function withoutNetwork(denial: NetworkDenial, words: readonly string[], folder: string): readonly string[] {
  if (!denial.loopback) return [...denial.prefix, ...words];
  // In a file: inside the command, it would look like a change of its own shell (drivers/recording-shell.ts).
  const path = join(folder, 'loopback.sh');
  if (!existsSync(path)) writePrivate(path, 'ip link set lo up 2>/dev/null\nexec "$@"\n');
  return [...denial.prefix, 'sh', path, ...words];
}

/** Tests it once: constant while the machine runs, but the programs depend on PATH. */
export function networkDenial(environment: Readonly<Record<string, string>>): Promise<NetworkDenial> {
  const path = environment['PATH'] ?? '';
  const probed = probes.get(path) ?? probe(path);
  probes.set(path, probed);
  return probed;
}

const probes = new Map<string, Promise<NetworkDenial>>();

const PROBE = `for how in -n -rn; do
  unshare "$how" true 2>/dev/null || continue
  unshare "$how" ip link set lo up 2>/dev/null && echo "$how lo" || echo "$how"
  exit 0
done
unshare -n true`;

function probe(path: string): Promise<NetworkDenial> {
  return new Promise((resolve) => {
    const settings = { env: { PATH: path, LC_ALL: 'C' }, timeout: PROBE_MS };
    execFile('/bin/sh', ['-c', PROBE], settings, (error, stdout, stderr) => {
      const [how, loopback] = stdout.trim().split(' ');
      if (error !== null || how === undefined || how === '') {
        const reason = stderr.trim().split('\n').at(-1) || (error?.message ?? 'unshare said nothing');
        resolve({ kind: 'open', reason, prefix: [], loopback: false });
      } else {
        const reason = `unshare ${how}${loopback === undefined ? ', without a loopback' : ''}`;
        resolve({ kind: 'denied', reason, prefix: ['unshare', how], loopback: loopback !== undefined });
      }
    });
  });
}

const PROBE_MS = 5_000;
