import { describe, expect, test } from 'vitest';

import { bad, ok, runKernel, START_TIME } from '../../test/kernel-rig/run-kernel.ts';
import { runSpanId, stepSpanId } from '../base/trace-ids.ts';
import type { Input } from '../kernel/input.ts';
import { effectId } from '../kernel/state.ts';
import { countRecords, sumCounts } from './run-metrics.ts';
import { traceOf, type TraceSpan } from './trace-spans.ts';

const RUN = { id: 'wf-1', mark: 'm' };
const RETRY: Input = { kind: 'deadline-passed', timer: 'b retry' };

function trace(program: string, ...inputs: readonly Input[]): readonly TraceSpan[] {
  const { state, records } = runKernel(program, ...inputs);
  return traceOf({ id: 'wf-1', program: state.program, state, records }, null).spans;
}

function named(spans: readonly TraceSpan[], name: string): TraceSpan | undefined {
  return spans.find((span) => span.name === name);
}

describe('the trace of a run', () => {
  test('has a span for the run, each step and each attempt, each after the one that it is below', () => {
    const spans = trace('a\nb needs a', ok('a#1'), ok('b#1'));
    expect(spans.map(({ name }) => name.replace(/^run .*/, 'run'))).toEqual([
      'run',
      'step a',
      'attempt 1',
      'step b',
      'attempt 1',
    ]);
    expect(spans.map(({ parentId }) => parentId)).toEqual([
      null,
      runSpanId(RUN),
      stepSpanId(RUN, 'a'),
      runSpanId(RUN),
      stepSpanId(RUN, 'b'),
    ]);
    expect(named(spans, 'step b')).toMatchObject({
      from: START_TIME + 1_000,
      to: START_TIME + 2_000,
      error: null,
      attributes: { 'meow.step.id': 'b', 'meow.step.status': 'done' },
    });
  });

  test('marks what failed, each attempt alone, and has what was skipped', () => {
    const spans = trace('b retry 2 delay 0s\nc needs b', bad('b#1'), RETRY, bad('b#2'));
    expect(spans[0]).toMatchObject({ attributes: { 'meow.status': 'failed' }, error: expect.stringContaining('b') });
    expect(named(spans, 'step b')?.error).toBe('exited with status 3');
    const attempts = spans.filter(({ name }) => name.startsWith('attempt'));
    expect(attempts).toMatchObject([
      { from: START_TIME, to: START_TIME + 1_000, error: 'exited with status 3' },
      { from: START_TIME + 2_000, to: START_TIME + 3_000, error: 'exited with status 3' },
    ]);
    expect(named(spans, 'step c')).toMatchObject({
      from: START_TIME + 3_000,
      to: START_TIME + 3_000,
      error: null,
      attributes: { 'meow.step.status': 'skipped' },
    });
  });

  test('of a run that goes on ends with the last record', () => {
    const spans = trace('a\nb needs a', ok('a#1'));
    expect(spans[0]).toMatchObject({ to: START_TIME + 1_000, attributes: { 'meow.status': 'running' } });
    expect(named(spans, 'step b')).toMatchObject({ from: START_TIME + 1_000, to: START_TIME + 1_000 });
  });
});

describe('metrics of runs', () => {
  test('count outcomes of steps from a moment on', () => {
    const { records } = runKernel(
      'b retry 2 delay 0s\nc needs b\nd',
      ok(effectId('d', 1)),
      bad('b#1'),
      RETRY,
      bad('b#2'),
    );
    expect(countRecords(records, 0).steps).toEqual({ done: 1, failed: 1, skipped: 1 });
    expect(countRecords(records, START_TIME + 1_001).steps).toEqual({ done: 0, failed: 1, skipped: 1 });
  });

  test('add up over runs', () => {
    const { records } = runKernel('a', ok('a#1'));
    const counts = countRecords(records, 0);
    expect(sumCounts([counts, counts]).steps.done).toBe(2);
    expect(sumCounts([]).turns.size).toBe(0);
  });
});
