// Crash sweeps: a run is killed at one append to its journal after the other, until it ends before it can be killed.
//
// `npm test` kills at a sample of the appends, `.ci/run` at every one (sample.ts).

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Rig } from './rig.ts';
import { IS_WHOLE } from './sample.ts';

/** For a whole sweep on a busy machine. */
export const SWEEP_MS = 1_800_000;

/** Exit code of a command that was killed. */
const KILLED = 137;
const PAUSE_MS = 200;
const REFUSALS_MAX = 9;

/** More than any run of a sweep has. */
const APPENDS_MAX = 120;

/** A sample starts at one of the first few appends, which every run has, and takes SAMPLE_MAX appends, STRIDE apart. */
const FIRST_MAX = 4;
const SAMPLE_MAX = 2;
const STRIDE = 9;

/**
 * Two at a time. `kill` returns false if the run ended before that append. `sample`: where the sample starts, so that
 * not all sweeps kill at the same appends.
 */
export async function forEveryAppend(sample: number, kill: (append: number) => Promise<boolean>): Promise<void> {
  const first = 1 + (sample % FIRST_MAX);
  const sampled = Array.from({ length: SAMPLE_MAX }, (_, index) => first + index * STRIDE);
  const appends = IS_WHOLE ? Array.from({ length: APPENDS_MAX }, (_, index) => 1 + index) : sampled;
  let killed = 0;
  for (let index = 0; index < appends.length; index += 2) {
    const both = await Promise.all(appends.slice(index, index + 2).map(kill));
    killed += both.filter(Boolean).length;
    // Fewer on a busy machine, where more records share one append.
    if (both.includes(false)) return expect(killed, 'the run has hardly any appends').toBeGreaterThan(IS_WHOLE ? 2 : 0);
  }
  if (IS_WHOLE) expect.fail('the run has more appends than the sweep expects');
}

/**
 * A person outside of the run. When a step has written the file `wanted`, they approve the gate, whether the run has an
 * engine or not, and write the file `decided`.
 */
export async function approvedByPerson(rig: Rig, run: string, gate: string, folder = ''): Promise<void> {
  await rig.appears(`${folder}wanted`);
  for (let refusals = 0; ; ) {
    const { code, stderr } = await rig.meow('approve', run, gate, '--as', 'ann');
    if (code === 0) break;
    if (code !== KILLED) refusals += 1;
    if (refusals > REFUSALS_MAX) expect.fail(`the person could not decide: ${stderr}`);
    // The sweep kills everything, and ends when nothing is left: a command that is repeated at once would go on forever.
    await sleep(PAUSE_MS);
  }
  rig.write(`${folder}decided`, '');
}
