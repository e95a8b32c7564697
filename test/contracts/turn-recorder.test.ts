// The process that starts programs of turns where they follow each other fast.

import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findRecorder } from '../../src/drivers/turn/recorder.ts';
import type { Recorder } from '../../src/drivers/turn/recorder.ts';
import { until } from '../rig/rig.ts';

const ENVIRONMENT = { PATH: process.env['PATH'] ?? '' };

/** How a program ends that is given something to read. */
function run(recorder: Recorder, folder: string, text: string, stdin: string | null): Promise<number> {
  mkdirSync(folder);
  const bare = { stdin, shell: '/bin/sh', text, direct: null };
  const request = { path: '/bin/sh', args: [], cwd: folder, environment: { base: ENVIRONMENT, own: {} }, folder, bare };
  return new Promise((resolve, reject) => {
    recorder.start(request, {
      begun: () => undefined,
      refused: reject,
      ended: resolve,
      abandoned: () => reject(new Error('abandoned')),
    });
  });
}

function perlOfOurs(): number {
  const told = readdirSync('/proc/self/task').map((task) => readFileSync(`/proc/self/task/${task}/children`, 'utf8'));
  const pids = (told.join(' ').match(/\d+/g) ?? []).map(Number);
  const found = pids.find((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('perl'));
  return found ?? expect.fail('there is no recorder');
}

test('a program that cannot be made ready is refused, and leaves no end that it did not have', async () => {
  const base = mkdtempSync(join(tmpdir(), 'meow-recorder-'));
  const recorder = findRecorder(ENVIRONMENT);
  if (recorder === null) expect.fail('there is no perl');
  try {
    await until(() => recorder.ready, 'the recorder to be ready');
    await expect(run(recorder, join(base, 'one'), ':', join(base, 'nowhere'))).rejects.toThrow('ENOENT');
    // One after the other: the end of the first has been seen when the second is told of.
    expect(await run(recorder, join(base, 'other'), 'exit 3', null)).toBe(3);
    expect(existsSync(join(base, 'one', 'status'))).toBe(false);
  } finally {
    rmSync(base, { recursive: true });
  }
});

test('what one program is given to read is not read by the next, though they are asked for together', async () => {
  const base = mkdtempSync(join(tmpdir(), 'meow-recorder-'));
  const recorder = findRecorder(ENVIRONMENT);
  if (recorder === null) expect.fail('there is no perl');
  try {
    await until(() => recorder.ready, 'the recorder to be ready');
    const prompt = join(base, 'prompt');
    writeFileSync(prompt, 'a secret');
    // Held up, it hears of both at once.
    const pid = perlOfOurs();
    process.kill(pid, 'SIGSTOP');
    const ends = [run(recorder, join(base, 'one'), ':', prompt), run(recorder, join(base, 'other'), 'cat', null)];
    process.kill(pid, 'SIGCONT');
    expect(await Promise.all(ends)).toEqual([0, 0]);
    expect(readFileSync(join(base, 'other', 'stdout'), 'utf8')).toBe('');
  } finally {
    rmSync(base, { recursive: true });
  }
});
