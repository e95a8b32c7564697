import { expect, test } from 'vitest';

import { answered, bad, ok, runKernel, START_TIME } from '../../test/kernel-rig/run-kernel.ts';
import { success } from '../ir/effect.ts';
import type { Input } from '../kernel/input.ts';
import { CLEANUP_STEP, effectId, type RunState } from '../kernel/state.ts';
import { plainPalette, widthOf } from './row.ts';
import { treeLines, type TreeOptions } from './tree-lines.ts';
import { whyView } from './why.ts';

const OPTIONS = {
  width: 80,
  height: 30,
  ascii: false,
  closing: false,
  interrupted: false,
  palette: plainPalette,
};

test('every step has a row, below what it grew from', () => {
  const { state } = runKernel(
    'build\nlint retry 2 delay 10s\nask gate g\ne each [1,2] sub\ntest needs build\ndeploy needs test\nblock sub\na\nb needs a',
    ok('build#1'),
    bad('lint#1'),
    bad('test#1'),
  );
  expect(drawn(state)).toEqual([
    'wf-1 trace  running  4.0s  4 running, 1 done, 1 failed, 4 pending',
    '  step test failed: exited with status 3',
    '✓ build   1.0s',
    '↻ lint    exited with status 3 — error: no such file  retry in 8.0s',
    '? ask     4.0s',
    '● e       4.0s  0/2',
    '  ● 0.a   4.0s',
    '  · 0.b',
    '  ● 1.a   4.0s',
    '  · 1.b',
    '✗ test    2.0s  exited with status 3 — error: no such file',
    '· deploy',
  ]);
});

test('of a loop the present round is open, and the earlier ones are folded', () => {
  const program = 'fix loop round max 3 until check delay 9s\nblock round\nwork\nblock check\nuntil asks';
  const due: Input = { kind: 'deadline-passed', timer: 'fix round' };
  const wait = Array.from({ length: 9 }, () => due);
  const { state: waiting } = runKernel(program, ok('fix.1.work#1'), ok('fix.1.until#1'));
  expect(drawn(waiting)).toEqual([
    'wf-1 trace  running  3.0s  1 running, 2 done',
    '● fix        3.0s  round 1 of 3  next round in 8.0s',
    '  ✓ 1.work   1.0s',
    '  ✓ 1.until  1.0s',
  ]);
  const { state } = runKernel(program, ok('fix.1.work#1'), ok('fix.1.until#1'), ...wait, ok('fix.2.work#1'));
  expect(drawn(state).slice(1)).toEqual(['● fix        13.0s  round 2 of 3', '  ✓ 2.work   1.0s', '  ● 2.until  1.0s']);
  const { state: ended } = runKernel(program, ok('fix.1.work#1'), answered('fix.1.until#1', 'true'));
  expect(drawn(ended)[1]).toBe('✓ fix        2.0s  1 round');
});

test('after a loop that checks first, the last round stays open', () => {
  const program = 'fix loop round max 3 while check\nblock round\nwork\nblock check\nwhile asks';
  const { state } = runKernel(
    program,
    answered('fix.1.while#1', 'true'),
    ok('fix.1.work#1'),
    answered('fix.2.while#1', 'false'),
  );
  expect(drawn(state).slice(1)).toEqual([
    '✓ fix        3.0s  1 round',
    '  ✓ 1.while  1.0s',
    '  ✓ 1.work   1.0s',
    '  ✓ 2.while  1.0s',
  ]);
});

test('an open gate says how to decide it', () => {
  expect(drawn(runKernel('ask gate g').state).at(-1)).toBe('? g waits for you  meow approve wf-1 g');
});

test('in a small terminal, running and failed steps stay and the rest is counted', () => {
  const program = Array.from({ length: 500 }, (_, index) => (index === 0 ? 's0' : `s${index} needs s${index - 1}`));
  const { state } = runKernel(program.join('\n'), ok('s0#1'), ok('s1#1'), ok('s2#1'));
  expect(drawn(state, { height: 8 })).toEqual([
    'wf-1 trace  running  4.0s  1 running, 3 done, 496 pending',
    '✓ s0  1.0s',
    '✓ s1  1.0s',
    '✓ s2  1.0s',
    '● s3  1.0s',
    '· s4',
    '· s5',
    '… 494 more pending',
  ]);
});

