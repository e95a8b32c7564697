import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { fakeRun } from '../../test/kernel-rig/fake-run.ts';
import type { LiveRun } from '../app/observer.ts';
import { FORCE_SIGNAL, STOP_SIGNAL } from '../app/engine-signals.ts';
import { Signals } from './foreground.ts';

class Left extends Error {}

const asked: string[] = [];
const run: LiveRun = {
  ...fakeRun(['a'], 'r'),
  durable: true,
  stop: (by, force) => asked.push(`${by}${force ? '!' : ''}`),
};

let signals: Signals;
let deliver: (signal: NodeJS.Signals) => void;
beforeEach(() => {
  asked.length = 0;
  vi.spyOn(process, 'exit').mockImplementation(() => {
    throw new Left();
  });
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  // The process of the tests has listeners of its own, which are not to be reached.
  const others = new Set(process.listeners('SIGINT'));
  signals = new Signals(() => {});
  const own = process.listeners('SIGINT').find((listener) => !others.has(listener));
  deliver = (signal) => own?.(signal);
});
afterEach(() => {
  signals.close();
  vi.restoreAllMocks();
});

test.for(['SIGINT', 'SIGTERM'] as const)('%s: the second kills, the third leaves', (signal) => {
  signals.directTo(run);
  deliver(signal);
  deliver(signal);
  expect(asked.map((text) => text.endsWith('!'))).toEqual([false, true]);
  expect(() => deliver(signal)).toThrow(Left);
});

test('different kinds do not add up', () => {
  signals.directTo(run);
  for (const signal of ['SIGTERM', 'SIGHUP', STOP_SIGNAL, 'SIGINT', 'SIGHUP', STOP_SIGNAL, STOP_SIGNAL] as const)
    deliver(signal);
  expect(asked).toHaveLength(7);
  expect(asked.filter((text) => text.endsWith('!'))).toEqual([]);
  expect(signals.exitStatus).toBe(143);
  deliver('SIGINT');
  expect(asked.at(-1)).toBe('Ctrl-C!');
});

test('the signal of force kills at once, and nothing takes that back', () => {
  signals.directTo(run);
  for (const signal of [FORCE_SIGNAL, FORCE_SIGNAL, FORCE_SIGNAL, 'SIGTERM'] as const) deliver(signal);
  expect(asked).toEqual(['meow stop --force!', 'meow stop --force!', 'meow stop --force!', 'SIGTERM!']);
});

test('what comes before the run is kept for it, and who insists does not wait', () => {
  deliver(STOP_SIGNAL);
  deliver(STOP_SIGNAL);
  deliver('SIGTERM');
  expect(asked).toEqual([]);
  expect(() => deliver('SIGTERM')).toThrow(Left);
  signals.directTo(run);
  expect(asked).toEqual(['meow stop', 'meow stop', 'SIGTERM', 'SIGTERM!']);
});
