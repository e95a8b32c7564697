import { expect, test } from 'vitest';

import { sanitize } from '../base/sanitize.ts';
import { cut, padTo, row, widthOf } from './row.ts';

test.each([
  ['plain', 'plain'],
  ['two\nlines\tand a tab', 'two lines and a tab'],
  ['\u001b[31mred\u001b[0m', 'red'],
  ['\u001b]0;title\u0007x', 'x'],
  ['\u001b]8;;http://x\u001b\\link', 'link'],
  ['\u009b2Jx', 'x'],
  ['bell\u0007 null\u0000', 'bell null'],
  ['right\u202eleft', 'rightleft'],
  ['end\r\n', 'end'],
])('%j is sanitized to %j', (text, tamed) => {
  expect(sanitize(text)).toBe(tamed);
});

test.each([
  ['abc', 3],
  ['名前', 4],
  ['e\u0301', 1],
  ['🐈', 2],
  ['✓', 1],
])('%s takes %i columns', (text, width) => {
  expect(widthOf(text)).toBe(width);
});

test.each([
  ['abcdef', 6, 'abcdef'],
  ['abcdef', 5, 'abcd…'],
  ['名前名', 5, '名前…'],
  ['名前名', 4, '名…'],
  ['abc', 0, ''],
])('%s cut to %i is %s', (text, width, kept) => {
  expect(cut(text, width)).toBe(kept);
});

test('padding counts columns', () => {
  expect(padTo('名', 4)).toBe('名  ');
});

test('a row is cut to its width, and styles are not cut', () => {
  const red = (text: string): string => `<${text}>`;
  const pieces = [
    { text: 'ab', style: null },
    { text: 'cdef', style: red },
    { text: 'g', style: red },
  ];
  expect(row(pieces, 7)).toBe('ab<cdef><g>');
  expect(row(pieces, 5)).toBe('ab<cd…>');
});
