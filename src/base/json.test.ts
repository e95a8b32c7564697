import { expect, test } from 'vitest';
import fc from 'fast-check';

import { err, ok } from './errors.ts';
import { jsonErrorPosition, readJsonText } from './json.ts';

test.each([
  '{"a":[1,-2.5,1e3,"x",null,true]}',
  '9007199254740991',
  '-9007199254740991',
  '{"1234567890123456789":"1234567890123456789"}',
  String.raw`"\"1234567890123456789\\"`,
  '0.1234567890123456789',
  '1234567890123456789e2',
  '"🐱"',
  String.raw`"\ud83d\udc31"`,
])('%s is read unchanged', (text) => {
  expect(readJsonText(text)).toEqual(ok(JSON.parse(text)));
});

test.each(['[{"id":1234567890123456789}]', '-1234567890123456789', '[1, 9007199254740993 ]'])(
  'an integer that would lose digits is refused: %s',
  (text) => {
    expect(readJsonText(text)).toMatchObject({ ok: false, error: expect.stringContaining('too large') as string });
  },
);

test('lone surrogates are replaced, in keys too', () => {
  expect(readJsonText(String.raw`{"a\ud83d":["x\ud83d y", "\ud83d\udc31"]}`)).toEqual(
    ok({ 'a\uFFFD': ['x\uFFFD y', '🐱'] }),
  );
});

test('__proto__ is an ordinary key', () => {
  const read = readJsonText(String.raw`{"__proto__":"\ud83d"}`);
  expect(read.ok && Object.entries(read.value as object)).toEqual([['__proto__', '\uFFFD']]);
});

test('text that is not JSON is an error', () => {
  expect(readJsonText('{"a":').ok).toBe(false);
  expect(readJsonText('')).not.toEqual(err(''));
});

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
