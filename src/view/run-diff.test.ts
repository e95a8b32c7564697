import { expect, test } from 'vitest';

import { bad, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { plainPalette } from './row.ts';
import { runDiffLines } from './run-diff-lines.ts';
import { comparedSteps, runDiff } from './run-diff.ts';

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
  expect(runDiffLines(a, b, 0, plainPalette)).toContain('the programs differ');
});

test('variables are compared, and other programs are said to be other programs', () => {
  const [a, b] = [runKernel('build').state, runKernel('build').state];
  const { request } = b;
  if (request !== null) b.request = { ...request, variables: { who: 'bob', tag: 1 } };
  expect(runDiff(a, b, 0)).toMatchObject({
    program: { same: true },
    variables: [
      { variable: 'who', a: 'ann', b: 'bob' },
      { variable: 'tag', a: null, b: 1 },
    ],
  });
});

test('all steps of both runs are aligned, with what each took', () => {
  const a = runKernel('build\nlint', ok('build#1'), ok('lint#1')).state;
  const b = runKernel('build\nmore', ok('build#1', { tag: 1 }), bad('more#1')).state;
  expect(comparedSteps(a, b, 0)).toEqual([
    { step: 'build', a: side('done', 1_000), b: side('done', 1_000), differs: true },
    { step: 'lint', a: side('done', 2_000), b: null, differs: true },
    { step: 'more', a: null, b: side('failed', 2_000), differs: true },
  ]);
  expect(comparedSteps(a, a, 0).map(({ differs }) => differs)).toEqual([false, false]);
});

function side(status: string, duration: number): object {
  return { status, attempt: 1, duration_ms: duration, cost: null };
}
