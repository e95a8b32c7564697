// Lease of a working tree: a file in the tree's git folder that names the one run that may use it. A lease belongs to a run,
// not to a process: it outlives the engine, and a resumed run still has it.

import { randomBytes } from 'node:crypto';
import { link, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../sys/errno.ts';
import { readJsonFile } from '../../sys/json-file.ts';
import { GitError } from './git-error.ts';

export const LEASE_FILE = 'meow-lease.json';

/** Null if the tree is free. */
export function leaseHolder(gitDir: string): string | null {
  const lease = readJsonFile(join(gitDir, LEASE_FILE)) as { readonly run: string } | null;
  return lease?.run ?? null;
}

/** Succeeds if the run already has it. */
export async function takeLease(request: {
  readonly gitDir: string;
  readonly path: string;
  readonly run: string;
}): Promise<void> {
  const { gitDir, path, run } = request;
  if (await createJsonFile(join(gitDir, LEASE_FILE), { run })) return;
  const holder = leaseHolder(gitDir);
  if (holder === run) return;
  throw new GitError(
    'leased',
    `the run ${holder ?? '(unknown)'} uses ${path}`,
    `wait until it ends, or stop it (meow stop ${holder ?? 'RUN'}) and clean up (meow gc)`,
  );
}

/** Creates a JSON file atomically. False if it exists. */
export async function createJsonFile(path: string, value: unknown): Promise<boolean> {
  const draft = `${path}.${randomBytes(4).toString('hex')}`;
  await writeFile(draft, `${JSON.stringify(value)}\n`, { mode: 0o600 });
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
    return false;
  } finally {
    await rm(draft, { force: true });
  }
}
