import fc from 'fast-check';
import { expect, test } from 'vitest';
import { jsonErrorPosition } from './json-error-position.ts';

test.each([
  ['[1, 2,, 3]', 6],
  ['{"a": 1, b: 2}', 9],
  ['hello', 0],
  ['[1, 2', 5],
  ['', 0],
  ['[1] x', 4],
  ['{"a" 1}', 5],
  ['[1, ]', 4],
  ['{"a": 1, }', 9],
  ['["a\nb"]', 1],
  ['[01]', 2],
  ['[1}', 2],
])('%j stops being JSON at %i', (text, at) => {
  expect(jsonErrorPosition(text)).toBe(at);
});

test('there is a fault where the system finds one, and nowhere else', () => {
  const broken = fc
    .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '"', '[', '}', ' ', 'x', '0'))
    .map(([text, at, put]) => text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + 1));
  fc.assert(
    fc.property(fc.oneof(fc.json(), broken), (text) => {
      expect(jsonErrorPosition(text) === null).toBe(isJson(text));
    }),
    { numRuns: 2_000 },
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
