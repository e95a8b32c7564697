import { expect, test } from 'vitest';
import { VirtualTime } from './virtual-time.ts';

test('the clock jumps from call to call, in the order of their moments and then of asking', () => {
  const time = new VirtualTime(1_000);
  const calls: string[] = [];
  const note = (name: string) => () => void calls.push(`${name} ${time.now}`);
  time.after(50, note('late'));
  time.after(10, note('first'));
  time.after(10, note('second'));
  time.after(-5, note('at once'));
  expect(time.nextAt).toBe(1_000);
  while (time.next());
  expect(calls).toEqual(['at once 1000', 'first 1010', 'second 1010', 'late 1050']);
  expect([time.nextAt, time.now]).toEqual([null, 1_050]);
});

test('a cancelled call never happens, and does not move the clock', () => {
  const time = new VirtualTime(0);
  const cancel = time.after(10, () => expect.unreachable());
  cancel();
  expect(time.next()).toBe(false);
  expect(time.now).toBe(0);
});

test('a call may ask for others, which happen in their turn', () => {
  const time = new VirtualTime(0);
  const calls: number[] = [];
  time.after(10, () => time.after(5, () => calls.push(time.now)));
  time.after(20, () => calls.push(time.now));
  while (time.next());
  expect(calls).toEqual([15, 20]);
});

test('a thousand calls in random order happen in order', () => {
  const time = new VirtualTime(0);
  const calls: number[] = [];
  for (let number = 0; number < 1_000; number += 1) time.after((number * 7_919) % 1_009, () => calls.push(time.now));
  while (time.next());
  expect(calls).toHaveLength(1_000);
  expect(calls).toEqual(calls.toSorted((one, other) => one - other));
});
