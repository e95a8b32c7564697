import { expect, test } from 'vitest';

import { makeSource } from '../base/source.ts';
import { createReport } from '../languages/report.ts';
import { tomlToJson } from '../languages/toml-tree.ts';
import { readToml } from '../languages/toml.ts';
import { isTomlValue, tomlTable } from './toml-text.ts';

test.each([
  'plain',
  '',
  'two\nlines\r\n\ttab "quoted" \\ back',
  '\u0000\u001b[31m\u007f',
  'ünï 🐱',
  0,
  -12,
  2.5,
  true,
  [],
  ['a', ['b'], { c: 1 }],
  { 'a b': { 'x.y': 'z' }, '': 1 },
])('%j is read back', (value) => {
  const report = createReport(makeSource('t.toml', tomlTable('[head]', { value, absent: undefined })));
  const root = readToml(report);
  expect(report.diagnostics()).toEqual([]);
  expect(root === null ? null : tomlToJson(root)).toEqual({ head: { value } });
});

test('null cannot be written', () => {
  expect([null, [null], { a: { b: null } }].map(isTomlValue)).toEqual([false, false, false]);
  expect(isTomlValue({ a: [1, 'x'] })).toBe(true);
});
