import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { isRunOf, planSlots, runOfSlot, type SlotPlan, type SlotQuestion, slotOfRun } from './due-slots.ts';

const MINUTE = 60_000;
const START = Date.parse('2026-06-01T00:00:00Z');

/** Comes every so many minutes. */
function every(minutes: number): SlotQuestion['timetable'] {
  const width = minutes * MINUTE;
  const next = (after: number): number => (Math.floor(after / width) + 1) * width;
  return {
    next,
    last: (after, until) => (Math.floor(until / width) * width > after ? Math.floor(until / width) * width : null),
  };
}

function plan(question: Partial<SlotQuestion> & { readonly now: number }): SlotPlan {
  const progress = { cursor: START, queue: [] };
  const rest = {
    name: 'n',
    timetable: every(10),
    overlap: 'skip',
    missed: 'once',
    jitterMs: 0,
    isBusy: false,
  } as const;
  return planSlots({ ...rest, progress, ...question });
}

describe('a slot', () => {
  test('starts when it comes, and not before', () => {
    expect(plan({ now: START + 10 * MINUTE - 1 })).toMatchObject({ start: null, wakeAt: START + 10 * MINUTE });
    expect(plan({ now: START + 10 * MINUTE })).toMatchObject({ start: START + 10 * MINUTE });
  });

  test('is left out while an earlier run is active', () => {
    const now = START + 10 * MINUTE;
    expect(plan({ now, isBusy: true })).toEqual({
      start: null,
      progress: { cursor: now, queue: [] },
      wakeAt: START + 20 * MINUTE,
    });
  });

  test('waits for the end of that run with overlap = "queue"', () => {
    const now = START + 10 * MINUTE;
    const waiting = plan({ now, isBusy: true, overlap: 'queue' });
    expect(waiting.progress.queue).toEqual([now]);
    const later = plan({ now: now + MINUTE, overlap: 'queue', progress: waiting.progress });
    expect(later).toMatchObject({ start: now, progress: { queue: [] } });
  });

  test('starts beside that run with overlap = "allow"', () => {
    expect(plan({ now: START + 10 * MINUTE, isBusy: true, overlap: 'allow' }).start).toBe(START + 10 * MINUTE);
  });
});

describe('slots that were missed', () => {
  const now = START + 65 * MINUTE;

  test('start one run, for the last of them', () => {
    expect(plan({ now })).toMatchObject({ start: START + 60 * MINUTE, progress: { cursor: now - MINUTE } });
  });

  test('start none with missed = "skip"', () => {
    expect(plan({ now, missed: 'skip' })).toMatchObject({ start: null, progress: { cursor: now - MINUTE } });
  });

  test('start none if another is due', () => {
    expect(plan({ now: START + 60 * MINUTE }).start).toBe(START + 60 * MINUTE);
  });
});

test('jitter delays a slot by the same time wherever it is computed', () => {
  const jitterMs = 5 * MINUTE;
  const { wakeAt } = plan({ now: START, jitterMs });
  expect(wakeAt).toBeGreaterThanOrEqual(START + 10 * MINUTE);
  expect(wakeAt).toBeLessThan(START + 15 * MINUTE);
  expect(plan({ now: START + MINUTE, jitterMs }).wakeAt).toBe(wakeAt);
  expect(plan({ now: wakeAt ?? 0, jitterMs }).start).toBe(START + 10 * MINUTE);
});

test('no slot starts twice, and all in order, however often and whenever it is asked', () => {
  const pauses = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 * MINUTE }), fc.boolean(), fc.boolean()), {
    maxLength: 60,
  });
  const settings = fc.record({
    overlap: fc.constantFrom('skip', 'queue', 'allow'),
    missed: fc.constantFrom('once', 'skip'),
    jitterMs: fc.constantFrom(0, 3 * MINUTE),
  });
  fc.assert(
    fc.property(pauses, settings, (steps, setting) => {
      const started: number[] = [];
      let progress: SlotQuestion['progress'] = { cursor: START, queue: [] };
      let now = START;
      for (const [pause, isBusy, isKilled] of steps) {
        now += pause;
        const made = plan({ ...setting, now, isBusy, progress });
        if (made.start !== null && !started.includes(made.start)) started.push(made.start);
        // Killed before the decision was written: the run exists, so nothing starts again.
        if (!isKilled) progress = made.progress;
        else if (made.start !== null) progress = { ...progress, cursor: Math.max(progress.cursor, made.start) };
      }
      expect(started).toEqual(started.toSorted((a, b) => a - b));
      for (const slot of started) expect(slot % (10 * MINUTE)).toBe(0);
    }),
    { numRuns: 200 },
  );
});

test('the id of a run names its slot', () => {
  const slot = Date.parse('2026-11-19T03:00:00Z');
  expect(runOfSlot('nightly', slot)).toBe('nightly-20261119T030000Z');
  expect(slotOfRun('nightly', 'nightly-20261119T030000Z')).toBe(slot);
  expect(isRunOf('nightly', 'nightly-0123456789abcdef')).toBe(true);
  expect(slotOfRun('nightly', 'nightly-0123456789abcdef')).toBe(null);
  expect(isRunOf('night', 'night-ly-20261119T030000Z')).toBe(false);
});
