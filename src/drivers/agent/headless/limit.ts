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
 * a time zone after it. The end, since a request at the beginning of that minute may be rejected again. Null if it cannot
 * be read: a guess could wait for months.
 */
function nextAt(words: string, at: number): number | null {
  const time = /(?:^|[^\d:])(\d{1,2})(?::(\d{2}))?\s*([ap])\.?m\b|(?:^|[^\d:])(\d{1,2}):(\d{2})(?!\d)/i.exec(words);
  if (time === null) return null;
  const [, twelve, pastTwelve, half, full, pastFull] = time;
  if (twelve !== undefined && (Number(twelve) < 1 || Number(twelve) > 12)) return null;
  const hour = twelve === undefined ? Number(full) : (Number(twelve) % 12) + (half?.toLowerCase() === 'p' ? 12 : 0);
  const minute = Number(pastTwelve ?? pastFull ?? 0);
  if (hour > 23 || minute > 59) return null;
  const clock = clockOf(words);
  if (clock === null) return null;
  const now = new Date(shownAt(clock, at));
  const end = (day: number): number => momentOn(clock, day + (hour * 60 + minute) * MINUTE_MS) + MINUTE_MS;
  const dated = DATE.exec(words);
  if (dated !== null) return dateReset(datesOf(dated, now).map(end), at);
  if (UNKNOWN_DATE.test(words.slice(0, time.index))) return null;
  return (
    daysFrom(words, now)
      .map(end)
      .find((moment) => moment > at) ?? null
  );
}

const DAY_MS = 86_400_000;
/** Until the next attempt, if the named date has just passed. */
const SOON_MS = 5 * MINUTE_MS;
const JUST_PASSED_MS = 14 * DAY_MS;

/** Without a year, the nearest date is meant. One that has just passed has reset already; an older one is unreadable. */
function dateReset(moments: readonly number[], at: number): number | null {
  const [nearest] = moments.toSorted((a, b) => Math.abs(a - at) - Math.abs(b - at));
  if (nearest === undefined || nearest <= at - JUST_PASSED_MS) return null;
  return nearest > at ? nearest : at + SOON_MS;
}

/** `Sep 29th, 2026` */
const DATE =
  /\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?\s+(\d{1,2})(?:st|nd|rd|th)?\b(?:,?\s+(\d{4})\b)?/;
/** `Smarch 5`, before a time. */
const UNKNOWN_DATE = /\b[A-Z][a-z]+\.?\s+\d/;

/** At midnight. Empty if there is no such date. `now`: local time. */
function datesOf([, name = '', day, year]: RegExpExecArray, now: Date): readonly number[] {
  const month = MONTHS.indexOf(name);
  const thisYear = now.getUTCFullYear();
  const years = year === undefined ? [thisYear - 1, thisYear, thisYear + 1] : [Number(year)];
  const dates = years.map((each) => new Date(Date.UTC(each, month, Number(day))));
  return dates.filter((date) => date.getUTCMonth() === month && date.getUTCDate() === Number(day)).map(Number);
}

/** The possible days, earliest first, at midnight: `Mon`, or today and tomorrow. `now`: local time. */
function daysFrom(words: string, now: Date): readonly number[] {
  const today = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());
  const weekday = WEEKDAYS.indexOf(/\b(Sun|Mon|Tue|Wed|Thu|Fri|Sat)/.exec(words)?.[1] ?? '');
  if (weekday === -1) return [today, today + DAY_MS];
  const next = today + ((weekday - now.getUTCDay() + 7) % 7) * DAY_MS;
  return [next, next + 7 * DAY_MS];
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const WEEKDAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];

/** The named time zone, `UTC` or `(Europe/Berlin)`; ours if none is named. Null if it is unknown. */
function clockOf(words: string): Intl.DateTimeFormat | null {
  const zone = /\b(UTC|GMT)\b|\(([\w+/-]+)\)/.exec(words);
  const numeric = 'numeric';
  const parts = { year: numeric, month: numeric, day: numeric, hour: numeric, minute: numeric } as const;
  const shown = { ...parts, hourCycle: 'h23' } as const;
  try {
    return new Intl.DateTimeFormat('en-US', { ...shown, timeZone: zone?.[1] ?? zone?.[2] });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return null;
  }
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
