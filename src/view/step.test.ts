import { expect, test } from 'vitest';

import { bad, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import type { Input } from '../kernel/input.ts';
import { CLEANUP_STEP, effectId } from '../kernel/state.ts';
import { plainPalette } from './row.ts';
import { durationText, runLines, stepLines } from './step-lines.ts';
import { runView, stepView, stepViews } from './step.ts';

test('a step shows each attempt with its own failure', () => {
  const { state, records } = runKernel('a retry 2 delay 1s', bad('a#1'), RETRY, ok('a#2', { path: '/x' }));
  expect(stepView(state, 'a', records)).toMatchObject({
    id: 'a',
    status: 'done',
    retry: { attempts: 2, delay_ms: 1_000, backoff: 'none' },
    attempts: [
      {
        attempt: 1,
        status: 'failed',
        started_at: '2026-01-08T21:00:00.000Z',
        finished_at: '2026-01-08T21:00:01.000Z',
        duration_ms: 1_000,
        error: { type: 'command_failed', code: 3, attempt: 1 },
      },
      { attempt: 2, status: 'done', started_at: '2026-01-08T21:00:02.000Z', duration_ms: 1_000, error: null },
    ],
  });
});

test('lost and stopped attempts have their own status', () => {
  const lost = runKernel(
    'a',
    bad('a#1', 'lost'),
    { kind: 'stop-requested', by: 'ann', force: false },
    bad('a#2', 'stopped'),
  );
  const { attempts } = stepView(lost.state, 'a', lost.records) ?? { attempts: [] };
  expect(attempts.map(({ status }) => status)).toEqual(['lost', 'stopped']);
});

test('the command is shown as started, or as written if it never started', () => {
  const { state, records } = runKernel('a says hello-{{who}}\nb needs a says bye-{{who}}');
  expect(stepView(state, 'a', records)?.asks).toMatchObject({ kind: 'command', text: 'hello-ann', filled: true });
  expect(stepView(state, 'b', records)?.asks).toMatchObject({ text: 'bye-{{who}}', filled: false });
});

test('needs are shown with their steps and statuses', () => {
  const { state, records } = runKernel('x-1\nx-2\ny needs x-*', ok('x-1#1'));
  expect(stepView(state, 'y', records)?.needed).toEqual([{ need: 'x-*', steps: { 'x-1': 'done', 'x-2': 'running' } }]);
});

test('stepViews equals stepView of each step', () => {
  const { state, records } = runKernel('a\nb needs a retry 2 delay 0s', ok('a#1'), bad('b#1'));
  expect(stepViews(state, records)).toEqual(['a', 'b'].map((id) => stepView(state, id, records)));
  expect(stepView(state, 'c', records)).toBeNull();
});

test('a step is printed as named facts, with its last output', () => {
  const { state, records } = runKernel('a\nb needs a', ok('a#1'), bad('b#1'));
  const view = stepView(state, 'b', records);
  expect(view === null ? [] : stepLines(view, null, plainPalette)).toEqual([
    'b',
    '  status:    failed',
    '  executor:  shell',
    '  started:   2026-01-08T21:00:01.000Z',
    '  finished:  2026-01-08T21:00:02.000Z',
    '  needs:     a (done)',
    '  command:   b',
    '  attempt 1: 2026-01-08T21:00:01.000Z failed after 1.0s: exited with status 3',
    '  error:     command_failed (exit 3): exited with status 3',
    '  last output:',
    '    compiling',
    '    error: no such file',
  ]);
});

test('a run is printed as named facts', () => {
  const { state } = runKernel('cleanup failure\na', bad('a#1'), ok(effectId(CLEANUP_STEP, 1)));
  expect(runView(state)).toMatchObject({ id: 'wf-1', status: 'failed', duration_ms: 2_000, folder: '/project' });
  expect(runLines(runView(state), state.cost, plainPalette)).toEqual([
    'wf-1',
    '  workflow:  trace (meow)',
    '  status:    failed',
    '  reason:    step a failed: exited with status 3',
    '  started:   2026-01-08T21:00:00.000Z',
    '  ended:     2026-01-08T21:00:02.000Z',
    '  lasted:    2.0s',
    '  folder:    /project',
    '  steps:     1 failed',
    '  var who:   ann',
    '  meta ticket: T-1',
    '  error:     a: command_failed: exited with status 3',
    '  cleanup on_failure: cleanup on failure',
  ]);
});

test('a timeout is printed as a duration, or as written if it has placeholders', () => {
  const { state, records } = runKernel('a timeout 90000ms\nb timeout 250ms');
  const shown = stepViews(state, records).map((view) =>
    stepLines(view, null, plainPalette).find((line) => /timeout/.test(line)),
  );
  expect(shown).toEqual(['  timeout:   1m30s', '  timeout:   250ms']);
  expect(durationText('{{limit}}')).toBe('{{limit}}');
});

const RETRY: Input = { kind: 'deadline-passed', timer: 'a retry' };
