// Finds usage limits in an agent's output, by the patterns of its adapter, and their reset times.

import type { LimitPattern } from '../../../ir/adapter.ts';

export interface ToldLimit {
  /** The line that reports it. */
  readonly text: string;
  /** In milliseconds since 1970; null if missing or not understood. */
  readonly until: number | null;
}

/** `at`: when it was printed, in milliseconds since 1970. Null if the text reports no limit. */
export function limitIn(text: string, patterns: readonly LimitPattern[], at: number): ToldLimit | null {
  for (const { pattern, reset } of patterns) {
    const found = new RegExp(pattern, 'mu').exec(text);
    if (found === null) continue;
    const told = found[1] ?? '';
    const until = reset === null || told === '' ? null : MOMENTS[reset](told, at);
    return { text: lineAround(text, found.index), until };
  }
  return null;
}

const MOMENTS: Readonly<Record<NonNullable<LimitPattern['reset']>, (told: string, at: number) => number | null>> = {
  epoch: (told) => {
    const number = Number(told.trim());
    if (!Number.isFinite(number) || number <= 0) return null;
    return number < MILLISECONDS_FROM ? number * 1_000 : number;
  },
  duration: (told, at) => {
    const ms = spokenDuration(told);
    return ms === null ? null : at + ms;
  },
  clock: (told, at) => nextAt(told, at),
};

/** Separates seconds since 1970 from milliseconds since 1970. */
const MILLISECONDS_FROM = 1e12;

const MINUTE_MS = 60_000;
const UNITS_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: MINUTE_MS, s: 1_000 };

/** As people write it: `2h 30m`, `4 days 3 hours`, `45 minutes`; a bare number is in seconds. Null otherwise. */
function spokenDuration(told: string): number | null {
  const text = told.trim().toLowerCase();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)[a-z]*/g)];
  if (parts.length === 0) return null;
  return parts.reduce((sum, [, amount, unit = '']) => sum + Number(amount) * (UNITS_MS[unit] ?? 1), 0);
}

/**
 * The end of the next such minute after `at`: `4:20am`, `3pm`, `16:20`, optionally with a date before or a time zone
 * after it. The end, since a request at the beginning of that minute may be rejected again.
 */
function nextAt(told: string, at: number): number | null {
  const time = /(?:^|[^\d:])(\d{1,2})(?::(\d{2}))?\s*([ap])\.?m\b|(?:^|[^\d:])(\d{1,2}):(\d{2})(?!\d)/i.exec(told);
  if (time === null) return null;
  const [, twelve, pastTwelve, half, full, pastFull] = time;
  const hour = twelve === undefined ? Number(full) : (Number(twelve) % 12) + (half?.toLowerCase() === 'p' ? 12 : 0);
  const minute = Number(pastTwelve ?? pastFull ?? 0);
  if (hour > 23 || minute > 59) return null;
  const clock = clockOf(told);
  const { year, month, day } = dayIn(told, at, clock);
  const moments = [0, 1].map((later) => momentOn(clock, Date.UTC(year, month, day + later, hour, minute)));
  return moments.map((moment) => moment + MINUTE_MS).find((end) => end > at) ?? null;
}

interface Day {
  readonly year: number;
  /** From 0. */
  readonly month: number;
  readonly day: number;
}

/** The named day, `Sep 29th, 2026`, or the day of `at`. Without a year, the next such day. */
function dayIn(told: string, at: number, clock: Intl.DateTimeFormat): Day {
  const shown = new Date(shownAt(clock, at));
  const today = { year: shown.getUTCFullYear(), month: shown.getUTCMonth(), day: shown.getUTCDate() };
  const [, name = '', day, year] =
    /\b([A-Z][a-z]{2})[a-z]*\.?\s+(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?\b/.exec(told) ?? [];
  const month = MONTHS.indexOf(name);
  if (month === -1) return today;
  const isPast = month < today.month || (month === today.month && Number(day) < today.day);
  return { year: Number(year ?? (isPast ? today.year + 1 : today.year)), month, day: Number(day) };
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The named time zone, `UTC` or `(Europe/Berlin)`; ours if none or an unknown one is named. */
function clockOf(told: string): Intl.DateTimeFormat {
  const zone = /\b(UTC|GMT)\b|\(([\w+/-]+)\)/.exec(told);
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
