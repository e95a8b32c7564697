// The program of a script validator: where it is, whether it may be run, and by what.
//
//   entrypoint/1  Relative and below the run's directory as workflows write it (`.meow/run/ID/…`): the run's directory; where it is
//       not there, the same path in the worktree. Any other relative path: the worktree.
//   entrypoint/2  It may be run if it is in one of those two folders, or on the list. A link that leads out of the folder that it is
//       allowed in is refused, wherever it leads; so is a listed one that leads out of worktree and run's directory.
//   entrypoint/3  What is not executable is run by what its first line names, or else by what its name ends in.

import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { extname, isAbsolute, join, normalize, relative, resolve } from 'node:path';
import { ABSENT, isErrno, REFUSED } from '../../sys/errno.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { globs } from './globs.ts';

export interface EntrypointRequest {
  readonly entrypoint: string;
  readonly worktree: string;
  readonly runDir: string;
  /** `.meow/run/ID`. */
  readonly runDirName: string;
  /** Paths or globs, seen from the worktree, or absolute. */
  readonly allowed: readonly string[];
}

export interface Refusal {
  readonly outcome: 'error' | 'killed_policy';
  readonly message: string;
}

/** The words that run it, before its arguments. */
export function findEntrypoint(request: EntrypointRequest): Result<readonly string[], Refusal> {
  const { entrypoint, worktree, runDir, allowed } = request;
  if (entrypoint === '' || entrypoint.includes('\0')) return failed(`${JSON.stringify(entrypoint)} is no path`);
  const { path, home } = locate(request);
  const onList = globs(allowed.map((one) => one.replace(/^(?:\.\/)+/, '')));
  const listed = onList(path) || (isWithin(worktree, path) && onList(relative(worktree, path)));
  if (home === null && !listed) {
    return refused(
      `the entrypoint ${entrypoint} is not in the run's directory, and [conductor] allowed_entrypoints does not list it`,
    );
  }
  try {
    const real = realpathSync.native(path);
    // A listed one that is nowhere near the work is as its owner has it.
    const trees = home !== null ? [home] : [worktree, runDir].filter((tree) => isWithin(tree, path));
    if (trees.length > 0 && !trees.some((tree) => isWithin(realpathSync.native(tree), real))) {
      return refused(`the entrypoint ${entrypoint} is a link that leads to ${real}, out of where it may be`);
    }
    if (!statSync(real).isFile()) return failed(`the entrypoint ${entrypoint} is no regular file`);
    return wordsFor(path, entrypoint);
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return failed(`the entrypoint ${entrypoint} does not exist (${path})`);
    if (isErrno(error, ...REFUSED)) return failed(`the entrypoint ${entrypoint} cannot be read (${error.code})`);
    throw error;
  }
}

/** `home`: of the two folders that need no list, the one that it is in. */
function locate(request: EntrypointRequest): { readonly path: string; readonly home: string | null } {
  const { entrypoint, worktree, runDir, runDirName } = request;
  const inTree = resolve(worktree, runDirName);
  const path = resolve(worktree, entrypoint);
  if (!isAbsolute(entrypoint) && isWithin(inTree, path)) {
    const inRun = join(runDir, relative(inTree, path));
    return exists(inRun) || !exists(path) ? { path: inRun, home: runDir } : { path, home: inTree };
  }
  return { path, home: [runDir, inTree].find((folder) => isWithin(normalize(folder), path)) ?? null };
}

function wordsFor(path: string, entrypoint: string): Result<readonly string[], Refusal> {
  if (isExecutable(path)) return ok([path]);
  const named = shebangOf(path);
  if (named !== null) return ok([...named, path]);
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

/** The program, and all that follows it as one word, as the system takes it. Null where there is none. */
function shebangOf(path: string): readonly string[] | null {
  const bytes = Buffer.alloc(SHEBANG_BYTES);
  const file = openSync(path, 'r');
  try {
    const [line = ''] = bytes.toString('utf8', 0, readSync(file, bytes)).split('\n');
    const found = /^#![ \t]*(\S+)[ \t]*(.*?)[ \t\r]*$/.exec(line);
    if (found === null) return null;
    const [, program = '', argument = ''] = found;
    return argument === '' ? [program] : [program, argument];
  } finally {
    closeSync(file);
  }
}

const SHEBANG_BYTES = 256;

/** The folder itself is not within. */
export function isWithin(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

function exists(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (isErrno(error, ...ABSENT, 'ELOOP', 'EACCES', 'ENAMETOOLONG')) return false;
    throw error;
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch (error) {
    if (isErrno(error, 'EACCES')) return false;
    throw error;
  }
}

function failed(message: string): Result<never, Refusal> {
  return err({ outcome: 'error', message });
}

function refused(message: string): Result<never, Refusal> {
  return err({ outcome: 'killed_policy', message });
}
