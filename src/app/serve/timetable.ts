// When a cron line comes, in a time zone.
//
//   timetable/1  A fixed time of day that the clocks skip comes right after the gap. One that occurs twice comes the first time.
//   timetable/2  A line with * or / in its minutes or hours follows real time: it comes as often as the clocks show such a time.

import { Cron } from 'croner';

import { err, ok, type Result } from '../../base/errors.ts';

export interface Timetable {
  /** The first moment after this one, in milliseconds since 1970. */
  next(after: number): number | null;
  /** The last moment in (after, until]. */
  last(after: number, until: number): number | null;
}

/** Of this machine. */
export function machineZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

export function cronProblem(cron: string, timezone: string | null): string | null {
  const made = timetable(cron, timezone ?? machineZone());
  return made.ok ? null : made.error;
}

export function timetable(cron: string, timezone: string): Result<Timetable, string> {
  const fields = cron.trim().split(/\s+/);
  if (fields.length !== 5 && fields.length !== 6)
    return err(`a cron line has five or six fields, and ${JSON.stringify(cron)} has ${fields.length}`);
  const [minutes = '', hours = ''] = fields.slice(-5);
  const isFixed = !/[*/?]/.test(minutes + hours);
  let pattern: Cron;
  try {
    pattern = new Cron(fields.join(' '), { timezone: isFixed ? 'UTC' : timezone, paused: true });
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    return err(`${JSON.stringify(cron)} is not a cron line: ${error.message.replace(/^\w+: /, '')}`);
  }
  const next = isFixed ? fixedTimes(pattern, timezone) : (after: number) => nextOf(pattern, after);
  if (next(Date.now()) === null) return err(`the cron line ${JSON.stringify(cron)} never comes`);
  return ok({ next, last: (after, until) => lastIn(next, after, until) });
}

function nextOf(pattern: Cron, after: number): number | null {
  return pattern.nextRun(new Date(after))?.getTime() ?? null;
}

/** `pattern` is matched against wall clocks, written as if they were UTC. */
function fixedTimes(pattern: Cron, timezone: string): (after: number) => number | null {
  const offset = offsetsOf(timezone);
  return (after) => {
    // A gap moves later times to its end, and none by more than a day.
    let wall = after + offset(after) - DAY_MS;
    for (;;) {
      const found = nextOf(pattern, wall);
      if (found === null) return null;
      const moment = momentOf(found, offset);
      if (moment > after) return moment;
      wall = found;
    }
  };
}

const DAY_MS = 86_400_000;

/** The moment at which clocks show this for the first time, or the end of the gap in which it is (timetable/1). */
function momentOf(wall: number, offset: (moment: number) => number): number {
  const [before, behind] = [offset(wall - DAY_MS), offset(wall + DAY_MS)];
  for (const candidate of [wall - Math.max(before, behind), wall - Math.min(before, behind)])
    if (candidate + offset(candidate) === wall) return candidate;
  // In the gap: the offset changes between these two moments.
  let [low, high] = [wall - Math.max(before, behind), wall - Math.min(before, behind)];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (offset(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** What the clocks of the zone are ahead of UTC, in milliseconds. */
function offsetsOf(timezone: string): (moment: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    hourCycle: 'h23',
    era: 'short',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  return (moment) => {
    const second = Math.floor(moment / 1_000) * 1_000;
    const parts = new Map(format.formatToParts(second).map(({ type, value }) => [type, Number(value)]));
    const at = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
    const wall = Date.UTC(at('year'), at('month') - 1, at('day'), at('hour'), at('minute'), at('second'));
    return wall - second;
  };
}

/** Looks back over ever longer times, so that a line that comes each second costs no more than one that comes each year. */
function lastIn(next: (after: number) => number | null, after: number, until: number): number | null {
  for (let width = 60_000; ; width *= 4) {
    const from = Math.max(after, until - width);
    let found: number | null = null;
    for (let each = next(from); each !== null && each <= until; each = next(each)) found = each;
    if (found !== null || from === after) return found;
  }
}
