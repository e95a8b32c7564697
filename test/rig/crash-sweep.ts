// Crash sweeps: a run is killed at one append to its journal after the other, until it ends before it can be killed.
//
// `npm test` kills at a sample of the appends. With MEOW_SWEEP=whole, as in `.ci/run`, it kills at every one.

import { expect } from 'vitest';

/** For a whole sweep on a busy machine. */
export const SWEEP_MS = 1_800_000;

/** More than any run of a sweep has. */
const APPENDS_MAX = 120;

/** Of so many appends that follow each other a sample has one. */
const STRIDE = 5;

/**
 * Two at a time. `kill` returns false if the run ended before that append. `sample`: sweeps with different numbers kill at
 * different appends.
 */
export async function forEveryAppend(sample: number, kill: (append: number) => Promise<boolean>): Promise<void> {
  const isWhole = process.env['MEOW_SWEEP'] === 'whole';
  const stride = isWhole ? 1 : STRIDE;
  let killed = 0;
  for (let append = isWhole ? 1 : 1 + (sample % STRIDE); append <= APPENDS_MAX; append += 2 * stride) {
    const both = await Promise.all([kill(append), kill(append + stride)]);
    killed += both.filter(Boolean).length;
    // Fewer on a busy machine, where more records go into one append.
    if (both.includes(false)) return expect(killed, 'the run has hardly any appends').toBeGreaterThan(isWhole ? 2 : 0);
  }
  expect.fail('the run has more appends than the sweep expects');
}
