import { expect, test } from 'vitest';

import { bad, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { readStateHead } from './state-head.ts';
import { StateYaml } from './state-yaml.ts';

const headOf = (...run: Parameters<typeof runKernel>): ReturnType<typeof readStateHead> =>
  readStateHead(new StateYaml(runKernel(...run).state).text());

test('the head of a state file says how the run ended', () => {
  expect(headOf('a\nb', ok('a#1'), bad('b#1'))).toEqual({
    endedAt: '2026-01-08T21:00:02.000Z',
    counts: { pending: 0, running: 0, done: 1, failed: 1, skipped: 0 },
    error: { step: 'b', message: 'exited with status 3' },
    hasOpenGates: false,
  });
  expect(headOf('a', ok('a#1'))).toMatchObject({ error: null, counts: { done: 1 } });
});

test('a run with an open gate says so', () => {
  expect(headOf('a gate g')).toMatchObject({ endedAt: null, hasOpenGates: true });
});

test('a head that is cut off, or of an earlier version, is not read', () => {
  const text = new StateYaml(runKernel('a').state).text();
  expect(readStateHead(text.slice(0, text.indexOf('steps:')))).toBeNull();
  expect(readStateHead(text.replace(/^counts:.*\n/m, ''))).toBeNull();
  expect(readStateHead('')).toBeNull();
});
