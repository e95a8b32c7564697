import { expect, test } from 'vitest';
import { DEFAULT_TIMING } from '../../../ir/adapter.ts';
import { startupWait } from './idle-detector.ts';

const computes = false;

test('a program is given the time that it should need', () => {
  const opening = startupWait(3_000, DEFAULT_TIMING);
  opening({ printed: 10, computes }, 500);
  expect(opening({ printed: 10, computes }, 1_000)).toBe(2_000);
  expect(opening({ printed: 10, computes }, 3_000)).toBe(0);
});

test('then the wait continues until the program has printed something and is quiet', () => {
  const opening = startupWait(100, DEFAULT_TIMING);
  expect(opening({ printed: 0, computes }, 100)).toBe(3_000);
  expect(opening({ printed: 20, computes }, 900)).toBe(300);
  expect(opening({ printed: 40, computes }, 1_100)).toBe(300);
  expect(opening({ printed: 40, computes }, 1_400)).toBe(0);
});

test('a program that prints nothing, or never stops, ends the wait after a while', () => {
  expect(startupWait(100, DEFAULT_TIMING)({ printed: 0, computes }, 3_100)).toBe(0);
  const opening = startupWait(100, DEFAULT_TIMING);
  for (let now = 0; now < 3_000; now += 100) {
    expect(opening({ printed: now + 1, computes: true }, now)).toBeGreaterThan(0);
  }
  expect(opening({ printed: 5_000, computes: true }, 3_100)).toBe(0);
});

test('a program that computes and prints nothing has all the time that it needs', () => {
  const opening = startupWait(100, DEFAULT_TIMING);
  for (let now = 0; now < 30_000; now += 100) {
    expect(opening({ printed: 0, computes: true }, now)).toBeGreaterThan(0);
  }
  opening({ printed: 50, computes: true }, 30_000);
  expect(opening({ printed: 50, computes: true }, 30_100)).toBe(300);
  expect(opening({ printed: 50, computes }, 30_400)).toBe(0);
});
