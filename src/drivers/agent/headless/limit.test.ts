import { describe, expect, test } from 'vitest';
import type { LimitPattern } from '../../../ir/adapter.ts';
import { limitIn } from './limit.ts';

const at = (...when: readonly [number, number, number, number, number]): number => new Date(...when).getTime();
/** The third of November 2026, at ten in the morning. */
const NOW = at(2026, 10, 3, 10, 0);

/** The first moment from then on at which it is this hour in UTC. */
const utc = (hour: number): number =>
  [3, 4].map((day) => Date.UTC(2026, 10, day, hour)).find((moment) => moment > NOW) ?? 0;

function until(text: string, reset: LimitPattern['reset'], pattern = 'until (.*)$'): number | null | undefined {
  return limitIn(text, [{ pattern, reset }], NOW)?.until;
}

test('a text that tells of no limit has none', () => {
  expect(limitIn('all is well', [{ pattern: 'limit', reset: null }], NOW)).toBeNull();
  expect(limitIn('limit', [], NOW)).toBeNull();
});

test('a limit is told with its line', () => {
  const text = 'first\n  5-hour limit reached  \nlast';
  expect(
    limitIn(
      text,
      [
        { pattern: 'none', reset: null },
        { pattern: 'limit reached', reset: null },
      ],
      NOW,
    ),
  ).toEqual({
    text: '5-hour limit reached',
    until: null,
  });
});

describe('its end', () => {
  test('may be a moment', () => {
    expect(until('limit|1794700000', 'epoch', String.raw`limit\|(\d+)`)).toBe(1_794_700_000_000);
    expect(until('limit|1794700000123', 'epoch', String.raw`limit\|(\d+)`)).toBe(1_794_700_000_123);
  });

  test.each([
    ['90', 90_000],
    ['2h 30m', 9_000_000],
    ['4 days 3 hours', 356_400_000],
    ['1 minute and 5 seconds', 65_000],
    ['500ms', 500],
  ])('may be a time from now: %s', (told, ms) => {
    expect(until(`until ${told}`, 'duration')).toBe(NOW + ms);
  });

  test.each([
    ['3pm', at(2026, 10, 3, 15, 0)],
    ['4:20am', at(2026, 10, 4, 4, 20)],
    ['12am', at(2026, 10, 4, 0, 0)],
    ['12:30 PM', at(2026, 10, 3, 12, 30)],
    ['16:05', at(2026, 10, 3, 16, 5)],
    ['10:00', at(2026, 10, 3, 10, 0)],
    ['9:59am', at(2026, 10, 4, 9, 59)],
    ['3pm (UTC)', utc(15)],
    ['3pm (Asia/Tokyo)', utc(6)],
    ['3pm (of course)', at(2026, 10, 3, 15, 0)],
    ['Nov 5 at 5pm', at(2026, 10, 5, 17, 0)],
    ['Sep 29th, 2027 12:55 AM.', at(2027, 8, 29, 0, 55)],
    ['January 2, 1pm', at(2027, 0, 2, 13, 0)],
    ['3pm (America/Chicago)', Date.UTC(2026, 10, 3, 21)],
    ['Nov 12 at 4pm (UTC)', Date.UTC(2026, 10, 12, 16)],
    ['Nov 12 at 4pm (America/Chicago)', Date.UTC(2026, 10, 12, 22)],
    ['Nov 12, 4pm (UTC)', Date.UTC(2026, 10, 12, 16)],
    ['3pm (UTC).', utc(15)],
    ['Jul 3, 2027 at 4pm (America/Chicago)', Date.UTC(2027, 6, 3, 21)],
    ['5pm on Nov 5', at(2026, 10, 5, 17, 0)],
    ['3pm. Upgrade to Max 20', at(2026, 10, 3, 15, 0)],
    ['Tue 3pm', at(2026, 10, 3, 15, 0)],
    ['Tue 9am', at(2026, 10, 10, 9, 0)],
    ['Mon 3pm', at(2026, 10, 9, 15, 0)],
    ['Wednesday at 3:30 pm', at(2026, 10, 4, 15, 30)],
    ['Mon 3pm (Asia/Tokyo)', Date.UTC(2026, 10, 9, 6)],
  ])('may be a time of day, and then the end of that minute: %s', (told, moment) => {
    expect(until(`until ${told}`, 'clock')).toBe(moment + 60_000);
  });

  test('may be in words of a day or of a duration, whatever kind of time the pattern expects', () => {
    expect(until('until in 2 hours', 'clock')).toBe(NOW + 7_200_000);
  });

  test.each(['Nov 2 at 5pm', 'Nov 3 at 9am', 'Oct 25 at 4pm (UTC)'])(
    'has passed a short time ago, and the agent is tried again soon: %s',
    (told) => {
      expect(until(`until ${told}`, 'clock')).toBe(NOW + 300_000);
    },
  );

  test.each([
    ['soon', 'clock'],
    ['25:00', 'clock'],
    ['25pm (UTC)', 'clock'],
    ['0pm', 'clock'],
    ['16:20pm', 'clock'],
    ['3pm (Mars/Base)', 'clock'],
    ['Nov 31 at 4pm', 'clock'],
    ['Feb 29 at 4pm', 'clock'],
    ['Smarch 5 at 4pm', 'clock'],
    ['Sep 3 at 4pm (UTC)', 'clock'],
    ['Nov 5, 2025 at 4pm', 'clock'],
    ['soon', 'duration'],
    ['soon', 'epoch'],
  ] as const)('that is not understood is not known: %s', (told, reset) => {
    expect(until(`until ${told}`, reset)).toBeNull();
  });
});
