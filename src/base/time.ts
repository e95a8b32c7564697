// Moments and durations in milliseconds, and their text forms. No clock: callers pass the time.

const UNITS_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof UNITS_MS;

/** A hundred years. Anything longer means no limit, and sums with it can still be formatted. */
export const DURATION_MAX_MS = 36_500 * UNITS_MS.d;

/** `90s`, `1h30m`, `250ms`, `2d`; a bare number counts seconds. Null if the text is not a duration. */
export function parseDuration(text: string): number | null {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Math.round(Number(trimmed) * 1_000);
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(trimmed)) return null;
  let total = 0;
  for (const [, amount, , unit] of trimmed.matchAll(/(\d+(\.\d+)?)(ms|s|m|h|d)/g)) {
    total += Number(amount) * UNITS_MS[unit as Unit];
  }
  return Math.round(total);
}

/** For people: at most two units, as in `1h02m`, `3.4s`, `12ms`. */
export function formatDuration(ms: number): string {
  const pad = (value: number): string => String(value).padStart(2, '0');
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${pad(seconds % 60)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h${pad(minutes % 60)}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d${pad(hours % 24)}h`;
}

/** Nothing is rounded: `1d12h20m`. What `parseDuration` reads. */
export function exactDuration(ms: number): string {
  const units = Object.entries(UNITS_MS).toReversed();
  const parts = units.map(([unit, size], index) => {
    const above = units[index - 1]?.[1] ?? Number.POSITIVE_INFINITY;
    const amount = Math.floor((ms % above) / size);
    return amount === 0 ? '' : `${amount}${unit}`;
  });
  return parts.join('') || '0s';
}

/** `2026-01-08T21:00:00.000Z`, from milliseconds since 1970. */
export function formatMoment(ms: number): string {
  const pad = (value: number, width: number): string => String(value).padStart(width, '0');
  const { year, month, day } = calendarDate(Math.floor(ms / UNITS_MS.d));
  const rest = ((ms % UNITS_MS.d) + UNITS_MS.d) % UNITS_MS.d;
  const hour = Math.floor(rest / UNITS_MS.h);
  const minute = Math.floor(rest / UNITS_MS.m) % 60;
  const second = Math.floor(rest / UNITS_MS.s) % 60;
  return (
    `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}` +
    `T${pad(hour, 2)}:${pad(minute, 2)}:${pad(second, 2)}.${pad(Math.floor(rest) % 1_000, 3)}Z`
  );
}

/** Milliseconds since 1970, from a text of `formatMoment`; null if it is not one. */
export function parseMoment(text: string): number | null {
  const found = /^(\d{4,})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)\.(\d{3})Z$/.exec(text);
  if (found === null) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, ms = 0] = found.slice(1).map(Number);
  return (
    daysSince1970(year, month, day) * UNITS_MS.d + hour * UNITS_MS.h + minute * UNITS_MS.m + second * UNITS_MS.s + ms
  );
}

/** The inverse of `calendarDate`. */
function daysSince1970(year: number, month: number, day: number): number {
  const shiftedYear = month <= 2 ? year - 1 : year;
  const era = Math.floor(shiftedYear / 400);
  const yearOfEra = shiftedYear - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** Calendar date from days since 1970. Years start in March here, so that the leap day is the last of its year. */
function calendarDate(days: number): { readonly year: number; readonly month: number; readonly day: number } {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1,
  };
}