test('each branch counts its hidden steps', () => {
  const { state } = runKernel('a\ne each [1,2,3,4] sub width 3\nblock sub\nx\ny needs x');
  expect(drawn(state, { height: 7 })).toEqual([
    'wf-1 trace  running  1.0s  5 running, 3 pending',
    '● a      1.0s',
    '● e      1.0s  0/4',
    '  ● 0.x  1.0s',
    '  ● 1.x  1.0s',
    '  ● 2.x  1.0s',
    '  … 3 more pending',
  ]);
});

test('running steps are counted too if there are more than rows', () => {
  const program = Array.from({ length: 50 }, (_, index) => `s${index}`);
  const { state } = runKernel(program.join('\n'));
  expect(drawn(state, { height: 4 })).toEqual([
    'wf-1 trace  running  1.0s  50 running',
    '● s0  1.0s',
    '● s1  1.0s',
    '… 48 more running',
  ]);
});

test.each([1, 2, 3, 5, 9, 40])('never higher than %i rows, nor wider than the terminal', (height) => {
  const program = [
    'ask gate g',
    'e each [1,2,3,4] sub',
    ...Array.from({ length: 40 }, (_, index) => `длинный-${index}-名前`),
  ];
  const { state } = runKernel(`${program.join('\n')}\nblock sub\nx\ny needs x`, bad('e.0.x#1'));
  for (const width of [1, 10, 33, 80]) {
    const lines = drawn(state, { height, width });
    expect(lines.length).toBeLessThanOrEqual(height);
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
  }
});

test('a terminal without Unicode gets ASCII', () => {
  const { state } = runKernel('a\nb needs a\nc on_error continue', ok('a#1'), bad('c#1'));
  expect(drawn(state, { ascii: true })).toEqual([
    'wf-1 trace  running  3.0s  1 running, 1 done, 1 failed',
    '+ a  1.0s',
    '* b  2.0s',
    '^ c  2.0s  exited with status 3 - error: no such file  continued',
  ]);
});

test('the last warning is shown, unless the closing summary follows', () => {
  const { state } = runKernel('cleanup success\na', ok('a#1'), bad(effectId(CLEANUP_STEP, 1)));
  const warning = 'warning: the cleanup script failed: exited with status 3';
  expect(drawn(state).at(-1)).toBe(warning);
  expect(drawn(state, { closing: true })).not.toContain(warning);
});

test('a rejected gate and a false condition have marks of their own', () => {
  const verdict = { approved: false, by: 'ann', notes: 'no tests', answer: null };
  const { state } = runKernel(
    'a asks\ng gate deploy',
    { kind: 'effect-finished', effect: 'a#1', outcome: success({ outcome: 'false' }, { route: 'false' }) },
    { kind: 'gate-decided', gate: 'deploy', verdict, message: null },
  );
  expect(drawn(state).slice(1)).toEqual(['◇ a  1.0s  condition false', '⊘ g  2.0s  rejected by ann: no tests']);
});

test('a handled failure has a mark of its own, and its recovery is not counted', () => {
  const { state } = runKernel(
    'a on_error recover:fix\nb route exit-nonzero=end\ne each [1] sub on_error continue\nblock fix\ny\nblock sub\nx',
    bad('a#1'),
    ok('a.recover.1.y#1'),
    bad('b#1'),
    bad('e.0.x#1'),
  );
  const failed = 'exited with status 3 — error: no such file';
  expect(drawn(state)).toEqual([
    'wf-1 trace  done  4.0s  1 done, 4 failed (handled)',
    `↷ a              1.0s  ${failed}  recovered`,
    '  ✓ recover.1.y  1.0s',
    `↷ b              3.0s  ${failed}  routed`,
    '↷ e              4.0s  1/1  step e.0.x failed  continued',
    `  ↷ 0.x          4.0s  ${failed}`,
  ]);
});

