// Accepted repositories, and the worktrees that runs get.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Repository } from '../../src/drivers/git/repository.ts';
import { GitRig, picture, problem, value } from './git-rig.ts';

describe('a repository', () => {
  test('is refused if it does not exist, is bare, or has no commit', async () => {
    await using rig = await GitRig.setup();
    const open = async (folder: string) => problem(await Repository.open(join(rig.base, folder), rig.environment));
    expect(await open('home')).toMatchObject({ kind: 'no-repository', cure: expect.stringContaining('git init') });
    rig.git('.', 'init', '--quiet', '--bare', 'bare');
    expect(await open('bare')).toMatchObject({ kind: 'bare' });
    expect(await open('user/.git')).toMatchObject({ kind: 'bare' });
    rig.git('.', 'init', '--quiet', 'empty');
    expect(await open('empty')).toMatchObject({ kind: 'no-commits', cure: expect.stringContaining('git commit') });
    expect(await open('nowhere')).toMatchObject({ kind: 'gone' });
  });

  test('needs git in a recent version', async () => {
    await using rig = await GitRig.setup();
    const bin = join(rig.base, 'bin');
    mkdirSync(bin);
    const open = async () => problem(await Repository.open(rig.user, { ...rig.environment, PATH: bin }));
    expect(await open()).toMatchObject({ kind: 'git-missing' });
    writeFileSync(join(bin, 'git'), '#!/bin/sh\necho git version 2.17.1\n');
    chmodSync(join(bin, 'git'), 0o755);
    expect(await open()).toMatchObject({ kind: 'git-too-old', message: 'git version 2.17.1 is too old' });
  });

  test.each([
    ['with HEAD detached', (rig: GitRig) => rig.git('user', 'checkout', '--quiet', '--detach')],
    [
      'that is a shallow clone',
      (rig: GitRig) => rig.git('.', 'clone', '--quiet', '--depth=1', `file://${rig.user}`, 'clone'),
    ],
    [
      'in a linked worktree',
      (rig: GitRig) => rig.git('user', 'worktree', 'add', '--quiet', '../clone', '-b', 'linked'),
    ],
    ['with a sparse checkout', (rig: GitRig) => rig.git('user', 'sparse-checkout', 'set', 'dir')],
    ['in a folder of any name', (rig: GitRig) => rig.git('.', 'clone', '--quiet', rig.user, "odd 'name\n\u00e9")],
    [
      'with a submodule',
      (rig: GitRig) => {
        rig.git('.', 'clone', '--quiet', rig.user, 'clone');
        rig.git('clone', 'submodule', '--quiet', 'add', rig.user, 'sub');
        rig.git('clone', 'commit', '--quiet', '-m', 'sub');
      },
    ],
  ])('%s works', async (_title, prepare) => {
    await using rig = await GitRig.setup();
    prepare(rig);
    const other = readdirSync(rig.base).find((name) => name === 'clone' || name.startsWith('odd'));
    const repository = await rig.open(other === undefined ? rig.user : join(rig.base, other));
    const user = rig.userPicture();
    const worktree = value(await repository.addWorktree(rig.request(repository)));
    const tree = 'trees/wf-1';
    const then = picture(join(rig.base, tree));
    const start = value(await worktree.snapshot('pre_run'));
    expect(start).toMatchObject({ head: repository.head, branch: 'meow/run-wf-1' });
    writeFileSync(join(rig.base, tree, 'dir/c.txt'), 'changed');
    writeFileSync(join(rig.base, tree, 'new'), 'new');
    rig.git(tree, 'add', '-A');
    rig.git(tree, 'commit', '--quiet', '-m', 'work');
    value(await worktree.restore(rig.restoreTo(start, 'r1')));
    expect(picture(join(rig.base, tree))).toEqual(then);
    expect(value(await worktree.status(start)).paths).toEqual([]);
    expect(rig.userPicture()).toEqual(user);
  });

  test('with SHA-256 works', async () => {
    await using rig = await GitRig.setup(['--object-format=sha256']);
    const worktree = await rig.worktree();
    const snapshot = value(await worktree.snapshot('pre_run'));
    expect(snapshot.tree).toHaveLength(64);
    writeFileSync(join(worktree.path, 'a.txt'), 'changed');
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(readFileSync(join(worktree.path, 'a.txt'), 'utf8')).toBe('a\n');
  });
});

