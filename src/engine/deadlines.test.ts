import { expect, test } from 'vitest';
import type { Timer } from '../kernel/state.ts';
import { Deadlines } from './deadlines.ts';

function table() {
  const wanted = new Map<string, Timer>();
  const passed: string[] = [];
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
  const deadlines = new Deadlines(clock, wanted, (id) => passed.push(id));
  return {
    deadlines,
    wanted,
    passed,
    armed,
    want: (id: string, at: number) => {
      wanted.set(id, { id, at, kind: 'retry', step: id });
      deadlines.add([id]);
    },
    time: (moment: number) => {
      now = moment;
      for (const entry of armed.filter(({ at }) => at <= moment)) {
        armed.splice(armed.indexOf(entry), 1);
        entry.call();
      }
    },
  };
}

test('one timer is armed, for the nearest deadline', () => {
  const { deadlines, want, armed, passed, time } = table();
  want('late', 300);
  want('early', 100);
  deadlines.arm();
  expect(armed.map(({ at }) => at)).toEqual([100]);
  time(100);
  expect(passed).toEqual(['early']);
  expect(armed.map(({ at }) => at)).toEqual([300]);
});

test('a clock that fires early passes nothing, and is armed again', () => {
  const { deadlines, want, armed, passed, time } = table();
  want('a', 100);
  deadlines.arm();
  time(99);
  armed.pop()?.call();
  expect(passed).toEqual([]);
  expect(armed.map(({ at }) => at)).toEqual([100]);
  time(100);
  expect(passed).toEqual(['a']);
});

test('what is not wanted any more does not pass', () => {
  const { deadlines, want, wanted, armed, passed, time } = table();
  want('a', 100);
  want('b', 200);
  deadlines.arm();
  wanted.delete('a');
  time(100);
  expect(passed).toEqual([]);
  expect(armed.map(({ at }) => at)).toEqual([200]);
});

test('tens of thousands that are over before their time do no harm', () => {
  const { deadlines, want, wanted, armed } = table();
  for (let index = 0; index < 50_000; index++) want(`t${index}`, 1_000 + index);
  want('last', 10_000_000);
  for (let index = 0; index < 50_000; index++) wanted.delete(`t${index}`);
  deadlines.arm();
  expect(armed.map(({ at }) => at)).toEqual([10_000_000]);
});

test('a deadline that is still wanted after it passed comes again', () => {
  const { deadlines, want, passed, time } = table();
  want('a', 100);
  deadlines.arm();
  time(100);
  deadlines.add(['a']);
  deadlines.arm();
  time(120);
  expect(passed).toEqual(['a', 'a']);
});
