import { expect, test } from 'vitest';

import { bad, ok, runKernel, START_TIME } from '../../test/kernel-rig/run-kernel.ts';
import { failure } from '../ir/failure.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { CLEANUP_STEP, effectId } from '../kernel/state.ts';
import { plainPalette } from './row.ts';
import { decisionJson, renderTimelineLine, Timeline } from './timeline.ts';

test('each change is one line', () => {
  const { records } = runKernel(
    'build\nlint retry 2 delay 1s\ntest needs build,lint\ndeploy needs test',
    ok('build#1'),
    bad('lint#1'),
    { kind: 'deadline-passed', timer: 'lint retry' },
    bad('lint#2'),
  );
  expect(told(records)).toEqual([
    '+0ms     run started',
    '+0ms     build  started',
    '+0ms     lint   started',
    '+1.0s    build  done 1.0s',
    '+2.0s    lint   failed: exited with status 3 — retry in 1.0s',
    '+3.0s    lint   started (attempt 2)',
    '+4.0s    lint   failed 1.0s: exited with status 3',
    '+4.0s    run is failing: step lint failed: exited with status 3',
    '+4.0s    skipped 2 steps: test, deploy',
    '+4.0s    run failed after 4.0s: step lint failed: exited with status 3',
  ]);
});

test('a refused report is told by its reasons, without the screen that the agent got', () => {
  const screen =
    'Missing required outputs\n\nRequired:\n  ✗ k (string): Not provided\n\nInvalid:\n  ✗ n (number): is not a number\n\nUsage:\n  meow done --output k=<value>';
  const refused = (reason: string) => ({ kind: 'report-refused', step: 'a', reason }) as const;
  const { records } = runKernel(
    's spawn w\na prompt w wants k needs s',
    ok('s#1'),
    refused(screen),
    refused('no\nmore'),
  );
  expect(told(records).filter((line) => line.includes('refused'))).toEqual([
    '+2.0s    a      report refused: k (string): Not provided; n (number): is not a number',
    '+3.0s    a      report refused: no',
  ]);
});

test('a detached run is started by its engine; only an interrupted run is resumed', () => {
  const again = { kind: 'run-resumed', retryFailed: true, allowance: null } as const;
  expect(told(runKernel('a', again, again, bad('a#1'), again).records)).toEqual([
    '+0ms     run started',
    '+0ms     a      started',
    '+1.0s    an engine has started the run',
    '+2.0s    run resumed',
    '+3.0s    a      failed 3.0s: exited with status 3',
    '+3.0s    run is failing: step a failed: exited with status 3',
    '+3.0s    run failed after 3.0s: step a failed: exited with status 3',
    '+4.0s    run resumed; retrying 1 step: a',
    '+4.0s    a      started (attempt 2)',
  ]);
});

test('an input without decisions adds no line', () => {
  const { records } = runKernel('a\nb', ok('a#1'), ok('a#1'));
  expect(told(records.slice(0, 2))).toEqual(told(records));
});

test('a loop says which round begins, and how long it waits before', () => {
  const { records } = runKernel(
    'fix loop round max 3 until check delay 9s\nblock round\nwork\nblock check\nuntil asks',
    ok('fix.1.work#1'),
    ok('fix.1.until#1'),
  );
  expect(told(records)).toEqual([
    '+0ms     run started',
    '+0ms     fix    started',
    '+0ms     fix    round 1 (1 step)',
    '+0ms     fix.1.work started',
    '+1.0s    fix.1.work done 1.0s',
    '+1.0s    fix.1.until started',
    '+2.0s    fix.1.until done 1.0s',
    '+2.0s    fix    waits 9.0s before round 2',
  ]);
});

test('many skipped steps are one line', () => {
  const dependents = Array.from({ length: 500 }, (_, index) => `s${index} needs a`).join('\n');
  const { records } = runKernel(`a\n${dependents}`, bad('a#1'));
  expect(told(records)).toContain('+1.0s    skipped 500 steps: s0, s1, s2 …');
});

test('growth is one line for each step that grew', () => {
  const { records } = runKernel('e each [1,2,3] sub\nx pass route done=expand:sub\nblock sub\na\nb needs a');
  expect(told(records)).toEqual([
    '+0ms     run started',
    '+0ms     e      started (3 items)',
    '+0ms     e      began 3 iterations (6 steps)',
    '+0ms     x      started',
    '+0ms     x      expanded into 2 steps',
    ...['e.0.a', 'e.1.a', 'e.2.a', 'x.a'].map((id) => `+0ms     ${id.padEnd(6)} started`),
  ]);
});

