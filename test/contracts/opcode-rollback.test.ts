// Rollback: to before the run, or before the latest turn of an agent.

import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { picture } from './git-rig.ts';
import { answering, failureOf, successOf, WorkRig } from './opcode-work-rig.ts';

let rig: WorkRig;
beforeEach(async () => {
  rig = await WorkRig.setup();
});
afterEach(() => rig[Symbol.asyncDispose]());

async function works(script: string): Promise<void> {
  rig.agent(`{ ${script}; } >&2; ${answering('Done.')}`);
  await rig.work();
}

describe('a rollback (§6)', () => {
  test('to pre_step restores the state before the latest turn, byte for byte', async () => {
    await works('echo 1 > one; git add one; git commit --quiet -m one; echo u > untracked; echo i > i.log');
    const before = picture(rig.worktree);
    const head = rig.git('rev-parse', 'HEAD');
    await works(
      'rm one; echo 2 >> dir/c.txt; mkdir x; echo x > x/y; git add -A; git commit --quiet -m two; git switch --quiet -c z',
    );
    const { outputs, route } = successOf(await rig.rollback('pre_step'));
    expect(route).toBe('completed');
    expect(picture(rig.worktree)).toEqual(before);
    expect(rig.git('rev-parse', 'HEAD')).toBe(head);
    expect(rig.git('branch', '--show-current').trim()).toBe(`meow/run-${rig.runId}`);
    expect(outputs).toMatchObject({
      target: 'pre_step',
      before_diff: 'artifacts/rollback/1/before.patch',
      after_diff: 'artifacts/rollback/1/after.patch',
      head: head.trim(),
    });
    expect(rig.artifact('rollback#1', 'before.patch')).toContain('x/y');
    expect(rig.artifact('rollback#1', 'after.patch')).not.toContain('x/y');
    expect(rig.git('show', `${outputs['undone_ref'] as string}:x/y`)).toBe('x\n');
  });

  test("to pre_run restores the state before the run, and does not change the user's tree", async () => {
    const user = rig.userPicture();
    await works('echo 1 > one');
    await works('rm a.txt; git add -A; git commit --quiet -m two');
    const { outputs } = successOf(await rig.rollback('pre_run'));
    expect(rig.git('status', '--porcelain', '-uall')).toBe('');
    expect(rig.git('rev-parse', 'HEAD')).toBe(rig.repository.git('user', 'rev-parse', 'HEAD'));
    expect(outputs['restored_tree']).toBe(rig.git('rev-parse', 'HEAD^{tree}').trim());
    expect(rig.artifact('rollback#1', 'after.patch')).toBe('');
    expect(rig.userPicture()).toEqual(user);
    expect(outputs['artifacts']).toMatchObject([
      { role: 'workspace_diff' },
      { role: 'workspace_diff' },
      { role: 'workspace_status' },
    ]);
  });

  test('to pre_run is possible before any agent has worked', async () => {
    successOf(await rig.rollback('pre_run'));
  });

  test('may follow another, and another turn', async () => {
    await works('echo 1 > one');
    successOf(await rig.rollback('pre_step'));
    await works('echo 2 > two; git add two; git commit --quiet -m two');
    successOf(await rig.rollback('pre_step'));
    successOf(await rig.rollback('pre_run'));
    expect(rig.git('status', '--porcelain', '-uall')).toBe('');
  });

  test('that is found again is not repeated', async () => {
    await works('echo 1 > one');
    const first = successOf(await rig.rollback('pre_step'));
    rig.repository.write(`.meow/worktrees/${rig.runId}/later`, 'l\n');
    rig.nextLife();
    const second = successOf(await rig.rollback('pre_step', { step: 'rollback#1' }));
    expect(rig.git('status', '--porcelain', '-uall')).toBe('?? later\n');
    expect(second.outputs['undone_ref']).toBe(first.outputs['undone_ref']);
    expect(rig.artifact('rollback#1', 'before.patch')).toContain('one');
  });

  test('finds its repository, even if the worktree has lost its link to it', async () => {
    const user = rig.userPicture();
    await works('echo 1 > one');
    rmSync(rig.inTree('.git'));
    successOf(await rig.rollback('pre_step'));
    expect(rig.git('status', '--porcelain', '-uall')).toBe('');
    expect(rig.userPicture()).toEqual(user);
  });
});

describe('a rollback is refused, with advice,', () => {
  test('on a protected branch (§6)', async () => {
    await works('git switch --quiet -c release/1; echo 1 > one');
    const failure = failureOf(await rig.rollback('pre_step'));
    expect(failure.kind).toBe('refused');
    expect(failure.message).toMatch(/protected branch release\/1.*; switch to another branch/);
    expect(rig.git('status', '--porcelain', '-uall')).toBe('?? one\n');
  });

  test('if somebody else has moved the branch', async () => {
    await works('echo 1 > one');
    rig.git('commit', '--quiet', '--allow-empty', '-m', 'by a person');
    const failure = failureOf(await rig.rollback('pre_step'));
    expect(failure).toMatchObject({ kind: 'refused' });
    expect(failure.message).toContain('somebody else has moved it');
  });

  test('if no agent has worked', async () => {
    expect(failureOf(await rig.rollback('pre_step')).message).toContain('roll back to pre_run');
  });

  test('if the run works without git', async () => {
    await rig[Symbol.asyncDispose]();
    rig = await WorkRig.setup('as-it-is');
    expect(failureOf(await rig.rollback('pre_run'))).toMatchObject({ kind: 'refused' });
  });
});
