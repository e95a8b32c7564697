import { expect, test } from 'vitest';
import type { Timer } from '../kernel/state.ts';
import { Deadlines } from './deadlines.ts';

function setUp() {
  const active = new Map<string, Timer>();
  const fired: string[] = [];
  const armed: { at: number; call: () => void }[] = [];
  let now = 0;
  const clock = {
    now: () => now,
    at: (moment: number, call: () => void) => {
      const entry = { at: moment, call };
      armed.push(entry);
      return () => void armed.splice(armed.indexOf(entry), 1);
    },
  };
  const deadlines = new Deadlines(clock, active, (id) => fired.push(id));
  return {
    deadlines,
    active,
    fired,
    armed,
    add: (id: string, at: number) => {
      active.set(id, { id, at, kind: 'retry', step: id });
      deadlines.add([id]);
    },
    advanceTo: (moment: number) => {
      now = moment;
      for (const entry of armed.filter(({ at }) => at <= moment)) {
        armed.splice(armed.indexOf(entry), 1);
        entry.call();
      }
    },
  };
}

test('one timer is armed, for the nearest deadline', () => {
  const { deadlines, add, armed, fired, advanceTo } = setUp();
  add('late', 300);
  add('early', 100);
  deadlines.arm();
  expect(armed.map(({ at }) => at)).toEqual([100]);
  advanceTo(100);
  expect(fired).toEqual(['early']);
  expect(armed.map(({ at }) => at)).toEqual([300]);
});

test('a clock that fires early fires no deadline, and is armed again', () => {
  const { deadlines, add, armed, fired, advanceTo } = setUp();
  add('a', 100);
  deadlines.arm();
  advanceTo(99);
  armed.pop()?.call();
  expect(fired).toEqual([]);
  expect(armed.map(({ at }) => at)).toEqual([100]);
  advanceTo(100);
  expect(fired).toEqual(['a']);
});

test('a deadline that is no longer active does not fire', () => {
  const { deadlines, add, active, armed, fired, advanceTo } = setUp();
  add('a', 100);
  add('b', 200);
  deadlines.arm();
  active.delete('a');
  advanceTo(100);
  expect(fired).toEqual([]);
  expect(armed.map(({ at }) => at)).toEqual([200]);
});

test('tens of thousands of stale timers do no harm', () => {
  const { deadlines, add, active, armed } = setUp();
  for (let index = 0; index < 50_000; index++) add(`t${index}`, 1_000 + index);
  add('last', 10_000_000);
  for (let index = 0; index < 50_000; index++) active.delete(`t${index}`);
  deadlines.arm();
  expect(armed.map(({ at }) => at)).toEqual([10_000_000]);
});

test('a deadline that fired too early fires again', () => {
  const { deadlines, add, fired, advanceTo } = setUp();
  add('a', 100);
  deadlines.arm();
  advanceTo(100);
  deadlines.add(['a']);
  deadlines.arm();
  advanceTo(120);
  expect(fired).toEqual(['a', 'a']);
});
