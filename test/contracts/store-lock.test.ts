// The lock, with flock(1) and without it: one holder at a time under contention, and never a dead one.

import { spawnSync } from 'node:child_process';
import { mkdtemp, readdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Lock, LockAnswer, LockHolder } from '../../src/stores/lock.ts';
import { isHolderAlive, readLockHolder, takeLock } from '../../src/stores/lock.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'meow-lock-'));
  path = join(folder, 'wf-1.yaml.lock');
});
afterEach(() => rm(folder, { recursive: true }));

const WITHOUT = { flock: '/nowhere/flock' };

describe.each([
  ['flock', {}],
  ['file', WITHOUT],
] as const)('a lock by %s', (kind, options) => {
  const take = (): Promise<LockAnswer> => takeLock(path, options);

  test('has one holder, which is named, and leaves nothing behind', async () => {
    const lock = taken(await take());
    expect(lock.kind).toBe(kind);
    const holder = await readLockHolder(path);
    expect(holder).toMatchObject({ kind, pid: process.pid });
    expect(JSON.parse(await readFile(path, 'utf8'))).toEqual(holder);
    expect(isHolderAlive(holder as LockHolder)).toBe(true);
    expect(await take()).toEqual({ kind: 'held', by: holder });
    expect(await readdir(folder)).toEqual(['wf-1.yaml.lock']);
    await lock.release();
    expect(await readdir(folder)).toEqual([]);
    expect(await readLockHolder(path)).toBeNull();
    await taken(await take()).release();
  });

  test.each([
    ['a process that has ended', async () => ({ pid: spawnSync('true').pid })],
    ['a pid that belongs to another process now', async () => ({ processStart: '1' })],
    ['before a reboot', async () => ({ bootId: 'another' })],
  ])('is taken over from %s', async (_title, change) => {
    await leaveLock({ kind: 'file', ...(await change()) });
    expect(isHolderAlive((await readLockHolder(path)) as LockHolder)).toBe(false);
    const lock = taken(await take());
    expect(await readLockHolder(path)).toMatchObject({ kind, pid: process.pid });
    expect((await take()).kind).toBe('held');
    await lock.release();
    expect(await readdir(folder)).toEqual([]);
  });

  test.each(['', '{"pid":', 'null', '[]'])('is taken over from a file that says %j', async (text) => {
    await writeFile(path, text);
    const lock = taken(await take());
    expect((await take()).kind).toBe('held');
    await lock.release();
    expect(await readdir(folder)).toEqual([]);
  });

  test('is respected by an engine that uses the other locking method', async () => {
    const lock = taken(await take());
    expect(await takeLock(path, kind === 'flock' ? WITHOUT : {})).toMatchObject({ kind: 'held', by: { kind } });
    await lock.release();
    expect(await readdir(folder)).toEqual([]);
  });

  test('is released without affecting others when its file was deleted by hand', async () => {
    const lock = taken(await take());
    await unlink(path);
    await lock.release();
    await taken(await take()).release();
  });

  test('is held by one engine at a time under contention', async () => {
    await leaveLock({ kind: 'file', bootId: 'another' });
    let holders = 0;
    let turns = 0;
    const comeAndGo = async (): Promise<void> => {
      for (let tries = 0; tries < (kind === 'flock' ? 12 : 60); tries++) {
        const answer = await take();
        if (answer.kind === 'held') {
          // Otherwise all attempts may be used up while one engine holds it.
          await new Promise((resolve) => setImmediate(resolve));
          continue;
        }
        holders++;
        expect(holders).toBe(1);
        await new Promise((resolve) => setImmediate(resolve));
        turns++;
        // Some die instead of releasing: their text becomes that of a process from before a reboot.
        if (kind === 'file' && turns % 3 === 0) await die();
        holders--;
        if (kind === 'flock' || turns % 3 > 0) await answer.lock.release();
      }
    };
    await Promise.all(Array.from({ length: 8 }, comeAndGo));
    expect(turns).toBeGreaterThan(8);
    const last = await take();
    if (last.kind === 'taken') await last.lock.release();
    expect((await readdir(folder)).filter((name) => !name.includes('.after-'))).toEqual([]);
  });
});

test('a lock file that was deleted between opening and locking is not the lock', async () => {
  const command = join(folder, 'flock');
  // Like a release at just that moment, once.
  await writeFile(command, `#!/bin/sh\nrm "$0.once" 2>/dev/null && rm '${path}'\nexec flock "$@"\n`, { mode: 0o700 });
  await writeFile(`${command}.once`, '');
  const lock = taken(await takeLock(path, { flock: command }));
  expect(await readLockHolder(path)).toMatchObject({ pid: process.pid });
  expect((await takeLock(path)).kind).toBe('held');
  await lock.release();
});

function taken(answer: LockAnswer): Lock {
  expect(answer.kind).toBe('taken');
  if (answer.kind !== 'taken') throw new Error('the lock is held');
  return answer.lock;
}

/** The lock of a holder that is gone. */
async function leaveLock(change: Partial<LockHolder>): Promise<void> {
  const other = join(folder, 'other');
  const lock = taken(await takeLock(other, WITHOUT));
  const holder = (await readLockHolder(other)) as LockHolder;
  await lock.release();
  await writeFile(path, JSON.stringify({ ...holder, ...change }));
}

/** Makes the current holder one from before a reboot. */
async function die(): Promise<void> {
  const holder = await readLockHolder(path);
  for (const name of await readdir(folder)) {
    const file = join(folder, name);
    const text = await readIfThere(file);
    if (!text.includes(`"nonce":"${holder?.nonce}"`)) continue;
    // By rename: a reader must not find it empty, as the lock of a crash.
    await writeFile(`${file}.dead`, text.replace(/"bootId":"[^"]*"/, '"bootId":"another"'));
    await rename(`${file}.dead`, file);
    return;
  }
  throw new Error('nobody holds the lock');
}

/** Attempts leave files behind for a moment. */
async function readIfThere(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}
