// Every workflow that comes with meow is explored in few states. It closes, unless it has a very long loop, and its
// claims hold.

import { expect, test } from 'vitest';

import { proveShipped, shippedWorkflows } from '../../test/rig/shipped-workflows.ts';

/** A thousand states take less than half a second. */
const STATES_MAX = 4_000;

/** Loops with a thousand rounds, and a state that forks forever: not explored to the end, which takes few states. */
const ENDLESS = ['context-monitor', 'event-monitor', 'raymond/poll'];

test('a state that forks for ever hides no ending of what it has started', async () => {
  const proved = await proveShipped('examples/raymond/poll', STATES_MAX);
  if (proved.kind === 'refused') expect.fail('poll is refused');
  const steps = proved.proof.endings.flatMap(({ status, step }) => (status === 'failed' ? [step] : []));
  expect(new Set(steps)).toEqual(new Set(['CLOSE', 'START', 'WORKER']));
});

test.each(shippedWorkflows())('%s', async (path) => {
  const proved = await proveShipped(path, STATES_MAX);
  if (proved.kind === 'refused') expect.fail(proved.diagnostics.map(({ message }) => message).join('; '));
  const { explored, hangs, claims } = proved.proof;
  expect(explored.states).toBeLessThan(STATES_MAX);
  expect(explored.complete).toBe(!ENDLESS.some((name) => path.includes(name)));
  expect(hangs).toEqual([]);
  const expected = explored.complete ? true : null;
  expect(claims.filter(({ holds }) => holds !== expected)).toEqual([]);
});
