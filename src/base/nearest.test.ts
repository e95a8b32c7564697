import { expect, test } from 'vitest';
import { nearest } from './nearest.ts';

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
