// Mistakes and omissions in somebody's first Conductor workflows.

import { describe, expect, test } from 'vitest';
import { ConductorRig, events, gate, leadsTo, validate, work } from '../fixtures/conductor/rig.ts';

const CONFIG = `[validators.good]
command = "true"
[validators.bad]
command = "exit 3"
`;

describe('an outcome without a route', () => {
  test.each([
    ['good', 'error', 'completed', 'the RUN_VALIDATION step "check" has no route for "completed"'],
    ['bad', 'completed', 'error', 'bad: the command exited with status 3; no route for error'],
  ])('of a validator that is %s ends the run with a message', async (validator, routed, outcome, message) => {
    await using made = await ConductorRig.setup({}, CONFIG);
    made.workflow({ check: { opcode: 'RUN_VALIDATION', run: [validator], routes: { [routed]: 'STOP' } } });
    expect(await made.run()).toMatchObject({ code: 1, stdout: expect.stringContaining(message) as string });
    expect((await made.rig.status('r')).error).toMatchObject({ message });
    expect(await made.outcomes()).toEqual([`check#1 ${outcome}`]);
  });

  test('of a gate is its decision', async () => {
    await using made = await ConductorRig.setup();
    const { rig } = made;
    made.workflow({ ask: gate({ gate_rejected: 'STOP' }) });
    expect(await made.run('--no-wait')).toMatchObject({ code: 3 });
    await rig.meow('approve', 'r', 'ask');
    expect(await rig.meow('resume', 'r')).toMatchObject({ code: 1 });
    expect(await made.outcomes()).toEqual(['ask#1 gate_approved']);
    expect((await rig.status('r')).error?.message).toBe('the GATE step "ask" has no route for "gate_approved"');
    const told = events(rig).map(({ event_type: type }) => type);
    expect(told).toContain('gate_approved');
    expect(told).not.toContain('gate_timed_out');
    // A run that only paused has not ended.
    expect(told.filter((type) => type === 'run_ended')).toHaveLength(1);
  });
});

test.each(['queue_for_review', 'requires_daily_review'])('%s stays listed after the run has ended', async (type) => {
  await using made = await ConductorRig.setup();
  made.workflow({ note: { opcode: 'GATE', gate: type, reason: 'Some day.', routes: { completed: 'STOP' } } });
  expect(await made.run()).toMatchObject({ code: 0 });
  expect((await made.rig.meow('gates')).stdout).toMatch(/^r +note +note#1 .*Some day\./m);
});

test('a simulated agent without a script evaluates everything as a success', async () => {
  await using made = await ConductorRig.setup({}, CONFIG);
  const routes = { success: 'STOP', partial: 'STOP', unsafe: 'STOP', needs_human: 'STOP' };
  const judge = { opcode: 'EVALUATE', prompt: 'planner.evaluate_results.v1', allowed_next_steps: [], routes };
  made.workflow({ check: validate('judge', ['good']), judge });
  expect(await made.run('--adapter', 'sim')).toMatchObject({ code: 0 });
  expect(await made.outcomes()).toEqual(['check#1 completed', 'judge#1 success', 'STOP#1 completed']);
});

test('scripts always have a temporary folder', async () => {
  const config = '[conductor]\nallowed_entrypoints = ["check.sh"]\n';
  await using made = await ConductorRig.setup({ 'check.sh': 'test -d "$TMPDIR"\n' }, config);
  const check = { id: 'script', kind: 'script', entrypoint: 'check.sh' };
  made.workflow({ check: { ...validate('STOP', [check]), routes: leadsTo('STOP') } });
  expect(await made.run()).toMatchObject({ code: 0 });
});

test('a run whose worktree was removed refuses to continue', async () => {
  await using made = await ConductorRig.setup({}, CONFIG);
  made.agents({ implement: 'echo mine > mine.txt; echo done' });
  made.workflow({
    implement: work('check'),
    check: { opcode: 'RUN_VALIDATION', run: ['bad'], routes: { completed: 'STOP' } },
  });
  expect(await made.run()).toMatchObject({ code: 1 });
  expect((await made.rig.meow('gc')).stdout).toContain('r: kept');
  expect(await made.rig.meow('gc', 'r', '--force')).toMatchObject({ code: 0, stdout: 'r: removed\n' });
  expect(await made.rig.meow('resume', 'r')).toMatchObject({ code: 1 });
  expect((await made.rig.status('r')).error?.message).toContain('the worktree of run r is gone');
});