describe('a worktree', () => {
  test('is added on its own branch, and is the same when requested again', async () => {
    await using rig = await GitRig.setup();
    const user = rig.userPicture();
    const worktree = await rig.worktree();
    expect(worktree).toMatchObject({ path: join(rig.base, 'trees/wf-1'), branch: 'meow/run-wf-1' });
    expect(readFileSync(join(worktree.path, 'a.txt'), 'utf8')).toBe('a\n');
    writeFileSync(join(worktree.path, 'a.txt'), 'work');
    rig.git('trees/wf-1', 'commit', '--quiet', '-am', 'work');
    writeFileSync(join(worktree.path, 'b.txt'), 'more work');
    // Also if the user's HEAD has moved on: the base is that of the run.
    const repository = await rig.open();
    const again = value(await repository.addWorktree({ ...rig.request(repository), base: worktree.base }));
    expect(again.path).toBe(worktree.path);
    expect(readFileSync(join(again.path, 'b.txt'), 'utf8')).toBe('more work');
    expect(rig.userPicture()).toEqual(user);
  });

  test('is refused if its branch or its path is in use, and leaves them unchanged', async () => {
    await using rig = await GitRig.setup();
    const repository = await rig.open();
    rig.git('user', 'branch', 'meow/run-wf-1');
    expect(problem(await repository.addWorktree(rig.request(repository)))).toMatchObject({ kind: 'branch-taken' });
    const request = rig.request(repository, 'wf-2');
    mkdirSync(request.path, { recursive: true });
    writeFileSync(join(request.path, 'mine'), '');
    expect(problem(await repository.addWorktree(request))).toMatchObject({ kind: 'path-taken' });
    expect(readdirSync(request.path)).toEqual(['mine']);
    expect(rig.git('user', 'branch', '--list', 'meow/run-wf-2')).toBe('');
  });

  test('belongs to one run', async () => {
    await using rig = await GitRig.setup();
    const repository = await rig.open();
    await rig.worktree('wf-1');
    const taken = { ...rig.request(repository, 'wf-2'), path: rig.request(repository, 'wf-1').path };
    expect(problem(await repository.addWorktree(taken))).toMatchObject({ kind: 'path-taken' });
    const moved = { ...rig.request(repository, 'wf-1'), path: join(rig.base, 'elsewhere') };
    expect(problem(await repository.addWorktree(moved))).toMatchObject({ kind: 'path-taken' });
  });

  test("and the run's folder are never inside each other, not even through a link", async () => {
    await using rig = await GitRig.setup();
    const repository = await rig.open();
    const request = rig.request(repository);
    symlinkSync(join(rig.base, 'trees'), join(rig.base, 'link'));
    mkdirSync(join(rig.base, 'trees'));
    for (const runFolder of [
      request.path,
      join(request.path, 'run'),
      join(rig.base, 'link'),
      join(rig.base, 'link/wf-1/x'),
    ]) {
      expect(problem(await repository.addWorktree({ ...request, runFolder }))).toMatchObject({ kind: 'nested' });
    }
  });

  test("is inside the user's tree only if git ignores it", async () => {
    await using rig = await GitRig.setup();
    const repository = await rig.open();
    const request = { ...rig.request(repository), path: join(rig.user, '.meow/trees/wf-1') };
    expect(problem(await repository.addWorktree(request))).toMatchObject({
      kind: 'not-ignored',
      cure: expect.stringContaining('".meow/"'),
    });
    rig.write('.git/info/exclude', '.meow/\n');
    const user = rig.userPicture() as { status: string };
    value(await repository.addWorktree(request));
    expect((rig.userPicture() as { status: string }).status).toBe(user.status);
  });

  test('is refused after somebody deleted it', async () => {
    await using rig = await GitRig.setup();
    const worktree = await rig.worktree();
    rig.git('trees/wf-1', 'commit', '--quiet', '--allow-empty', '-m', 'work');
    rmSync(worktree.path, { recursive: true });
    const repository = await rig.open();
    expect(problem(await repository.addWorktree(rig.request(repository)))).toMatchObject({ kind: 'gone' });
    expect(problem(await worktree.snapshot('x'))).toMatchObject({ kind: 'gone' });
  });

  test('is completed if the engine died while adding it', async () => {
    await using rig = await GitRig.setup();
    const repository = await rig.open();
    const request = rig.request(repository);
    const gitDir = join(rig.user, '.git/worktrees/wf-1');
    value(await repository.addWorktree(request));
    const whole = picture(request.path);
    const lease = join(gitDir, 'meow-lease.json');
    const broken: readonly (() => void)[] = [
      () => rmSync(lease),
      () => {
        rmSync(lease);
        rmSync(join(request.path, 'dir'), { recursive: true });
        rmSync(join(gitDir, 'index'));
        writeFileSync(join(gitDir, 'locked'), 'initializing');
      },
      () => {
        rmSync(lease);
        writeFileSync(join(gitDir, 'HEAD'), `${'0'.repeat(40)}\n`);
      },
      () => {
        rmSync(request.path, { recursive: true });
        mkdirSync(request.path);
        writeFileSync(join(request.path, '.git'), `gitdir: ${gitDir}\n`);
        rmSync(gitDir, { recursive: true });
        mkdirSync(gitDir);
        writeFileSync(join(gitDir, 'gitdir'), `${join(request.path, '.git')}\n`);
      },
      () => {
        rmSync(request.path, { recursive: true });
        rmSync(gitDir, { recursive: true });
      },
      () => {
        rmSync(request.path, { recursive: true });
        rmSync(gitDir, { recursive: true });
        rig.git('user', 'branch', '-D', '--quiet', 'meow/run-wf-1');
      },
    ];
    for (const [at, breaking] of broken.entries()) {
      breaking();
      const again = value(await repository.addWorktree(request));
      expect(picture(again.path), `case ${at}`).toEqual(whole);
      expect(value(await again.status(rig.commit('user', again.base))), `case ${at}`).toMatchObject({
        branch: 'meow/run-wf-1',
        paths: [],
      });
      expect(existsSync(join(gitDir, 'locked'))).toBe(false);
    }
  });

  test('is added for several runs in parallel', async () => {
    await using rig = await GitRig.setup();
    const repository = await rig.open();
    const requests = ['wf-1', 'wf-2', 'wf-3', 'wf-4', 'wf-5', 'wf-6'].map((run) =>
      repository.addWorktree(rig.request(repository, run)),
    );
    const trees = (await Promise.all(requests)).map((result) => value(result).path);
    expect(new Set(trees).size).toBe(6);
  });
});

