import { expect, test } from 'vitest';
import { err, ok } from './result.ts';
import { readJsonText } from './json-text.ts';

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
])('%s says what it says', (text) => {
  expect(readJsonText(text)).toEqual(ok(JSON.parse(text)));
});

test.each(['[{"id":1234567890123456789}]', '-1234567890123456789', '[1, 9007199254740993 ]'])(
  'a number that would become another one is refused: %s',
  (text) => {
    expect(readJsonText(text)).toMatchObject({ ok: false, error: expect.stringContaining('too large') as string });
  },
);

test('half a character is replaced, in keys too', () => {
  expect(readJsonText(String.raw`{"a\ud83d":["x\ud83d y", "\ud83d\udc31"]}`)).toEqual(
    ok({ 'a\uFFFD': ['x\uFFFD y', '🐱'] }),
  );
});

test('a key that every object has is a key like any other', () => {
  const read = readJsonText(String.raw`{"__proto__":"\ud83d"}`);
  expect(read.ok && Object.entries(read.value as object)).toEqual([['__proto__', '\uFFFD']]);
});

test('what is no JSON is said to be none', () => {
  expect(readJsonText('{"a":').ok).toBe(false);
  expect(readJsonText('')).not.toEqual(err(''));
});
