import { appendFileSync, mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Limits } from './limits.ts';

let folder: string;
let told: string[];
let limits: Limits;

beforeEach(() => {
  vi.useFakeTimers();
  folder = mkdtempSync(join(tmpdir(), 'meow-limits-'));
  told = [];
});
afterEach(() => {
  limits.close();
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

function watch(timeMs: number | null, idleMs: number | null): void {
  const files = [join(folder, 'stdout'), join(folder, 'stderr')];
  limits = new Limits({ timeMs, idleMs, files, reached: (limit) => told.push(limit) });
}

/** At this moment of the test. */
function says(file: string): void {
  appendFileSync(join(folder, file), 'x');
  utimesSync(join(folder, file), Date.now() / 1_000, Date.now() / 1_000);
}

test('nothing is told where there is no limit', () => {
  watch(null, null);
  expect(vi.getTimerCount()).toBe(0);
});

test('that the time is up is told when it is, and once', () => {
  watch(1_000, null);
  vi.advanceTimersByTime(999);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(10_000);
  expect(told).toEqual(['timeout']);
});

test('silence is told when it has lasted, whether or not there ever was an output', () => {
  watch(60_000, 1_000);
  vi.advanceTimersByTime(1_000);
  expect(told).toEqual(['idle']);
});

test('silence counts from the last output, to whichever file', () => {
  watch(60_000, 1_000);
  vi.advanceTimersByTime(900);
  says('stderr');
  vi.advanceTimersByTime(500);
  says('stdout');
  vi.advanceTimersByTime(999);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(told).toEqual(['idle']);
});

test('a clock that was set forwards makes nobody silent', () => {
  watch(null, 1_000);
  vi.advanceTimersByTime(500);
  says('stdout');
  vi.setSystemTime(Date.now() + 3_600_000);
  vi.advanceTimersByTime(500);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(1_000);
  expect(told).toEqual(['idle']);
});

test('the time is up though it talks all the while', () => {
  watch(1_000, 300);
  for (let n = 0; n < 10; n += 1) {
    vi.advanceTimersByTime(100);
    says('stdout');
  }
  expect(told).toEqual(['timeout']);
});

test('a limit that timers cannot count to is waited for all the same', () => {
  watch(2 ** 32, null);
  vi.advanceTimersByTime(2 ** 32 - 1);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(told).toEqual(['timeout']);
});

test('nothing is told after it was closed', () => {
  watch(1_000, 500);
  limits.close();
  vi.advanceTimersByTime(5_000);
  expect(told).toEqual([]);
});