describe('a run in place', () => {
  test('is refused if the tree has changes or untracked files', async () => {
    await using rig = await GitRig.setup();
    const repository = await rig.open();
    const request = { run: 'wf-1', runFolder: join(rig.base, 'runs') };
    expect(problem(await repository.inPlace(request))).toMatchObject({
      kind: 'dirty',
      message: expect.stringContaining('a.txt'),
    });
    rig.git('user', 'checkout', '--quiet', 'a.txt');
    expect(problem(await repository.inPlace(request))).toMatchObject({
      kind: 'dirty',
      message: expect.stringContaining('untracked'),
    });
  });

  test("is refused if git does not ignore the run's folder in the tree", async () => {
    await using rig = await GitRig.setup();
    rig.git('user', 'stash', '--quiet', '-u');
    const repository = await rig.open();
    const request = { run: 'wf-1', runFolder: join(rig.user, '.meow/run/wf-1') };
    expect(problem(await repository.inPlace(request))).toMatchObject({ kind: 'not-ignored' });
  });

  test('owns the tree, also after a crash, until it is released; and can be rolled back', async () => {
    await using rig = await GitRig.setup();
    rig.git('user', 'stash', '--quiet', '-u');
    rig.git('user', 'checkout', '--quiet', '-b', 'feature');
    const repository = await rig.open();
    const runFolder = join(rig.user, 'build/run');
    const worktree = value(await repository.inPlace({ run: 'wf-1', runFolder }));
    value(await worktree.snapshot('pre_run'));
    const then = picture(rig.user);
    rig.write('a.txt', 'work');
    expect(problem(await repository.inPlace({ run: 'wf-2', runFolder }))).toMatchObject({ kind: 'dirty' });
    const again = value(await repository.inPlace({ run: 'wf-1', runFolder }));
    writeFileSync(join(rig.user, '.git/index.lock'), '');
    expect(problem(await again.restore(rig.restoreTo('pre_run', 'r1')))).toMatchObject({ kind: 'locked' });
    rmSync(join(rig.user, '.git/index.lock'));
    value(await again.restore(rig.restoreTo('pre_run', 'r1')));
    expect(picture(rig.user)).toEqual(then);
    expect(problem(await repository.inPlace({ run: 'wf-2', runFolder }))).toMatchObject({
      kind: 'leased',
      message: expect.stringContaining('wf-1'),
    });
    value(await again.release());
    value(await repository.inPlace({ run: 'wf-2', runFolder }));
  });
});
