// Four projects, by what a test needs from the world:
//
//   unit       nothing: pure code, memory fakes, the tree itself. Fast enough for every save.
//   contracts  every store, driver and language against the one suite of its kind: files, processes, tmux.
//   sim        the whole engine over simulated time and seeded crashes.
//   e2e        the built binary, as a user runs it.
//
// Limits are for what hangs: they hold on a machine that is twenty times as busy as it should be.
//
// `npm run check` runs `unit` alone; `npm test` runs all.

import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/rig/longest-first.ts';

/** These start processes, and mostly wait for them: after the tests that only compute, and more at a time than there are cores. */
const WITH_PROCESSES = { maxWorkers: Math.min(12, 3 * availableParallelism()), sequence: { groupOrder: 1 } };

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/*.test.ts', 'test/tidy/**/*.test.ts', 'test/conformance/**/*.test.ts'],
          // Tests of pure code share no state, so they can share a module graph.
          isolate: false,
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'contracts',
          include: ['test/contracts/**/*.test.ts', 'test/extension/**/*.test.ts'],
          ...WITH_PROCESSES,
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
      {
        test: {
          name: 'sim',
          include: ['test/simulation/**/*.test.ts'],
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts', 'test/journals/**/*.test.ts', 'test/attacks/**/*.test.ts'],
          // These tests only start programs, so they can share a process.
          isolate: false,
          testTimeout: 300_000,
          hookTimeout: 300_000,
          ...WITH_PROCESSES,
        },
      },
    ],
  },
});
