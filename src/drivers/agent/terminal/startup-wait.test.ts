import { expect, test } from 'vitest';
import { StartupWait } from './idle-detector.ts';

test('a program is given the time that it should need', () => {
  const opening = new StartupWait(3_000);
  opening.leftMs(10, 500);
  expect(opening.leftMs(10, 1_000)).toBe(2_000);
  expect(opening.leftMs(10, 3_000)).toBe(0);
});

test('then the wait continues until the program has printed something and is quiet', () => {
  const opening = new StartupWait(100);
  expect(opening.leftMs(0, 100)).toBe(2_000);
  expect(opening.leftMs(20, 900)).toBe(300);
  expect(opening.leftMs(40, 1_100)).toBe(300);
  expect(opening.leftMs(40, 1_400)).toBe(0);
});

test('a program that prints nothing, or never stops, ends the wait after a while', () => {
  expect(new StartupWait(100).leftMs(0, 2_100)).toBe(0);
  const opening = new StartupWait(100);
  for (let now = 0; now < 2_000; now += 100) expect(opening.leftMs(now + 1, now)).toBeGreaterThan(0);
  expect(opening.leftMs(5_000, 2_100)).toBe(0);
});