test('a rejection is told once', () => {
  const verdict = { approved: false, by: 'ada', notes: 'too late', answer: null };
  const { state } = runKernel('g gate ship route rejected=reject', {
    kind: 'gate-decided',
    gate: 'ship',
    verdict,
    message: null,
  });
  expect(drawn(state).at(-1)).toBe('⊘ g  1.0s  gate ship was rejected by ada: too late');
  expect(
    whyView(state, 'g')
      ?.because.join(' ')
      .match(/rejected/g),
  ).toHaveLength(1);
});

test('an agent that was refused a permission and finished is done, not rejected', () => {
  const dialog = { name: 'Bash', text: 'May I run it?' };
  const { state } = runKernel(
    'a turn x',
    { kind: 'effect-progressed', effect: 'a#1', progress: { dialog } },
    {
      kind: 'gate-decided',
      gate: 'a.dialog.1',
      verdict: { approved: false, by: 'ada', notes: null, answer: null },
      message: null,
    },
    { kind: 'effect-progressed', effect: 'a#1', progress: { dialog: null } },
    ok('a#1'),
  );
  expect(drawn(state).at(-1)).toBe('✓ a  4.0s');
});

test('a loop that began no round says so', () => {
  const program = 'fix loop round max 3 while check\nblock round\nwork\nblock check\nwhile asks';
  const { state } = runKernel(program, answered('fix.1.while#1', 'false'));
  expect(drawn(state)[1]).toBe('✓ fix        1.0s  0 rounds');
});

test('a paused run shows its open gate, and the clock of the step that waits stands still', () => {
  const { state } = runKernel('g gate ship', { kind: 'pause-requested', reason: 'a person is asked' });
  const lines = treeLines(state, { ...OPTIONS, now: START_TIME + 3_600_000 });
  expect(lines).toContain('? g  1.0s');
  expect(lines.at(-1)).toBe('? ship waits for you  meow approve wf-1 ship');
});

test('the work that a gate decides on is named below it, cut to the width', () => {
  const { state } = runKernel('g gate ship');
  const work = ['work: branch meow/run-r in .meow/worktrees/r', '  show: git diff'];
  const lines = treeLines(state, { ...OPTIONS, now: START_TIME, width: 30, work });
  expect(lines.slice(-2)).toEqual(['work: branch meow/run-r in .m…', '  show: git diff']);
  expect(treeLines(runKernel('a').state, { ...OPTIONS, now: START_TIME, work })).toHaveLength(2);
});

test('a foreach counts all its iterations, also those that have not begun', () => {
  const { state } = runKernel(
    'e each [1,2,3,4,5,6,7,8] sub width 1\nblock sub\nx\ny needs x',
    ...['e.0.x', 'e.0.y', 'e.1.x', 'e.1.y', 'e.2.x', 'e.2.y'].map((id) => ok(`${id}#1`)),
  );
  expect(drawn(state)[1]).toMatch(/^● e +\S+ +3\/8$/);
});

test('styles do not count as width', () => {
  const { state } = runKernel('a');
  const loud = { ...plainPalette, cyan: (text: string) => `<${text}>` };
  const [, step] = treeLines(state, {
    now: START_TIME,
    width: 8,
    height: 9,
    palette: loud,
    ascii: false,
    closing: false,
    interrupted: false,
  });
  expect(step).toBe('<● >a  0ms');
});

function drawn(
  state: RunState,
  size: Partial<Pick<TreeOptions, 'width' | 'height' | 'ascii' | 'closing'>> = {},
): readonly string[] {
  const latest = Math.max(...[...state.steps.values()].map((step) => step.finishedAt ?? 0), START_TIME);
  return treeLines(state, {
    now: latest + 1_000,
    width: 80,
    height: 30,
    ascii: false,
    closing: false,
    interrupted: false,
    ...size,
    palette: plainPalette,
  });
}
