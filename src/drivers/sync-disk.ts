// Makes files durable that many programs have written: a worktree, the objects of a repository, the files of a visit.
//
// One flush of a whole file system costs less than one for each file and each folder, and misses none. A system whose `sync`
// knows no single file system flushes all of them.

import { spawn } from 'node:child_process';

import type { Answer, Driver } from '../engine/ports.ts';

/** Everything that was written to the file systems of these paths survives a power loss from now on. */
export async function syncDisk(paths: readonly string[]): Promise<void> {
  if (paths.length > 0 && !(await succeeds(['-f', '--', ...new Set(paths)]))) await succeeds([]);
}

/** Makes durable what an effect has written to these places, before its outcome is recorded. */
export function syncing(driver: Driver, places: readonly string[]): Driver {
  const synced =
    (answer: Answer): Answer =>
    (outcome) =>
      void syncDisk(places).then(() => answer(outcome));
  return {
    start: (effect, answer, note) => driver.start(effect, synced(answer), note),
    find: (effect, answer, note) => driver.find(effect, synced(answer), note),
    stop: (effectId, how) => driver.stop(effectId, how),
    conclude: (effectId) => driver.conclude?.(effectId),
    decide: (effectId, verdict) => driver.decide?.(effectId, verdict),
  };
}

/** False if it fails, or is not installed. */
function succeeds(args: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn('sync', args, { stdio: 'ignore' });
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code === 0));
  });
}
