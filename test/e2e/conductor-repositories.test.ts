// Repositories of all kinds: a run works and leaves the user's tree unchanged, or is refused with a clear message
// before anything runs.

import { cpSync, mkdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ConductorRig, rollback, userTree, validate, work } from '../fixtures/conductor/rig.ts';

const KEPT = 'kept\n';

/** An agent changes one file, creates one, and deletes one. */
async function setup(): Promise<ConductorRig> {
  const made = await ConductorRig.setup({ 'kept.txt': KEPT, 'gone.txt': 'gone\n' });
  made.agents({ work: 'echo more >> kept.txt; echo new > new.txt; rm gone.txt; echo done' });
  made.workflow({ work: work('STOP') });
  return made;
}

async function git(made: ConductorRig, script: string): Promise<void> {
  const { code, stderr } = await made.rig.shell(`export GIT_ALLOW_PROTOCOL=file; ${script}`);
  if (code !== 0) throw new Error(stderr);
}

/** Runs to the end: the work is in the worktree, and nowhere else. */
async function works(made: ConductorRig): Promise<void> {
  const { rig } = made;
  const before = userTree(rig);
  expect(await made.run()).toMatchObject({ code: 0, stderr: '' });
  expect(userTree(rig)).toEqual(before);
  expect(rig.read('.meow/worktrees/r/kept.txt')).toBe(`${KEPT}more\n`);
  expect(rig.read('.meow/worktrees/r/new.txt')).toBe('new\n');
  const patch = rig.read('.meow/run/r/diff.patch');
  for (const name of ['kept.txt', 'new.txt', 'gone.txt']) expect(patch).toContain(`diff --git a/${name} b/${name}`);
}

describe('works in', () => {
  test('a tree with the user’s own changes, which the run does not see', async () => {
    await using made = await setup();
    made.rig.write('kept.txt', 'mine\n');
    made.rig.write('mine.txt', 'mine\n');
    await git(made, 'git add kept.txt && rm gone.txt');
    await works(made);
    expect(made.rig.exists('.meow/worktrees/r/mine.txt')).toBe(false);
  });

  test('a detached HEAD', async () => {
    await using made = await setup();
    await git(made, 'git checkout --quiet --detach');
    await works(made);
  });

  test('a shallow clone', async () => {
    await using made = await setup();
    await git(
      made,
      'git commit -q --allow-empty -m second && git clone -q --depth 1 "file://$PWD" ../shallow && rm -rf .git && mv ../shallow/.git .',
    );
    await works(made);
  });

  test('a repository with a submodule', async () => {
    await using made = await setup();
    await git(
      made,
      'git init -q ../sub && git -C ../sub -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m s && git submodule --quiet add "file://$PWD/../sub" sub && git commit -qm sub',
    );
    await works(made);
  });

  test('a worktree that the user created', async () => {
    await using made = await setup();
    const { rig } = made;
    await git(made, 'git worktree add -q ../linked && cp w.yaml ../linked');
    const before = userTree(rig);
    const linked = `${rig.folder}/../linked`;
    expect(await rig.meowIn(linked, 'run', 'w.yaml', '--id', 'r')).toMatchObject({ code: 0, stderr: '' });
    expect(userTree(rig)).toEqual(before);
    expect(rig.read('../linked/.meow/worktrees/r/kept.txt')).toBe(`${KEPT}more\n`);
    expect(rig.read('../linked/kept.txt')).toBe(KEPT);
  });

  test('a folder outside any repository, for a run that changes nothing', async () => {
    await using made = await ConductorRig.setup({}, '[validators.check]\ncommand = "test -e w.yaml"\n');
    await git(made, 'rm -rf .git');
    made.workflow({ check: validate('STOP', ['check']) });
    expect(await made.run()).toMatchObject({ code: 0, stderr: '' });
  });

  test('parallel runs, each in its own worktree', async () => {
    await using made = await setup();
    const before = userTree(made.rig);
    const runs = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const ended = await Promise.all(runs.map((run) => made.rig.meow('run', 'w.yaml', '--id', run)));
    for (const run of ended) expect(run).toMatchObject({ code: 0, stderr: '' });
    for (const run of runs) expect(made.rig.read(`.meow/worktrees/${run}/kept.txt`)).toBe(`${KEPT}more\n`);
    expect(userTree(made.rig)).toEqual(before);
  });

  test('the user’s own tree with --in-place, including a rollback', async () => {
    await using made = await setup();
    await git(made, 'git checkout -q -b topic');
    expect(await made.run('--in-place')).toMatchObject({ code: 0, stderr: '' });
    expect((await made.rig.shell('git status --porcelain')).stdout).toBe(' D gone.txt\n M kept.txt\n?? new.txt\n');
    await git(made, 'git checkout -q . && rm new.txt');
    made.workflow({ work: work('undo'), undo: rollback('pre_run', 'STOP') });
    const before = userTree(made.rig);
    expect(await made.rig.meow('run', 'w.yaml', '--id', 'again', '--in-place')).toMatchObject({ code: 0 });
    expect(userTree(made.rig)).toEqual(before);
  });

  test('a protected branch, which is never rolled back', async () => {
    await using made = await setup();
    await git(made, 'git checkout -q -B main');
    made.workflow({ work: work('undo'), undo: rollback('pre_run', 'STOP') });
    const { code, stdout } = await made.run('--in-place');
    expect(code).toBe(1);
    expect(stdout).toMatch(/main.*protected/);
    expect(made.rig.read('kept.txt')).toBe(`${KEPT}more\n`);
  });
});

describe('is refused before anything runs', () => {
  test.each([
    ['no repository', 'rm -rf .git', [], /is not in a git repository\n {2}change to one, or create one/],
    ['no commit', 'rm -rf .git; git init -q', [], /has no commit yet.*\n {2}make one: git add -A && git commit/],
    ['changes, with --in-place', 'echo mine > mine.txt', ['--in-place'], /uncommitted changes \(mine\.txt\)/],
  ])('%s', async (_what, script, flags, message) => {
    await using made = await setup();
    await git(made, script);
    const before = made.rig.files();
    const { code, stdout, stderr } = await made.run(...flags);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(message);
    expect(made.rig.files(), 'no trace of a run').toEqual(before);
    expect(made.turns()).toEqual([]);
  });

  test('a bare repository', async () => {
    await using made = await setup();
    const bare = `${made.rig.folder}/../bare.git`;
    await git(made, 'git clone -q --bare . ../bare.git');
    mkdirSync(`${bare}/.meow`);
    cpSync(made.rig.path('.meow'), `${bare}/.meow`, { recursive: true });
    cpSync(made.rig.path('w.yaml'), `${bare}/w.yaml`);
    const { code, stderr } = await made.rig.meowIn(bare, 'run', 'w.yaml', '--id', 'r');
    expect(code).toBe(2);
    expect(stderr).toMatch(/bare repository.*\n {2}clone it/);
    expect(made.rig.exists('../bare.git/.meow/workflows')).toBe(false);
  });
});
