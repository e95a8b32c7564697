import { expect, test } from 'vitest';
import fc from 'fast-check';
import { segmentMatcher } from './segment-pattern.ts';

test.each([
  ['build', 'build', true],
  ['build', 'builds', false],
  ['*', '', true],
  ['*', 'anything', true],
  ['test-*', 'test-', true],
  ['test-*', 'test', false],
  ['*-test', 'unit-test', true],
  ['a*a', 'a', false],
  ['a*a', 'aa', true],
  ['a*b*c', 'a-b-b-c', true],
  ['a*b*c', 'a-c-b', false],
  ['ab*ba', 'aba', false],
  ['**', 'x', true],
  ['a.c*', 'abc', false],
])('%j matches %j: %j', (pattern, segment, meets) => {
  expect(segmentMatcher(pattern)(segment)).toBe(meets);
});

test('agrees with the equivalent regular expression', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '*', '-'), maxLength: 8 });
  fc.assert(
    fc.property(text, text, (pattern, segment) => {
      const expression = new RegExp(`^${pattern.replaceAll('*', '.*')}$`);
      expect(segmentMatcher(pattern)(segment)).toBe(expression.test(segment));
    }),
  );
});

test('takes linear time for any pattern', () => {
  expect(segmentMatcher('*a'.repeat(500))('a'.repeat(100_000) + 'b')).toBe(false);
});
