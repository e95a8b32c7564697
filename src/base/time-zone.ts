// Times of the day in a time zone.

/** Null if there is such a time zone. */
export function zoneProblem(timezone: string): string | null {
  try {
    Intl.DateTimeFormat('en', { timeZone: timezone });
    return null;
  } catch (error) {
    if (error instanceof RangeError) return `there is no time zone ${JSON.stringify(timezone)}`;
    throw error;
  }
}

/** In minutes since midnight. If `to` is before `from`, they are over midnight; if all of the day is in them, they never end. */
export interface Hours {
  readonly from: number;
  readonly to: number;
  /** Null: that of the machine. */
  readonly timezone: string | null;
}

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;

/** When the hours end that a moment is in; Infinity if they never end; null if the moment is outside of them. */
export function endOfHours({ from, to, timezone }: Hours, at: number): number | null {
  if (Math.abs(to - from) % DAY_MINUTES === 0) return Infinity;
  const clock = clockIn(timezone);
  const isWithin = (minute: number): boolean =>
    from < to ? minute >= from && minute < to : minute >= from || minute < to;
  const now = minuteOfDay(clock, at);
  if (!isWithin(now)) return null;
  const left = (to - now + DAY_MINUTES) % DAY_MINUTES;
  let end = Math.floor(at / MINUTE_MS) * MINUTE_MS + left * MINUTE_MS;
  // Daylight saving time may begin or end meanwhile, by an hour at most.
  const missed = ((minuteOfDay(clock, end) - to + DAY_MINUTES * 1.5) % DAY_MINUTES) - DAY_MINUTES / 2;
  if (isWithin(minuteOfDay(clock, end - missed * MINUTE_MS - MINUTE_MS))) end -= missed * MINUTE_MS;
  return end;
}

function clockIn(timezone: string | null): Intl.DateTimeFormat {
  const parts = { hour: 'numeric', minute: 'numeric', hourCycle: 'h23' } as const;
  return new Intl.DateTimeFormat('en-US', timezone === null ? parts : { ...parts, timeZone: timezone });
}

function minuteOfDay(clock: Intl.DateTimeFormat, at: number): number {
  const parts = new Map(clock.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  return (parts.get('hour') ?? 0) * 60 + (parts.get('minute') ?? 0);
}
