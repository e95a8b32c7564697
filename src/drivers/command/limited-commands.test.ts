import { appendFileSync, mkdtempSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { IdleLimit } from './limited-commands.ts';

let folder: string;
let told: number;
let limit: IdleLimit;

beforeEach(() => {
  vi.useFakeTimers();
  folder = mkdtempSync(join(tmpdir(), 'meow-limits-'));
  told = 0;
});
afterEach(() => {
  limit.close();
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

function watch(idleMs: number): void {
  const files = [join(folder, 'stdout'), join(folder, 'stderr')];
  limit = new IdleLimit({ idleMs, files, reached: () => void (told += 1) });
}

/** At this moment of the test. */
function says(file: string): void {
  appendFileSync(join(folder, file), 'x');
  utimesSync(join(folder, file), Date.now() / 1_000, Date.now() / 1_000);
}

test('silence is told when it has lasted, whether or not there ever was an output', () => {
  watch(1_000);
  vi.advanceTimersByTime(1_000);
  expect(told).toBe(1);
});

test('silence counts from the last output, to whichever file', () => {
  watch(1_000);
  vi.advanceTimersByTime(900);
  says('stderr');
  vi.advanceTimersByTime(500);
  says('stdout');
  vi.advanceTimersByTime(999);
  expect(told).toBe(0);
  vi.advanceTimersByTime(1);
  expect(told).toBe(1);
});

test('a clock that was set forwards makes nobody silent', () => {
  watch(1_000);
  vi.advanceTimersByTime(500);
  says('stdout');
  vi.setSystemTime(Date.now() + 3_600_000);
  vi.advanceTimersByTime(500);
  expect(told).toBe(0);
  vi.advanceTimersByTime(1_000);
  expect(told).toBe(1);
});

test('a limit longer than the longest timer works', () => {
  watch(2 ** 32);
  vi.advanceTimersByTime(2 ** 32 - 1);
  expect(told).toBe(0);
  vi.advanceTimersByTime(1);
  expect(told).toBe(1);
});

test('nothing is told after it was closed', () => {
  watch(500);
  limit.close();
  vi.advanceTimersByTime(5_000);
  expect(told).toBe(0);
});
