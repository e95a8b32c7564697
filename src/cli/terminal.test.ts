import { expect, test } from 'vitest';

import { lineWidth, terminalSize } from './terminal.ts';

test.each([
  [{}, { columns: 80, rows: 24 }],
  [
    { columns: 0, rows: 0 },
    { columns: 80, rows: 24 },
  ],
  [
    { columns: 120, rows: 0 },
    { columns: 120, rows: 24 },
  ],
  [
    { columns: 10, rows: 5 },
    { columns: 10, rows: 5 },
  ],
])('a terminal that says %j is taken for %j', (said, size) => {
  expect(terminalSize(said)).toEqual(size);
});

test('only a terminal has a width', () => {
  expect(lineWidth({ columns: 80 })).toBe(Infinity);
  expect(lineWidth({ isTTY: true, columns: 0 })).toBe(80);
});
