// `~/.meow/env`: environment variables for runs that `meow serve` starts, which knows nothing of the shell of their user.

import { statSync } from 'node:fs';
import { join } from 'node:path';

import { UsageError } from '../../base/errors.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { readUntrustedFile } from '../../sys/files.ts';
import { ownEnvironment, sharedFolder } from '../project.ts';

const BYTES_MAX = 1_000_000;

/** Our own environment, with what the file adds to it. Throws a UsageError if others may read the file, or for a wrong line. */
export function servedEnvironment(): Readonly<Record<string, string>> {
  const path = join(sharedFolder(), 'env');
  const stats = tolerate(UNUSABLE, null, () => statSync(path));
  if (stats === null) return ownEnvironment();
  if ((stats.mode & 0o777) !== 0o600)
    throw new UsageError(`${path} may be read by others, and contains secrets`, `chmod 600 ${path}`);
  const text = readUntrustedFile(path, BYTES_MAX)?.text;
  if (text === null || text === undefined)
    throw new UsageError(`${path} cannot be read`, 'it must be a small file of yours');
  const lines = text.split('\n').flatMap((line, index) => {
    if (line.trim() === '' || line.trimStart().startsWith('#')) return [];
    const [, name, value = ''] = /^\s*([A-Za-z_][A-Za-z0-9_]*)=(.*?)\r?$/.exec(line) ?? [];
    if (name === undefined)
      throw new UsageError(`${path}:${index + 1}: this is not NAME=VALUE`, 'write one variable a line');
    return [[name, value] as const];
  });
  return { ...Object.fromEntries(lines), ...ownEnvironment() };
}
