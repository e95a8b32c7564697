import { expect, test } from 'vitest';

import { endOfHours } from './time-zone.ts';

const hours = (from: string, to: string, timezone = 'UTC'): Parameters<typeof endOfHours>[0] => {
  const minutes = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3));
  return { from: minutes(from), to: minutes(to), timezone };
};
const end = (of: Parameters<typeof endOfHours>[0], at: string): string | number | null => {
  const found = endOfHours(of, Date.parse(at));
  return found === null || found === Infinity ? found : new Date(found).toISOString();
};

test('a moment in the hours waits for their end, another one does not', () => {
  const day = hours('08:00', '18:00');
  expect(end(day, '2026-01-05T07:59:59Z')).toBe(null);
  expect(end(day, '2026-01-05T08:00:00Z')).toBe('2026-01-05T18:00:00.000Z');
  expect(end(day, '2026-01-05T17:59:59Z')).toBe('2026-01-05T18:00:00.000Z');
  expect(end(day, '2026-01-05T18:00:00Z')).toBe(null);
});

test('hours may be over midnight, and may be always', () => {
  const night = hours('22:00', '06:00');
  expect(end(night, '2026-01-05T23:30:00Z')).toBe('2026-01-06T06:00:00.000Z');
  expect(end(night, '2026-01-06T05:00:00Z')).toBe('2026-01-06T06:00:00.000Z');
  expect(end(night, '2026-01-06T06:00:00Z')).toBe(null);
  expect(end(hours('00:00', '24:00'), '2026-01-06T06:00:00Z')).toBe(Infinity);
});

test('they are local, also when daylight saving time begins or ends meanwhile', () => {
  const day = hours('08:00', '18:00', 'Europe/Berlin');
  expect(end(day, '2026-07-01T06:00:00Z')).toBe('2026-07-01T16:00:00.000Z');
  const night = hours('22:00', '06:00', 'Europe/Berlin');
  expect(end(night, '2026-03-28T22:00:00Z')).toBe('2026-03-29T04:00:00.000Z');
  expect(end(night, '2026-10-24T22:00:00Z')).toBe('2026-10-25T05:00:00.000Z');
});
