import { expect, test } from 'vitest';

import { bad, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { plainPalette } from './row.ts';
import { runDiff, runDiffLines } from './run-diff.ts';

const PROGRAM = 'build\nlint\nship needs build,lint';

test('two runs that went the same way have no differences', () => {
  const run = () => runKernel(PROGRAM, ok('build#1', { tag: 'v1' }), ok('lint#1'), ok('ship#1')).state;
  const diff = runDiff(run(), run(), 0);
  expect([diff.steps, diff.outputs, diff.order]).toEqual([[], [], []]);
  expect(runDiffLines(run(), run(), 0, plainPalette)).toEqual([
    'wf-1 and wf-1 have the same steps, outputs and order',
    'time  3.0s → 3.0s',
  ]);
});

test('statuses, outputs and the order of ends are compared step by step', () => {
  const a = runKernel(PROGRAM, ok('build#1', { tag: 'v1', parts: { x: 1, y: 2 } }), ok('lint#1'), ok('ship#1')).state;
  const b = runKernel(PROGRAM, ok('lint#1'), ok('build#1', { tag: 'v2', parts: { y: 2, x: 1 } }), bad('ship#1')).state;
  const { steps, outputs, order, time } = runDiff(a, b, 0);
  expect(steps).toEqual([{ step: 'ship', a: 'done', b: 'failed' }]);
  expect(outputs).toEqual([{ step: 'build', output: 'tag', a: 'v1', b: 'v2' }]);
  expect(order).toEqual([{ step: 'build', a: 1, b: 2 }]);
  expect(time).toEqual({ a_ms: 3_000, b_ms: 3_000 });
});

test('a step that one run does not have is absent there', () => {
  const a = runKernel('build', ok('build#1')).state;
  const b = runKernel('build\nmore', ok('build#1'), ok('more#1')).state;
  expect(runDiff(a, b, 0).steps).toEqual([{ step: 'more', a: null, b: 'done' }]);
  expect(runDiffLines(a, b, 0, plainPalette)).toContain('more  absent → done');
});
