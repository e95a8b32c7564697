import { expect, test } from 'vitest';
import fc from 'fast-check';

import { nearest, segmentMatcher } from './names.ts';

test.each([
  ['biuld', 'build'],
  ['comand', 'command'],
  ['BUILD', 'build'],
  ['tests', 'test'],
])('suggests for %j the name %j', (wanted, meant) => {
  expect(nearest(wanted, ['deploy', 'build', 'command', 'test'])).toBe(meant);
});

test('distant names are not suggested', () => {
  expect(nearest('xyz', ['deploy', 'build'])).toBeNull();
  expect(nearest('a', [])).toBeNull();
  expect(nearest('a', ['b', 'c'])).toBeNull();
  expect(nearest('ab', ['cd'])).toBeNull();
});

test('at least half of a short name must agree', () => {
  expect(nearest('ab', ['cb'])).toBe('cb');
  expect(nearest('b', ['xy', 'ab'])).toBe('ab');
  expect(nearest('B', ['a', 'b'])).toBe('b');
});

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

test('finds a typo wherever it is in a long name, and as many edits as may be', () => {
  const name = 'a-rather-long-name-of-a-step-that-nobody-would-type-twice';
  fc.assert(
    fc.property(
      fc.nat(name.length - 4),
      fc.constantFrom('x', '', 'swap'),
      fc.integer({ min: 1, max: 4 }),
      (at, how, times) => {
        let typed = name;
        for (let round = 0; round < times; round++) {
          const to = (at + 7 * round) % (typed.length - 2);
          const [first = '', second = ''] = typed.slice(to, to + 2);
          typed = `${typed.slice(0, to)}${how === 'swap' ? second + first : how + second}${typed.slice(to + 2)}`;
        }
        expect(nearest(typed, ['another', name])).toBe(name);
      },
    ),
  );
});

test('compares few of many names with the same letters', () => {
  const names = Array.from({ length: 20_000 }, (_, at) => `${String(at).padStart(6, '0')}${'bc'.repeat(2_000)}`);
  expect(nearest(`x${'cb'.repeat(2_000)}00000`, names)).toBeNull();
});
