import { expect, test } from 'vitest';
import { bad, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import type { RunState } from '../kernel/state.ts';
import { whyView } from './why.ts';

test('a pending step lists its open needs', () => {
  const { state } = runKernel('a\nb needs a\nc needs b');
  expect(because(state, 'b')).toEqual(['It needs a, which is running.']);
  expect(because(state, 'c')).toEqual(['It needs b, which is pending.']);
});

test('a pattern shows how many matches are open, and where more may appear', () => {
  const { state } = runKernel(
    'x-1\nx-2\ny needs x-*\ne each [1,2] sub width 1\nz needs e.*\nblock sub\na',
    ok('x-1#1'),
  );
  expect(because(state, 'y')).toEqual(['It needs x-*; 1 of 2 are not finished: x-2 (running).']);
  expect(because(state, 'z')).toEqual([
    'It needs e.0.a, which is running.',
    'It needs e.*, and e (running) may still create such a step.',
  ]);
});

test('a step that waits for its retry shows when, and its last failure', () => {
  const { state } = runKernel('a retry 2 delay 10s', bad('a#1'));
  expect(because(state, 'a')).toEqual([
    'It waits for its next attempt, at 2026-01-08T21:00:11.000Z.',
    'Attempt 1 failed: exited with status 3.',
  ]);
});

test('a step that waits for an agent shows the step of that agent', () => {
  const { state } = runKernel('a agent w1\nb agent w1');
  expect(because(state, 'b')).toEqual([
    'It waits for the agent w1, which works on a; an agent works on one step at a time.',
  ]);
});

test('a running step shows its start, agent and timeout', () => {
  const { state } = runKernel('a agent w1 timeout 1m');
  expect(because(state, 'a')).toEqual([
    'It has been running since 2026-01-08T21:00:00.000Z, by the agent w1.',
    'It times out at 2026-01-08T21:01:00.000Z.',
  ]);
});

test('a step with children shows how many are open', () => {
  const { state } = runKernel('a pass route done=expand:sub\nblock sub\nx\ny needs x');
  expect(because(state, 'a')).toEqual([
    'It has been running since 2026-01-08T21:00:00.000Z and waits for 2 of 2 steps below it.',
    'Running there: a.x.',
  ]);
});

test('an open gate says how to decide it', () => {
  expect(because(runKernel('a gate g').state, 'a')).toEqual([
    'It waits for a person to decide gate g, since 2026-01-08T21:00:00.000Z.',
    'To decide: meow approve wf-1 g, or meow reject.',
  ]);
});

test('a gate opened by a running step shows when it was opened', () => {
  const { state } = runKernel('a', { kind: 'gate-asked', gate: 'g', step: 'a', prompt: null });
  expect(because(state, 'a')[0]).toBe('It waits for a person to decide gate g, since 2026-01-08T21:00:01.000Z.');
});

test('a running loop shows its round, and what it waits for in it', () => {
  const program = 'fix loop round max 3 until check delay 9s\nblock round\nwork\nblock check\nuntil asks';
  const { state } = runKernel(program, ok('fix.1.work#1'));
  expect(because(state, 'fix')).toEqual([
    'It is in round 1 of 3.',
    'It has been running since 2026-01-08T21:00:00.000Z and waits for 1 of 2 steps below it.',
    'Running there: fix.1.until.',
  ]);
  const { state: waiting } = runKernel(program, ok('fix.1.work#1'), ok('fix.1.until#1'));
  expect(because(waiting, 'fix')).toContain('The next round begins at 2026-01-08T21:00:11.000Z.');
});

test('a skipped step shows the chain to the original failure', () => {
  const { state } = runKernel('a\nb needs a\nc needs b', bad('a#1'));
  expect(because(state, 'c')).toEqual(['It needs b, which needs a, which failed.', 'a failed: exited with status 3.']);
});

test('a skipped step without a failed need shows what ended first', () => {
  const { state } = runKernel('a\nb needs a\nc', bad('c#1'), ok('a#1'));
  expect(because(state, 'b')).toEqual([
    'It was never started: the run ended first (step c failed: exited with status 3).',
  ]);
  const { state: below } = runKernel(
    'a on_error continue pass route done=expand:sub\nblock sub\nx\ny\nz needs y',
    bad('a.x#1'),
    ok('a.y#1'),
  );
  expect(because(below, 'a.z')).toEqual(['It was never started: a.x, beside it, failed first.']);
});

test('a failed step shows its error and how it is handled', () => {
  const { state } = runKernel(
    'a on_error continue\nb on_error recover:fix\nc needs b\nblock fix\nrepair',
    bad('a#1'),
    bad('b#1'),
  );
  expect(because(state, 'a')).toEqual([
    'It failed at 2026-01-08T21:00:01.000Z: exited with status 3.',
    'Its last output was: error: no such file',
    'The workflow continues despite the failure.',
  ]);
  expect(because(state, 'b').at(-1)).toBe('A recovery is running; dependent steps wait for it.');
  expect(because(state, 'c')).toEqual(['It needs b, which is recovering from a failure.']);
});

test('a step that failed through a child names that child', () => {
  const { state } = runKernel(
    'a pass route done=expand:sub\nblock sub\nx pass route done=expand:deep\nblock deep\ny',
    bad('a.x.y#1'),
  );
  expect(because(state, 'a').slice(0, 2)).toEqual([
    'It failed at 2026-01-08T21:00:01.000Z: step a.x failed.',
    'It began with a.x.y: exited with status 3.',
  ]);
});

test('a done step shows when; an unknown step has no explanation', () => {
  const { state } = runKernel('a', ok('a#1'));
  expect(because(state, 'a')).toEqual(['It finished at 2026-01-08T21:00:01.000Z.']);
  expect(whyView(state, 'b')).toBeNull();
});

function because(state: RunState, step: string): readonly string[] {
  return whyView(state, step)?.because ?? [];
}
