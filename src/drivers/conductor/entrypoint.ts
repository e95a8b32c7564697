// The program of a script validator: where it is, whether it may run, and how.
//
// entrypoint/1  A relative path below the run directory as workflows write it (`.meow/run/ID/…`) means the run
//               directory or, if it does not exist there, the same path in the worktree. Any other relative path means
//               the worktree.
// entrypoint/2  It may run if it is in one of these two folders, or on the list. A link out of the folder in which it
//               is allowed is refused; so is a listed one that leads out of worktree and run directory.
// entrypoint/3  A file that is not executable runs with the interpreter of its first line, or else of its extension.

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
  /** Paths or globs, relative to the worktree, or absolute. */
  readonly allowed: readonly string[];
}

export interface Refusal {
  readonly outcome: 'error' | 'killed_policy';
  readonly message: string;
}

/** The command, before its arguments. */
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

/** Interpreter and the rest of the line as one argument, as the system passes it. Null if there is none. */
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
