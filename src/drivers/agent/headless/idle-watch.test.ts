import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { IdleWatch, type LifeSigns, showLife } from './idle-watch.ts';

let toolInFlight = false;
let told = 0;
let watch: IdleWatch;
const signs = vi.fn<() => LifeSigns | null>();

beforeEach(() => {
  vi.useFakeTimers();
  toolInFlight = false;
  told = 0;
  signs.mockReset().mockReturnValue({ cpu: 0, written: 0 });
  const idle = (): void => void (told += 1);
  watch = new IdleWatch({ idleMs: 1_000, signs, toolInFlight: () => toolInFlight, idle, background: false });
});
afterEach(() => {
  watch.close();
  vi.useRealTimers();
});

test('who is silent and does nothing is idle when the time is up, and once', () => {
  vi.advanceTimersByTime(999);
  expect(told).toBe(0);
  vi.advanceTimersByTime(1);
  expect(told).toBe(1);
  vi.advanceTimersByTime(10_000);
  expect(told).toBe(1);
});

test('output restarts the time, and processes are not checked while there is output', () => {
  for (let count = 0; count < 100; count += 1) {
    vi.advanceTimersByTime(400);
    watch.sign();
  }
  expect(told).toBe(0);
  expect(signs).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1_000);
  expect(told).toBe(1);
});

test('who waits for a tool is not idle, however long that takes', () => {
  toolInFlight = true;
  vi.advanceTimersByTime(1_000_000);
  expect(told).toBe(0);
  toolInFlight = false;
  vi.advanceTimersByTime(1_500);
  expect(told).toBe(1);
});

test.each([
  ['uses time', (count: number) => ({ cpu: count * 100, written: 0 })],
  ['writes', (count: number) => ({ cpu: 0, written: count })],
  ['ends its programs', (count: number) => ({ cpu: 1_000_000 - count, written: 0 })],
])('who %s is not idle', (_, at) => {
  let count = 0;
  signs.mockImplementation(() => at(++count));
  vi.advanceTimersByTime(50_000);
  expect(told).toBe(0);
  signs.mockReturnValue({ cpu: 7, written: 7 });
  vi.advanceTimersByTime(5_000);
  expect(told).toBe(1);
});

test('where processes cannot be looked at, silence counts', () => {
  signs.mockReturnValue(null);
  vi.advanceTimersByTime(1_000);
  expect(told).toBe(1);
});

test('who only waits uses a little time too', () => {
  expect(showLife({ cpu: 0, written: 0 }, { cpu: 10, written: 0 }, 60_000)).toBe(false);
  expect(showLife({ cpu: 0, written: 0 }, { cpu: 1_000, written: 0 }, 60_000)).toBe(true);
});
