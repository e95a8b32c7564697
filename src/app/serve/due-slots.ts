// Which slots of a schedule start now. A slot is a moment of its cron line. This file decides only; serve/scheduler.ts acts.
//
//   slot/1  Every slot is decided once, in order: all up to `cursor` are decided.
//   slot/2  A slot of more than a minute ago was missed. Of all that were missed, one is started at most, and none if another
//           slot is due.
//   slot/3  `skip` leaves out a slot while an earlier run is active, `queue` starts it after that run, `allow` starts it at once.

import { hash } from '../../base/random.ts';
import type { Schedule } from '../../languages/schedule.ts';
import type { Timetable } from './timetable.ts';

export interface SlotProgress {
  /** In milliseconds since 1970, as all slots. */
  readonly cursor: number;
  /** Slots that wait for the end of a run. */
  readonly queue: readonly number[];
}

export interface SlotQuestion extends Pick<Schedule, 'overlap' | 'missed' | 'jitterMs'> {
  readonly name: string;
  readonly timetable: Timetable;
  readonly now: number;
  readonly progress: SlotProgress;
  /** An earlier run of the schedule is active. */
  readonly isBusy: boolean;
}

export interface SlotPlan {
  /** Null: nothing starts now. */
  readonly start: number | null;
  /** After that start. */
  readonly progress: SlotProgress;
  /** When to ask again; null if only the end of a run can change anything. */
  readonly wakeAt: number | null;
}

const LATE_MS = 60_000;
/** Later slots are left out. */
const QUEUE_MAX = 100;

export function planSlots(question: SlotQuestion): SlotPlan {
  const { overlap, progress, isBusy, now } = question;
  const { due, decided, nextAt } = dueSlots(question);
  if (overlap === 'queue') {
    const queue = [...progress.queue, ...due].slice(0, QUEUE_MAX);
    const [first = null, ...rest] = queue;
    const start = isBusy ? null : first;
    return { start, progress: { cursor: decided, queue: start === null ? queue : rest }, wakeAt: nextAt };
  }
  const [first] = due;
  if (first === undefined || (overlap === 'skip' && isBusy))
    return { start: null, progress: { cursor: decided, queue: [] }, wakeAt: nextAt };
  const isLast = due.length === 1;
  // The others are decided by the next question, when the first has started.
  return {
    start: first,
    progress: { cursor: isLast ? decided : first, queue: [] },
    wakeAt: isLast ? nextAt : now,
  };
}

/** `decided`: the cursor once all that are due are decided. */
function dueSlots({ timetable, missed, jitterMs, name, now, progress }: SlotQuestion): {
  readonly due: readonly number[];
  readonly decided: number;
  readonly nextAt: number | null;
} {
  const delayed = (slot: number): number => slot + jitterOf(name, slot, jitterMs);
  const lateEnd = now - LATE_MS - jitterMs;
  const lastMissed = lateEnd > progress.cursor ? timetable.last(progress.cursor, lateEnd) : null;
  const from = Math.max(progress.cursor, lateEnd);
  const due: number[] = [];
  let next = timetable.next(from);
  while (next !== null && delayed(next) <= now) {
    due.push(next);
    next = timetable.next(next);
  }
  const nextAt = next === null ? null : delayed(next);
  if (due.length === 0 && lastMissed !== null && missed === 'once') due.push(lastMissed);
  return { due, decided: Math.max(from, due.at(-1) ?? 0), nextAt };
}

/** Every process computes the same. */
function jitterOf(name: string, slot: number, jitterMs: number): number {
  return Math.floor((hash(`${name} ${slot}`) / 1_000_000) * jitterMs);
}

/** `nightly-20261119T030000Z` */
export function runOfSlot(name: string, slot: number): string {
  return `${name}-${new Date(slot)
    .toISOString()
    .replace(/\.\d+Z$/, 'Z')
    .replaceAll(/[-:]/g, '')}`;
}

/** Whether a run of the schedule has this id. */
export function isRunOf(name: string, id: string): boolean {
  return id.startsWith(`${name}-`) && /^(?:\d{8}T\d{6}Z|[0-9a-f]{16})$/.test(id.slice(name.length + 1));
}

/** Null for the run of a call of a hook. */
export function slotOfRun(name: string, id: string): number | null {
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(id.slice(name.length + 1)) ?? [];
  if (year === undefined || !isRunOf(name, id)) return null;
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}
