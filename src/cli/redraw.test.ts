import { EventEmitter } from 'node:events';
import type { WriteStream } from 'node:tty';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Redraw } from './redraw.ts';

let settled = true;
let drawn = 0;
let redraw: Redraw;
let terminal: WriteStream;
beforeEach(() => {
  vi.useFakeTimers();
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  settled = true;
  drawn = 0;
  terminal = Object.assign(new EventEmitter(), { columns: 80, rows: 24 }) as unknown as WriteStream;
  const lines = (): readonly string[] => {
    drawn += 1;
    return ['a line'];
  };
  redraw = new Redraw({ lines, moves: () => true, settled: () => settled }, terminal);
});
afterEach(() => {
  redraw.close(null);
  vi.runAllTimers();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test('a picture is drawn when it changes, and every second while it moves', () => {
  redraw.changed();
  vi.advanceTimersByTime(0);
  expect(drawn).toBe(1);
  vi.advanceTimersByTime(3_000);
  expect(drawn).toBe(4);
});

test('one that is not settled is drawn at the next change after it is, and not before', () => {
  redraw.changed();
  vi.advanceTimersByTime(0);
  settled = false;
  vi.advanceTimersByTime(5_000);
  redraw.changed();
  vi.advanceTimersByTime(5_000);
  expect(drawn).toBe(1);
  settled = true;
  vi.advanceTimersByTime(5_000);
  expect(drawn).toBe(1);
  redraw.changed();
  expect(drawn).toBe(2);
  vi.advanceTimersByTime(1_000);
  expect(drawn).toBe(3);
});

test('one that never settles again is not drawn at its end', () => {
  redraw.changed();
  vi.advanceTimersByTime(0);
  settled = false;
  redraw.changed();
  vi.advanceTimersByTime(1_000);
  redraw.close(null);
  expect(drawn).toBe(1);
});

test('after changes of the size in a row, it is drawn once', () => {
  redraw.changed();
  vi.advanceTimersByTime(900);
  for (let times = 0; times < 3; times += 1) {
    terminal.emit('resize');
    vi.advanceTimersByTime(200);
    redraw.changed();
  }
  expect(drawn).toBe(1);
  vi.advanceTimersByTime(100);
  expect(drawn).toBe(2);
});
