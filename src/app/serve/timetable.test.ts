import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { zoneProblem } from '../../base/time-zone.ts';
import { cronProblem, timetable } from './timetable.ts';

/** The next times after a moment, in UTC. */
function times(cron: string, timezone: string, after: string, count: number): readonly string[] {
  const made = timetable(cron, timezone);
  if (!made.ok) throw new Error(made.error);
  const found: string[] = [];
  for (let at = made.value.next(Date.parse(after)); at !== null && found.length < count; at = made.value.next(at))
    found.push(new Date(at).toISOString().slice(0, 16));
  return found;
}

describe('when clocks go forward', () => {
  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-03-28T12:00Z', ['2026-03-29T01:00', '2026-03-30T00:30']],
    ['America/New_York', '30 2 * * *', '2026-03-07T12:00Z', ['2026-03-08T07:00', '2026-03-09T06:30']],
    // Half an hour.
    ['Australia/Lord_Howe', '15 2 * * *', '2026-10-03T00:00Z', ['2026-10-03T15:30', '2026-10-04T15:15']],
    ['Europe/Berlin', '0,30 2 * * *', '2026-03-28T12:00Z', ['2026-03-29T01:00', '2026-03-30T00:00']],
    ['Europe/Berlin', '0 2,3 * * *', '2026-03-28T12:00Z', ['2026-03-29T01:00', '2026-03-30T00:00']],
  ])('in %s, "%s" comes right after the gap, once', (zone, cron, after, expected) => {
    expect(times(cron, zone, after, 2)).toEqual(expected);
  });

  test('a line with wildcards follows real time', () => {
    const expected = ['2026-03-29T00:30', '2026-03-29T01:00', '2026-03-29T01:30'];
    expect(times('*/30 * * * *', 'Europe/Berlin', '2026-03-29T00:20Z', 3)).toEqual(expected);
  });
});

describe('when clocks go back', () => {
  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-10-24T12:00Z', ['2026-10-25T00:30', '2026-10-26T01:30']],
    ['America/New_York', '30 1 * * *', '2026-10-31T12:00Z', ['2026-11-01T05:30', '2026-11-02T06:30']],
    ['Australia/Lord_Howe', '45 1 * * *', '2026-04-04T00:00Z', ['2026-04-04T14:45', '2026-04-05T15:15']],
    ['Europe/Berlin', '0,30 2 * * *', '2026-10-24T12:00Z', ['2026-10-25T00:00', '2026-10-25T00:30']],
  ])('in %s, "%s" comes only the first time', (zone, cron, after, expected) => {
    expect(times(cron, zone, after, 2)).toEqual(expected);
  });

  test('a line with wildcards comes in both hours', () => {
    const expected = ['2026-10-25T00:30', '2026-10-25T01:30', '2026-10-25T02:30'];
    expect(times('30 * * * *', 'Europe/Berlin', '2026-10-25T00:00Z', 3)).toEqual(expected);
  });
});

test('the last time before a moment is the last of all that come', () => {
  const zone = fc.constantFrom('Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe');
  const cron = fc.constantFrom('*/20 * * * *', '30 2 * * *', '0 */6 * * *', '15 1,2,3 * * 0', '0 0 12 * * *');
  const from = fc.integer({ min: Date.parse('2026-01-01'), max: Date.parse('2027-01-01') });
  const length = fc.integer({ min: 1, max: 20 * 86_400_000 });
  fc.assert(
    fc.property(zone, cron, from, length, (timezone, line, after, span) => {
      const made = timetable(line, timezone);
      if (!made.ok) throw new Error(made.error);
      let expected: number | null = null;
      for (let at = made.value.next(after); at !== null && at <= after + span; at = made.value.next(at)) {
        expect(at).toBeGreaterThan(expected ?? after);
        expected = at;
      }
      expect(made.value.last(after, after + span)).toBe(expected);
    }),
    { numRuns: 40 },
  );
});

describe('refused', () => {
  test.each([
    ['61 * * * *', /Invalid value for minute: 61/],
    ['0 3 * *', /five or six fields, and "0 3 \* \*" has 4/],
    ['@daily', /five or six fields/],
    ['0 0 30 2 *', /never comes/],
    ['a b c d e', /is not a cron line/],
  ])('%s', (cron, why) => {
    expect(cronProblem(cron, 'UTC')).toMatch(why);
  });

  test('an unknown time zone', () => {
    expect(zoneProblem('Mars/Base')).toBe('there is no time zone "Mars/Base"');
    expect(zoneProblem('Europe/Berlin')).toBe(null);
  });
});
