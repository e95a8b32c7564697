// Remains of runs are found, and removed only if nothing is lost.

import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { findRemains, findRuns, type GcQuestion, type KnownRun, removeRemains } from '../../src/drivers/git/gc.ts';
import { GitRig, value } from './git-rig.ts';

const ENDED: GcQuestion = { standing: () => 'ended', isForced: () => false };
const FORCED: GcQuestion = { ...ENDED, isForced: () => true };

/** What the journal of a run in a worktree says. */
function known(rig: GitRig, run = 'wf-1', more: Partial<KnownRun> = {}): KnownRun {
  const path = join(rig.base, 'trees', run);
  const base = rig.git('user', 'rev-parse', 'main').trim();
  const journal = { branch: `meow/run-${run}`, base, pointer: null, start: null, excludes: null };
  return { run, kind: 'worktree', path, ...journal, ...more };
}

describe('the remains of a run', () => {
  test('are found and removed completely, and a repetition does no harm', async () => {
    await using rig = await GitRig.setup();
    const worktree = await rig.worktree();
    const other = await rig.worktree('wf-2');
    value(await worktree.snapshot('pre_run'));
    value(await other.snapshot('pre_run'));
    writeFileSync(join(worktree.path, 'new'), 'work');
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    writeFileSync(join(worktree.path, 'x.log'), 'ignored');
    const repository = await rig.open();
    const user = rig.userPicture();
    const remains = value(await findRemains(repository, known(rig)));
    expect(remains).toEqual({
      run: 'wf-1',
      worktree: { path: worktree.path, isRegistered: true, isLocked: false, changed: [] },
      branch: 'meow/run-wf-1',
      ownCommits: 0,
      refs: ['refs/meow/wf-1/now', 'refs/meow/wf-1/pre_run', 'refs/meow/wf-1/undone-1'],
    });
    expect(value(await removeRemains(repository, known(rig), ENDED))).toMatchObject({ isRemoved: true });
    expect(existsSync(worktree.path)).toBe(false);
    expect(existsSync(join(rig.user, '.git/meow/wf-1'))).toBe(false);
    expect(
      rig
        .git('user', 'for-each-ref', '--format=%(refname)')
        .split('\n')
        .filter((ref) => ref.includes('wf-1')),
    ).toEqual([]);
    expect(value(await removeRemains(repository, known(rig), ENDED))).toMatchObject({ isRemoved: true });
    expect(value(await findRuns(repository))).toEqual(['wf-2']);
    expect(existsSync(join(other.path, 'a.txt'))).toBe(true);
    expect(rig.userPicture()).toEqual(user);
  });

  test.each([
    ['with changes', (rig: GitRig) => writeFileSync(join(rig.base, 'trees/wf-1/new'), ''), 'uncommitted changes: new'],
    [
      'with commits of its own',
      (rig: GitRig) => rig.git('trees/wf-1', 'commit', '--quiet', '--allow-empty', '-m', 'work'),
      '1 commit that no other',
    ],
    [
      'with commits that only its HEAD has',
      (rig: GitRig) => {
        rig.git('trees/wf-1', 'checkout', '--quiet', '--detach');
        rig.git('trees/wf-1', 'commit', '--quiet', '--allow-empty', '-m', 'work');
      },
      '1 commit that no other',
    ],
  ])('%s are kept, unless forced', async (_title, work, reason) => {
    await using rig = await GitRig.setup();
    const worktree = await rig.worktree();
    work(rig);
    const repository = await rig.open();
    const kept = value(await removeRemains(repository, known(rig), ENDED));
    expect(kept).toMatchObject({ isRemoved: false, reasons: [expect.stringContaining(reason)] });
    expect(existsSync(worktree.path)).toBe(true);
    expect(value(await removeRemains(repository, known(rig), FORCED))).toMatchObject({ isRemoved: true });
    expect(existsSync(worktree.path)).toBe(false);
  });

  test('are removed once the commits are on another branch, or the worktree was deleted by hand', async () => {
    await using rig = await GitRig.setup();
    const worktree = await rig.worktree();
    rig.git('trees/wf-1', 'commit', '--quiet', '--allow-empty', '-m', 'work');
    rig.git('user', 'branch', 'merged', 'meow/run-wf-1');
    rmSync(worktree.path, { recursive: true });
    const repository = await rig.open();
    expect(value(await removeRemains(repository, known(rig), ENDED))).toMatchObject({ isRemoved: true, reasons: [] });
    expect(value(await findRuns(repository))).toEqual([]);
  });

  test('in place are its lease and its refs; the tree stays', async () => {
    await using rig = await GitRig.setup();
    rig.git('user', 'stash', '--quiet', '-u');
    const repository = await rig.open();
    const request = { run: 'wf-1', runFolder: join(rig.base, 'runs') };
    value(await value(await repository.inPlace(request)).snapshot('pre_run'));
    expect(value(await removeRemains(repository, known(rig, 'wf-1', { kind: 'in-place' }), ENDED))).toMatchObject({
      isRemoved: true,
    });
    expect(existsSync(join(rig.user, 'a.txt'))).toBe(true);
    value(await repository.inPlace({ ...request, run: 'wf-2' }));
  });
});
