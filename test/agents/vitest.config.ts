// Tests with real agents: `npm run test:agents`, separate because the agents must be installed first.

import { resolve } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, '../..'),
    include: ['test/agents/**/*.test.ts'],
    // An agent is a large process, and most tests start several.
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
