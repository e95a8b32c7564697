import { expect, test } from 'vitest';
import { nearest } from './nearest.ts';

test.each([
  ['biuld', 'build'],
  ['comand', 'command'],
  ['BUILD', 'build'],
  ['tests', 'test'],
])('for %j one may have meant %j', (wanted, meant) => {
  expect(nearest(wanted, ['deploy', 'build', 'command', 'test'])).toBe(meant);
});

test('what is not close is not offered', () => {
  expect(nearest('xyz', ['deploy', 'build'])).toBeNull();
  expect(nearest('a', [])).toBeNull();
  expect(nearest('a', ['b', 'c'])).toBeNull();
  expect(nearest('ab', ['cd'])).toBeNull();
});

test('of short names half must agree', () => {
  expect(nearest('ab', ['cb'])).toBe('cb');
  expect(nearest('b', ['xy', 'ab'])).toBe('ab');
  expect(nearest('B', ['a', 'b'])).toBe('b');
});
