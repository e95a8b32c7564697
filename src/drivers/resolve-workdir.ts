// Resolves and checks a working directory.

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import { ABSENT, isErrno, REFUSED } from '../sys/errno.ts';

/**
 * Absolute; an error is a sentence. An empty path means the base. If the path has several lines, the last one counts: a
 * command like `git worktree add` prints messages before the path.
 */
export function resolveWorkdir(from: string, path: string): Result<string, string> {
  if (path.includes('\0')) return err('the path of its folder contains a NUL byte');
  const whole = found(resolve(from, path));
  const last = path.trimEnd().split('\n').at(-1) ?? '';
  return whole.ok || last === path ? whole : found(resolve(from, last));
}

function found(path: string): Result<string, string> {
  try {
    return statSync(path).isDirectory() ? ok(path) : err(`its folder ${path} is not a folder`);
  } catch (error) {
    if (isErrno(error, ...ABSENT, 'ENAMETOOLONG')) return err(`its folder ${path} does not exist`);
    if (isErrno(error, ...REFUSED)) return err(`its folder ${path} cannot be entered (${error.code})`);
    throw error;
  }
}
