import { expect, test } from 'vitest';
import { DEFAULT_TIMING, type TerminalProfile } from '../../../ir/adapter.ts';
import { idleDetector } from './idle-detector.ts';
import type { Screen } from './screen.ts';

type Told = Pick<TerminalProfile, 'acknowledge' | 'ready' | 'timing'>;
const ways = (busy: readonly string[], ready: boolean): TerminalProfile => {
  const told: Told = {
    acknowledge: { byHook: false, busy, queued: [], timeoutMs: 1 },
    ready: ready ? { patterns: ['x'], deadlineMs: 1 } : null,
    timing: DEFAULT_TIMING,
  };
  return told as TerminalProfile;
};
const screen = (more: Partial<Screen>): Screen =>
  ({ dialog: null, isReady: true, isBusy: false, isQueued: false, ...more }) as Screen;

test('an agent of which nothing tells does not rest, and does not work', () => {
  expect(idleDetector(ways([], false), null).canDetect).toBe(false);
});

test('a screen tells of rest when it shows none of work for a moment', () => {
  const rest = idleDetector(ways(['busy'], true), null);
  expect(rest.observe(screen({ isBusy: true }), 0)).toBe(false);
  expect(rest.observe(screen({}), 100)).toBe(false);
  expect(rest.observe(screen({ isBusy: true }), 300)).toBe(false);
  expect(rest.observe(screen({}), 400)).toBe(false);
  expect(rest.observe(screen({}), 700)).toBe(true);
  expect(rest.observe(screen({ isReady: false }), 800)).toBe(false);
});

test('a hook tells at once; without it, a screen that shows no work for longer', () => {
  const hooks = { reportsIdle: true, isIdle: false };
  const rest = idleDetector(ways(['busy'], true), hooks);
  expect(rest.observe(screen({}), 0)).toBe(false);
  expect(rest.observe(screen({}), 2_999)).toBe(false);
  expect(rest.observe(screen({}), 3_000)).toBe(true);
  hooks.isIdle = true;
  expect(rest.observe(screen({ isReady: false }), 3_001)).toBe(true);
  expect(rest.observe(screen({ isBusy: true }), 3_002)).toBe(false);
});