test('a failure shows how it is handled', () => {
  const { records } = runKernel(
    'a on_error continue\nb on_error recover:fix\nblock fix\nrepair',
    bad('a#1'),
    bad('b#1'),
    ok('b.recover.1.repair#1'),
  );
  expect(told(records).slice(3, -1)).toEqual([
    '+1.0s    a      failed 1.0s: exited with status 3 — the run continues',
    '+2.0s    b      failed 2.0s: exited with status 3 — recovery follows',
    '+2.0s    b      recovers by 1 step',
    '+2.0s    b.recover.1.repair started',
    '+3.0s    b.recover.1.repair done 1.0s',
    '+3.0s    b      recovered',
  ]);
});

test('stop, cleanup and resume are shown', () => {
  const { records } = runKernel(
    'cleanup stop\na\nb needs a',
    { kind: 'stop-requested', by: 'ann', force: false },
    bad('a#1', 'stopped'),
    ok(effectId(CLEANUP_STEP, 1)),
    { kind: 'run-resumed', retryFailed: true, allowance: null },
  );
  expect(told(records).slice(2)).toEqual([
    '+1.0s    run is stopping: stopped by ann',
    '+1.0s    a      is being stopped',
    '+2.0s    a      stopped',
    '+2.0s    b      skipped',
    '+2.0s    cleanup started',
    '+3.0s    cleanup finished',
    '+3.0s    run stopped after 3.0s: stopped by ann',
    '+4.0s    run resumed; retrying 2 steps: a, b',
    '+4.0s    a      started (attempt 2)',
  ]);
});

test('a withdrawn stop or pause is shown', () => {
  const resume = { kind: 'run-resumed', retryFailed: true, allowance: null } as const;
  const stopped = runKernel('a', { kind: 'stop-requested', by: 'ann', force: false }, resume);
  expect(told(stopped.records).at(-1)).toBe('+2.0s    run resumed; the stop is withdrawn');
  const paused = runKernel('a', { kind: 'pause-requested', reason: 'no room' }, resume);
  expect(told(paused.records).at(-1)).toBe('+2.0s    run resumed; the pause is withdrawn');
});

test('a gate shows who decided it', () => {
  const verdict = { approved: true, by: 'bob', notes: 'go', answer: null };
  const { records } = runKernel('a gate g', { kind: 'gate-decided', gate: 'g', verdict, message: null });
  expect(told(records).slice(1, 3)).toEqual([
    '+0ms     a      waits for a decision on gate g',
    '+1.0s    gate g approved by bob: go',
  ]);
});

test('a trace shows moments, and text from a step cannot control the terminal', () => {
  const line = { at: START_TIME, step: 'a', text: 'x', tone: 'plain' } as const;
  expect(renderTimelineLine(line, { kind: 'moment' }, 4, plainPalette)).toBe('2026-01-08T21:00:00.000Z a    x');
  const evil = failure('exit-nonzero', 'one\u001b[2Jtwo\nthree');
  const { records } = runKernel('a', {
    kind: 'effect-finished',
    effect: 'a#1',
    outcome: { kind: 'failure', failure: evil },
  });
  expect(told(records)).toContain('+1.0s    a      failed 1.0s: onetwo three');
});

test('each decision is an object that names its run and record', () => {
  const { records } = runKernel('a', ok('a#1', { x: 1 }));
  const objects = records.flatMap((record) => decisionJson(record, 'wf-1'));
  expect(objects.map(({ seq, kind }) => `${seq} ${kind}`)).toEqual([
    '1 run-started',
    '1 frame-opened',
    '1 steps-added',
    '1 step-started',
    '2 step-done',
    '2 frame-closed',
    '2 run-ending',
    '2 run-ended',
  ]);
  expect(objects[4]).toEqual({
    run: 'wf-1',
    seq: 2,
    at: '2026-01-08T21:00:01.000Z',
    kind: 'step-done',
    step: 'a',
    outputs: { x: 1 },
    kept: [],
    session: null,
  });
});

function told(records: readonly JournalRecord[]): readonly string[] {
  const timeline = new Timeline();
  return records.flatMap((record) =>
    timeline
      .lines(record)
      .map((line) => renderTimelineLine(line, { kind: 'elapsed', startedAt: START_TIME }, 6, plainPalette)),
  );
}
