import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { systemClock } from './clock.ts';

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});

afterEach(() => {
  vi.useRealTimers();
});

test('calls once at the moment, never before', () => {
  const call = vi.fn<() => void>();
  systemClock.at(systemClock.now() + 500, call);
  vi.advanceTimersByTime(499);
  expect(call).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1_000);
  expect(call).toHaveBeenCalledOnce();
});

test('a moment of the past is called soon, but not at once', () => {
  const call = vi.fn<() => void>();
  systemClock.at(0, call);
  expect(call).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(call).toHaveBeenCalledOnce();
});

test('a moment beyond the longest timer of the machine is reached in several waits', () => {
  const call = vi.fn<() => void>();
  const days = 100 * 86_400_000;
  systemClock.at(systemClock.now() + days, call);
  vi.advanceTimersByTime(days - 1);
  expect(call).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(call).toHaveBeenCalledOnce();
});

test('waits until a wall clock that was set back catches up', () => {
  const call = vi.fn<() => void>();
  systemClock.at(systemClock.now() + 500, call);
  vi.setSystemTime(systemClock.now() - 10_000);
  vi.advanceTimersByTime(500);
  expect(call).not.toHaveBeenCalled();
  vi.advanceTimersByTime(10_000);
  expect(call).toHaveBeenCalledOnce();
});

test('what is taken back is not called, between two waits either', () => {
  const call = vi.fn<() => void>();
  const days = 60 * 86_400_000;
  const cancel = systemClock.at(systemClock.now() + days, call);
  vi.advanceTimersByTime(days / 2);
  cancel();
  vi.advanceTimersByTime(days);
  expect(call).not.toHaveBeenCalled();
});
