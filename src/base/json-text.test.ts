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
