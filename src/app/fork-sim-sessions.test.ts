import { expect, test } from 'vitest';

import { keptLines, memoryAfter } from './fork-sim-sessions.ts';

const TURNS = ['one', 'two', 'three'].map((step, index) => JSON.stringify({ step, memory: { prompts: index + 1 } }));
const TEXT = `${TURNS.join('\n')}\n`;

test('turns are kept up to the first visit that is not, with what the agent remembered then', () => {
  const kept = keptLines(TEXT, (step) => step !== 'three');
  expect(kept).toEqual(TURNS.slice(0, 2));
  expect(memoryAfter(kept)).toEqual({ prompts: 2 });
  expect(memoryAfter(keptLines(TEXT, () => false))).toBe(null);
});

test('a line that is not JSON says nothing, and a torn one is left out', () => {
  const kept = keptLines(`${TEXT}{"step\n{"st`, () => true);
  expect(kept).toEqual([...TURNS, '{"step']);
  expect(memoryAfter(kept)).toEqual({ prompts: 3 });
});
