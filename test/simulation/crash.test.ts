// Many seeds in one test: for every Program, and wherever the engine dies, the guarantees G1 to G5 hold and the run
// ends as it would without crashes. More seeds: npm run sim -- --seeds 20000.

import { expect, test } from 'vitest';
import { simulate } from './simulate.ts';

const SEEDS = 300;

test(`${SEEDS} random programs survive crashes, losses, repetitions and interventions`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { problems } = await simulate(seed);
    expect(problems, `npm run sim -- --seed ${seed}`).toEqual([]);
  }
});
