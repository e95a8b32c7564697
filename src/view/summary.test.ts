import { expect, test } from 'vitest';

import { answered, bad, ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { present } from '../base/errors.ts';
import { failure } from '../ir/failure.ts';
import type { Input } from '../kernel/input.ts';
import { CLEANUP_STEP, effectId, type RunState } from '../kernel/state.ts';
import { plainPalette } from './row.ts';
import { summaryLines } from './summary.ts';
import { whyView } from './why.ts';

test('a run that is done says how long it took', () => {
  expect(told(runKernel('a\nb', ok('a#1'), ok('b#1')).state)).toEqual(['done in 2.0s: 2 done']);
});

test('a failed run shows the failure, its last output, and the next command', () => {
  const { state } = runKernel('a\nb retry 2 delay 0s\nc needs b', ok('a#1'), bad('b#1'), RETRY, bad('b#2'));
  expect(told(state)).toEqual([
    'failed in 4.0s: 1 done, 1 failed, 1 skipped',
    'failed: b (exit 3, attempt 2): error: no such file',
    'next: meow logs wf-1 b · meow resume wf-1',
  ]);
});

test('a step that could not be started has no logs to look at', () => {
  const { state } = runKernel('a says {{nobody}}');
  expect(told(state)).toEqual([
    'failed in 0ms: 1 failed',
    'failed: a (variable_unresolved): {{nobody}} is unknown (known here: who)',
    'next: meow show wf-1 a · meow resume wf-1',
  ]);
});

test('the last output of an agent that failed to start, or died, is shown', () => {
  for (const kind of ['spawn-failed', 'agent-crashed'] as const) {
    const { state } = runKernel('a', bad('a#1', kind));
    expect(told(state)[1]).toMatch(
      /^failed: a \((?:spawn_failed|agent_crashed)\): exited with status 3: error: no such file$/,
    );
  }
});

test('agents still running in terminals are listed', () => {
  const opened = (name: string): Input => ok(`${name}#1`, { terminal: `meow-wf-1-${name}` });
  expect(told(runKernel('s spawn w', opened('s')).state)).toEqual([
    'done in 1.0s: 1 done',
    'left: agent w, in its terminal: meow attach wf-1 w',
  ]);
  expect(told(runKernel('s spawn w\nt spawn v', opened('s'), opened('t')).state).at(-1)).toBe(
    'left: 2 agents, in their terminals: meow agents --run wf-1',
  );
  expect(told(runKernel('s spawn w\nk kill w needs s', opened('s'), ok('k#1')).state)).toHaveLength(1);
});

test('a handled failure is not listed beside an unhandled one', () => {
  const { state } = runKernel('a on_error continue\nb needs a', bad('a#1'), bad('b#1'));
  expect(told(state).filter((line) => line.startsWith('failed:'))).toEqual(['failed: b (exit 3): error: no such file']);
});

test('a failure that a parent handles is not listed, while the run goes on and when it is done', () => {
  const each = runKernel('e each [1,2] sub on_error continue\nb needs e\nblock sub\nx', bad('e.0.x#1'), ok('e.1.x#1'));
  expect(told(each.state)).toEqual(['running: 1 running, 1 done, 2 failed']);
  const { state } = runKernel(
    'a pass route done=expand:sub on_error recover:fix\nblock sub\nx\nblock fix\ny',
    bad('a.x#1'),
    ok('a.recover.1.y#1'),
  );
  expect(told(state)).toEqual(['done in 2.0s: 1 done, 2 failed (handled)']);
});

test('a recovery that fails is listed with the step that it was for', () => {
  const { state } = runKernel('a on_error recover:fix\nblock fix\ny', bad('a#1'), bad('a.recover.1.y#1'));
  expect(told(state).filter((line) => line.startsWith('failed:'))).toHaveLength(2);
});

test('the next command names a step that has output', () => {
  const { state } = runKernel(
    'f loop round max 1 until check\nblock round\nwork\nblock check\nuntil asks',
    ok('f.1.work#1'),
    answered('f.1.until#1', 'false'),
  );
  expect(told(state).slice(1)).toEqual([
    'failed: f (rounds_exhausted): the loop is not over after 1 round',
    'next: meow logs wf-1 f.1.until · meow resume wf-1',
  ]);
});

test('a reason that the output repeats is told once', () => {
  const message = 'usage limit reached, whenever';
  const problem = failure('agent-crashed', message, { output: `${message}\n` });
  const outcome = { kind: 'failure', failure: problem } as const;
  const { state } = runKernel('a', { kind: 'effect-finished', effect: 'a#1', outcome });
  expect(told(state)[1]).toBe(`failed: a (agent_crashed): ${message}`);
  expect(whyView(state, 'a')?.because.join(' ')).not.toMatch(/last output/);
});

test('only the first few of many failures are listed', () => {
  const program = Array.from({ length: 9 }, (_, index) => `s${index}`);
  const { state } = runKernel(program.join('\n'), ...program.map((id) => bad(`${id}#1`)));
  expect(told(state)).toHaveLength(1 + 5 + 1 + 1);
  expect(told(state)).toContain('… 4 more failed');
});

test('a stopped or paused run shows its reason', () => {
  const { state } = runKernel('a', { kind: 'stop-requested', by: 'ann', force: false }, bad('a#1', 'stopped'));
  expect(told(state)).toEqual(['stopped in 2.0s: 1 skipped (stopped by ann)', 'next: meow resume wf-1']);
  const { state: paused } = runKernel('a\nb needs a', { kind: 'pause-requested', reason: 'no money' }, ok('a#1'));
  expect(told(paused)).toEqual(['paused in 2.0s: 1 done, 1 pending (no money)', 'next: meow resume wf-1']);
});

test('an id with a leading dash is not read as a flag', () => {
  const { state } = runKernel('a', { kind: 'stop-requested', by: 'ann', force: false }, bad('a#1', 'stopped'));
  const request = { ...present(state.request, 'it was requested'), id: '-x' };
  expect(told({ ...state, request }).at(-1)).toBe('next: meow resume -- -x');
});

test('a waiting run shows how to decide its gate', () => {
  expect(told(runKernel('a gate g').state)).toEqual(['waiting: 1 running', 'next: meow approve wf-1 g']);
});

test('warnings are repeated at the end', () => {
  const { state } = runKernel('cleanup success\na', ok('a#1'), bad(effectId(CLEANUP_STEP, 1)));
  expect(told(state)).toContain('warning: the cleanup script failed: exited with status 3');
});

const RETRY: Input = { kind: 'deadline-passed', timer: 'b retry' };

function told(state: RunState): readonly string[] {
  return summaryLines(state, plainPalette);
}
