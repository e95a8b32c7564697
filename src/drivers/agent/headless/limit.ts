// Finds usage limits in an agent's output, by the patterns of its adapter, and their reset times.

import type { LimitPattern } from '../../../ir/adapter.ts';
import type { AgentLimit } from '../host.ts';
import { epochMs } from '../readers/reader.ts';

/** `at`: when the text was printed, in milliseconds since 1970. Null if it reports no limit. */
export function limitIn(text: string, patterns: readonly LimitPattern[], at: number): AgentLimit | null {
  for (const { pattern, reset } of patterns) {
    const found = new RegExp(pattern, 'mu').exec(text);
    if (found === null) continue;
    const words = found[1] ?? '';
    const until = reset === null || words === '' ? null : MOMENTS[reset](words, at);
    return { text: lineAround(text, found.index), until };
  }
  return null;
}

const MOMENTS: Readonly<Record<NonNullable<LimitPattern['reset']>, (words: string, at: number) => number | null>> = {
  epoch: (words) => {
    const number = Number(words.trim());
    return Number.isFinite(number) && number > 0 ? epochMs(number) : null;
  },
  duration: (words, at) => {
    const ms = spokenDuration(words);
    return ms === null ? null : at + ms;
  },
  clock: (words, at) => (/^\s*in\s/.test(words) ? MOMENTS.duration(words, at) : nextAt(words, at)),
};

const MINUTE_MS = 60_000;
const UNITS_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: MINUTE_MS, s: 1_000 };

/** As people write it: `2h 30m`, `4 days 3 hours`, `45 minutes`; a bare number is in seconds. Null otherwise. */
function spokenDuration(words: string): number | null {
  const text = words.trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)[a-z]*/g)];
  if (parts.length === 0) return null;
  return parts.reduce((sum, [, amount, unit = '']) => sum + Number(amount) * (UNITS_MS[unit] ?? 1), 0);
}

/**
 * The end of the next such minute after `at`: `4:20am`, `3pm`, `16:20`, optionally with a date or a weekday before it and
 * a time zone after it. The end, since a request at the beginning of that minute may be rejected again. Null if a date
 * has passed.
 */
function nextAt(words: string, at: number): number | null {
  const time = /(?:^|[^\d:])(\d{1,2})(?::(\d{2}))?\s*([ap])\.?m\b|(?:^|[^\d:])(\d{1,2}):(\d{2})(?!\d)/i.exec(words);
  if (time === null) return null;
  const [, twelve, pastTwelve, half, full, pastFull] = time;
  const hour = twelve === undefined ? Number(full) : (Number(twelve) % 12) + (half?.toLowerCase() === 'p' ? 12 : 0);
  const minute = Number(pastTwelve ?? pastFull ?? 0);
  if (hour > 23 || minute > 59) return null;
  const clock = clockOf(words);
  const moments = daysIn(words, new Date(shownAt(clock, at))).map((day) =>
    momentOn(clock, day + (hour * 60 + minute) * MINUTE_MS),
  );
  return moments.map((moment) => moment + MINUTE_MS).find((end) => end > at && end - at < AHEAD_MAX_MS) ?? null;
}

const DAY_MS = 86_400_000;
/** A date without a year that is further ahead has just passed. */
const AHEAD_MAX_MS = 330 * DAY_MS;

/** The possible days, earliest first, at midnight: `Sep 29th, 2026`, `Mon`, or today and tomorrow. `now`: local time. */
function daysIn(words: string, now: Date): readonly number[] {
  const today = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());
  const [, name = '', day, year] =
    /\b([A-Z][a-z]{2})[a-z]*\.?\s+(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?\b/.exec(words) ?? [];
  const month = MONTHS.indexOf(name);
  if (month !== -1) {
    const years = year === undefined ? [now.getUTCFullYear(), now.getUTCFullYear() + 1] : [Number(year)];
    return years.map((each) => Date.UTC(each, month, Number(day)));
  }
  const weekday = WEEKDAYS.indexOf(/\b(Sun|Mon|Tue|Wed|Thu|Fri|Sat)/.exec(words)?.[1] ?? '');
  if (weekday === -1) return [today, today + DAY_MS];
  const next = today + ((weekday - now.getUTCDay() + 7) % 7) * DAY_MS;
  return [next, next + 7 * DAY_MS];
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** The named time zone, `UTC` or `(Europe/Berlin)`; ours if none or an unknown one is named. */
function clockOf(words: string): Intl.DateTimeFormat {
  const zone = /\b(UTC|GMT)\b|\(([\w+/-]+)\)/.exec(words);
  try {
    return clockIn(zone?.[1] ?? zone?.[2]);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return clockIn(undefined);
  }
}

function clockIn(timeZone: string | undefined): Intl.DateTimeFormat {
  const numeric = 'numeric';
  const shown = { year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric } as const;
  return new Intl.DateTimeFormat('en-US', { ...shown, hourCycle: 'h23', timeZone });
}

/** The local time at a moment, as if it were UTC. */
function shownAt(clock: Intl.DateTimeFormat, moment: number): number {
  const parts = new Map(clock.formatToParts(moment).map(({ type, value }) => [type, Number(value)]));
  const part = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
  return Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'));
}

/** The moment at which a clock shows that local time. */
function momentOn(clock: Intl.DateTimeFormat, shown: number): number {
  const near = shown - (shownAt(clock, shown) - shown);
  // Daylight saving time may have changed in between.
  return near - (shownAt(clock, near) - shown);
}

function lineAround(text: string, index: number): string {
  const end = text.indexOf('\n', index);
  const line = text.slice(text.lastIndexOf('\n', index) + 1, end === -1 ? undefined : end).trim();
  return line.length <= LINE_MAX ? line : `${line.slice(0, LINE_MAX)}…`;
}

const LINE_MAX = 300;
