// npm run sim -- --seeds 20000      npm run sim -- --seed 42
//
// Exits with 1 at the first seed that fails, and says how to replay it.

import { parseArgs } from 'node:util';
import { simulate } from './simulate.ts';

const { values } = parseArgs({
  options: { seeds: { type: 'string' }, seed: { type: 'string' }, from: { type: 'string' } },
});
const first = Number(values.seed ?? values.from ?? 1);
const count = values.seed === undefined ? Number(values.seeds ?? 300) : 1;

if (!Number.isSafeInteger(first) || !Number.isSafeInteger(count) || count < 1) {
  console.error('usage: npm run sim -- --seeds N [--from S] | --seed S');
  process.exit(2);
}

const totals = { lives: 0, records: 0, ends: new Map<string, number>() };
for (let seed = first; seed < first + count; seed++) {
  const { problems, lives, records, end, program } = await simulate(seed);
  totals.lives += lives;
  totals.records += records;
  totals.ends.set(end, (totals.ends.get(end) ?? 0) + 1);
  if (values.seed !== undefined) console.log(JSON.stringify(program.blocks, null, 1));
  if (problems.length > 0) {
    console.error(`seed ${seed} fails:\n  ${problems.join('\n  ')}\nreplay it: npm run sim -- --seed ${seed}`);
    process.exit(1);
  }
}
const ends = [...totals.ends].map(([end, times]) => `${times} ${end}`).join(', ');
console.log(`${count} seeds clean: ${ends}; ${totals.lives} lives of an engine, ${totals.records} journal records`);
