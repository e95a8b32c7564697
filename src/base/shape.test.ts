import { expect, test } from 'vitest';

import { fields, isBoolean, isNumber, isText, listOf, mapOf, nullable, oneOf, optional } from './shape.ts';

interface Sample {
  readonly kind: 'a' | 'b';
  readonly names: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly parent: string | null;
  readonly isLast?: boolean;
}

const isSample = fields<Sample>({
  kind: oneOf('a', 'b'),
  names: listOf(isText),
  counts: mapOf(isNumber),
  parent: nullable(isText),
  isLast: optional(isBoolean),
});
const sample = { kind: 'a', names: ['x'], counts: { x: 1 }, parent: null };

test.each([sample, { ...sample, parent: 'p', isLast: true }, { ...sample, more: [] }])('%j has the shape', (value) => {
  expect(isSample(value)).toBe(true);
});

test.each([
  null,
  5,
  'a',
  [],
  [sample],
  {},
  { ...sample, kind: 'c' },
  { ...sample, kind: ['a'] },
  { ...sample, names: 'x' },
  { ...sample, names: [1] },
  { ...sample, counts: [1] },
  { ...sample, counts: { x: '1' } },
  { ...sample, parent: undefined },
  { ...sample, isLast: 'yes' },
])('%j does not', (value) => {
  expect(isSample(value)).toBe(false);
});

test('an inherited key does not count', () => {
  expect(fields<{ toString: string }>({ toString: isText })({})).toBe(false);
});
