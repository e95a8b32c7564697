// Many schedules and crashes of ten runs with one budget of the day.

import { expect, test } from 'vitest';

import { attempts } from '../rig/sample.ts';
import { DAY_USD, spend, TURN_USD } from './budgets.ts';

const SEEDS = 1_000;

test('ten runs at once never spend more than the budget of the day, wherever engines die, and nothing stays reserved', async () => {
  let crashes = 0;
  for (let seed = 1; seed <= attempts(SEEDS); seed += 1) {
    const spent = await spend(seed);
    expect(spent.problems, `seed ${seed}`).toEqual([]);
    expect(spent.usd, `seed ${seed}`).toBeLessThanOrEqual(DAY_USD);
    expect(spent.usd, `seed ${seed}`).toBeGreaterThan(DAY_USD - 2 * TURN_USD);
    crashes += spent.crashes;
  }
  expect(crashes).toBeGreaterThan(attempts(SEEDS));
});
