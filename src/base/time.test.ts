import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, formatMoment, parseDuration, parseMoment } from './time.ts';

test.each([
  ['90', 90_000],
  ['1.5', 1_500],
  ['250ms', 250],
  ['30s', 30_000],
  ['1h30m', 5_400_000],
  ['2d', 172_800_000],
  [' 5m ', 300_000],
])('%j is a duration of %i ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each(['', 'soon', '5x', '-3s', '1h 30m', 's5', '1e3'])('%j is not a duration', (text) => {
  expect(parseDuration(text)).toBeNull();
});

test.each([
  [0, '0ms'],
  [999, '999ms'],
  [1_234, '1.2s'],
  [59_949, '59.9s'],
  [59_960, '1m00s'],
  [3_600_000, '1h00m'],
  [90_061_000, '1d01h'],
])('%i ms read as %j', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});

test('formatMoment agrees with Date.toISOString', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 253_402_300_799_999 }), (ms) => {
      expect(formatMoment(ms)).toBe(new Date(ms).toISOString());
      expect(parseMoment(formatMoment(ms))).toBe(ms);
    }),
  );
});

test('other texts are not moments', () => {
  expect(['', '2026-01-08', '2026-01-08T21:00:00Z'].map(parseMoment)).toEqual([null, null, null]);
});
