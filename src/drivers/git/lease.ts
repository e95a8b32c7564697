// Who works in a working tree: one run, by a file in the tree's own folder of git. It is about runs and not about processes:
// it outlives the engine, and whoever resumes the run has it.

import { randomBytes } from 'node:crypto';
import { link, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../../sys/errno.ts';
import { readJsonFile } from '../../sys/json-file.ts';
import { Refusal } from './git-error.ts';

export const LEASE_FILE = 'meow-lease.json';

/** Null where nobody does. */
export function leaseHolder(gitDir: string): string | null {
  const lease = readJsonFile(join(gitDir, LEASE_FILE)) as { readonly run: string } | null;
  return lease?.run ?? null;
}

/** Also where the run has it already. */
export async function takeLease(request: {
  readonly gitDir: string;
  readonly path: string;
  readonly run: string;
}): Promise<void> {
  const { gitDir, path, run } = request;
  if (await createWhole(join(gitDir, LEASE_FILE), { run })) return;
  const holder = leaseHolder(gitDir);
  if (holder === run) return;
  throw new Refusal(
    'leased',
    `the run ${holder ?? '(unknown)'} works in ${path}`,
    `let it end, or stop it (meow stop ${holder ?? 'RUN'}) and clean up (meow gc)`,
  );
}

/** False where it is there already. Nobody ever sees a part of it. */
export async function createWhole(path: string, value: unknown): Promise<boolean> {
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
