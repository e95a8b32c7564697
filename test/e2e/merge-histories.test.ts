// Random histories of a merge queue: workers with conflicts and failing checks, whose offers are killed with -9 before and after
// calls of git. Each commit of the target has passed its checks, nothing is merged twice, nothing is lost, and nothing is left.

import { expect, test } from 'vitest';
import { below, oneOf, type Random, randomFrom } from '../../src/base/random.ts';
import { IS_WHOLE } from '../rig/sample.ts';
import { Offers } from './merge/offers.ts';

/** Each of these found a mistake once. */
const SAMPLE = [20, 22, 61, 97];
/** `MEOW_HISTORIES=200` tries so many, from the first seed on. */
const COUNT = Number(process.env['MEOW_HISTORIES'] ?? (IS_WHOLE ? 12 : 0));
/** An offer calls git less often than this. */
const CALLS = 34;
const SEEDS = [...SAMPLE, ...Array.from({ length: COUNT }, (_, index) => index + 1)];

/** Offers until it is merged, as an agent would: takes the target in after a conflict, and the cause of a failed check out. */
async function merge(offers: Offers, name: string, random: Random): Promise<string> {
  for (let round = 1; ; round += 1) {
    for (let kills = below(random, 3); kills > 0; kills -= 1) {
      await offers.offerKilledAt(`${1 + below(random, CALLS)}:${oneOf(random, ['before', 'after'])}`, name);
    }
    const { outcome, commit, output } = await offers.offered(name);
    if (outcome === 'merged' && commit !== null) return commit;
    if (outcome === 'conflict' && round < 4) offers.resolve(name);
    else if (outcome === 'check_failed' && round < 4) for (const color of ['red', 'blue']) offers.remove(name, color);
    else throw new Error(`the offer of ${name} is ${outcome} in round ${round}: ${output}`);
  }
}

test.for(SEEDS)('history %i: all commits of the target are checked, none is lost or merged twice', async (seed) => {
  const random = randomFrom(seed);
  await using offers = await Offers.setup();
  if (below(random, 2) === 0) offers.git('switch', '--quiet', '--detach');
  const names = ['w1', 'w2', 'w3'];
  for (const name of names) {
    const colors = below(random, 2) === 0 ? { [oneOf(random, ['red', 'blue'])]: name } : {};
    offers.worker(name, { [`done-${name}`]: `${name}\n`, [oneOf(random, ['a', 'b', 'c'])]: `${name}\n`, ...colors });
    if (below(random, 2) === 0) offers.work(name, { [oneOf(random, ['a', 'b'])]: `${name} again\n` });
  }
  const merged = new Map<string, string>();
  const mergeOne = async (name: string): Promise<void> => {
    merged.set(name, await merge(offers, name, random));
  };
  if (below(random, 3) === 0) await Promise.all(names.map(mergeOne));
  else for (const name of names) await mergeOne(name);
  expect(await offers.problems(merged)).toEqual([]);
});
