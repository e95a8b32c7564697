// What a restore refuses and keeps, and that it can be interrupted anywhere.

import childProcess, { spawnSync } from 'node:child_process';
import fs, { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { present } from '../../src/base/errors.ts';
import { isProtected } from '../../src/drivers/git/restore.ts';
import type { Worktree } from '../../src/drivers/git/worktree.ts';
import { IS_WHOLE } from '../rig/sample.ts';
import { expected, see } from './git-play.ts';
import { GitRig, picture, problem, value } from './git-rig.ts';

const TREE = 'trees/wf-1';

function write(rig: GitRig, path: string, text: string): void {
  writeFileSync(join(rig.base, TREE, path), text);
}

async function setup(): Promise<{ rig: GitRig; worktree: Worktree }> {
  const rig = await GitRig.setup();
  return { rig, worktree: await rig.worktree() };
}

describe('a restore', () => {
  test('undoes changes and keeps them: in a commit, or aside if no commit can hold them', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    write(rig, 'x.log', 'old');
    value(await worktree.snapshot('pre_run'));
    const then = see(rig, TREE);
    write(rig, 'a.txt', 'changed');
    write(rig, 'new.txt', 'new');
    write(rig, 'x.log', 'grown');
    write(rig, 'y.log', 'new log');
    rig.git(TREE, 'init', '--quiet', 'inner');
    write(rig, 'inner/file', 'deep');
    rig.git(TREE, 'commit', '--quiet', '-am', 'by the agent');
    const commit = rig.git(TREE, 'rev-parse', 'HEAD').trim();
    const before = see(rig, TREE);

    const done = value(await worktree.restore(rig.restoreTo('pre_run', 'r1', { lastCommit: commit })));
    expect(see(rig, TREE)).toMatchObject({ files: expected(then, before), git: then.git });
    expect(readFileSync(join(rig.base, TREE, 'x.log'), 'utf8')).toBe('grown');

    expect(done.undone).toEqual(['undone-1']);
    expect(done.movedAside).toEqual(['y.log', 'inner/.git']);
    const [kept = ''] = done.keptIn;
    expect(readFileSync(join(kept, 'y.log'), 'utf8')).toBe('new log');
    const ref = worktree.refOf('undone-1');
    expect(rig.git('user', 'show', `${ref}:inner/file`)).toBe('deep');
    expect(rig.git('user', 'show', `${ref}:new.txt`)).toBe('new');
    expect(rig.git('user', 'rev-parse', `${ref}^1`).trim()).toBe(commit);
    expect(readFileSync(join(rig.base, 'before.patch'), 'utf8')).toContain('+changed');
    expect(readFileSync(join(rig.base, 'after.patch'), 'utf8')).toBe('');
  });

  test('can itself be undone', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    value(await worktree.snapshot('pre_run'));
    write(rig, 'a.txt', 'changed');
    rig.git(TREE, 'add', 'a.txt');
    write(rig, 'a.txt', 'changed again');
    const work = see(rig, TREE);
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    value(await worktree.restore(rig.restoreTo('undone-1', 'r2')));
    expect(see(rig, TREE)).toEqual(work);
  });

  test('repeats its result if it is repeated, and restores what was changed since', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    value(await worktree.snapshot('pre_run'));
    write(rig, 'a.txt', 'changed');
    const first = value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(value(await worktree.restore(rig.restoreTo('pre_run', 'r1')))).toEqual(first);
    write(rig, 'a.txt', 'changed by something that was not stopped');
    const { undone } = value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(undone).toEqual(['undone-1', 'undone-2']);
    expect(readFileSync(join(rig.base, TREE, 'a.txt'), 'utf8')).toBe('a\n');
  });

  test('ends a merge in progress, and restores a merge that was in progress at the snapshot', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    write(rig, 'a.txt', 'ours');
    rig.git(TREE, 'commit', '--quiet', '-am', 'ours');
    rig.git(TREE, 'checkout', '--quiet', '-b', 'side', 'HEAD~1');
    write(rig, 'a.txt', 'theirs');
    rig.git(TREE, 'commit', '--quiet', '-am', 'theirs');
    rig.git(TREE, 'checkout', '--quiet', 'meow/run-wf-1');
    value(await worktree.snapshot('pre_run'));
    const calm = see(rig, TREE);
    rig.try(TREE, 'merge', 'side');
    value(await worktree.snapshot('pre_step'));
    const merging = see(rig, TREE);
    expect(merging.git.operations).toBe('MERGE_HEAD');
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(see(rig, TREE)).toEqual(calm);
    value(await worktree.restore(rig.restoreTo('pre_step', 'r2')));
    expect(see(rig, TREE)).toEqual(merging);
  });

  test('does not write through a link that points outside the tree', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    value(await worktree.snapshot('pre_run'));
    const then = see(rig, TREE);
    const outside = join(rig.base, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'c.txt'), 'not yours');
    rmSync(join(rig.base, TREE, 'dir'), { recursive: true });
    symlinkSync(outside, join(rig.base, TREE, 'dir'));
    write(rig, '.gitignore', 'dir\n');
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(see(rig, TREE)).toEqual(then);
    expect(picture(outside)).toEqual(new Map([['c.txt', expect.any(String)]]));
    expect(readFileSync(join(outside, 'c.txt'), 'utf8')).toBe('not yours');
  });

  test('keeps files that are in its way, including their contents', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    value(await worktree.snapshot('pre_run'));
    const then = see(rig, TREE);
    rmSync(join(rig.base, TREE, 'a.txt'));
    rig.git(TREE, 'init', '--quiet', 'a.txt/inner');
    write(rig, 'a.txt/x.log', 'log');
    // Git does not report such a file, nor a folder that contains nothing else.
    expect(spawnSync('mkfifo', [join(rig.base, TREE, 'a.txt/pipe')]).status).toBe(0);
    const { keptIn } = value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(see(rig, TREE)).toEqual(then);
    const kept = keptIn.flatMap((folder) => [...fs.readdirSync(folder, { recursive: true })]);
    expect(kept).toEqual(expect.arrayContaining(['a.txt/x.log', 'a.txt/inner/.git', 'a.txt/pipe']));
  });

  test('leaves a repository and a pipe that existed, though the agent made git ignore their folders, or stop ignoring them', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    for (const folder of ['inner', 'build/inner']) rig.git(TREE, 'init', '--quiet', folder);
    for (const folder of ['inner', 'build']) {
      expect(spawnSync('mkfifo', [join(rig.base, TREE, folder, 'pipe')]).status).toBe(0);
    }
    write(rig, 'inner/file', 'then');
    write(rig, 'build/inner/file', 'then');
    value(await worktree.snapshot('pre_run'));
    write(rig, '.gitignore', 'inner\n');
    write(rig, 'inner/file', 'now');
    write(rig, 'inner/new', 'now');
    write(rig, 'build/inner/file', 'now');
    const { movedAside } = value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(movedAside.toSorted()).toEqual(['inner/file', 'inner/new']);
    const inTree = (path: string): string => join(rig.base, TREE, path);
    expect(readFileSync(inTree('inner/file'), 'utf8')).toBe('then');
    expect(readFileSync(inTree('build/inner/file'), 'utf8')).toBe('now');
    const rest = ['inner/.git/HEAD', 'inner/pipe', 'build/inner/.git/HEAD', 'build/pipe'];
    expect(rest.filter((path) => !existsSync(inTree(path)))).toEqual([]);
  });

  test('keeps commits on the branch that HEAD was switched away from', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    value(await worktree.snapshot('pre_run'));
    write(rig, 'a.txt', 'committed');
    rig.git(TREE, 'commit', '--quiet', '-am', 'on the branch');
    const commit = rig.git(TREE, 'rev-parse', 'HEAD').trim();
    rig.git(TREE, 'checkout', '--quiet', '-b', 'elsewhere', 'HEAD~1');
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(rig.git('user', 'log', '--format=%H', worktree.refOf('undone-1'))).toContain(commit);
    expect(rig.git(TREE, 'symbolic-ref', 'HEAD').trim()).toBe('refs/heads/meow/run-wf-1');
  });

  test('does not need the shared part of a split index, if git has deleted it', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    rig.git(TREE, 'update-index', '--split-index');
    write(rig, 'a.txt', 'staged');
    rig.git(TREE, 'add', 'a.txt');
    value(await worktree.snapshot('pre_run'));
    const then = see(rig, TREE);
    rig.git(TREE, 'update-index', '--no-split-index');
    rig.git(TREE, 'reset', '--hard', '--quiet');
    const gitDir = rig.git(TREE, 'rev-parse', '--absolute-git-dir').trim();
    for (const name of fs.readdirSync(gitDir)) if (name.startsWith('sharedindex.')) rmSync(join(gitDir, name));
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(see(rig, TREE)).toEqual(then);
  });
});

const NONE = { name: 'none', commit: '', tree: '', head: null, branch: null };

describe('a restore is refused, and changes nothing,', () => {
  async function refusedAfter(act: (rig: GitRig) => void, more: Parameters<GitRig['restoreTo']>[2] = {}) {
    const { rig, worktree } = await setup();
    await using _ = rig;
    rig.git(TREE, 'init', '--quiet', 'inner');
    write(rig, 'inner/file', '1');
    rig.git(`${TREE}/inner`, 'add', '-A');
    rig.git(`${TREE}/inner`, 'commit', '--quiet', '-m', 'inner');
    value(await worktree.snapshot('pre_run'));
    write(rig, 'a.txt', 'changed');
    act(rig);
    const before = see(rig, TREE);
    const refused = problem(await worktree.restore(rig.restoreTo('pre_run', 'r1', more)));
    expect(see(rig, TREE)).toEqual(before);
    return refused;
  }

  test('if HEAD is on a protected branch', async () => {
    const refused = await refusedAfter((rig) => rig.git(TREE, 'checkout', '--quiet', '-b', 'release/1'));
    expect(refused).toMatchObject({ kind: 'protected', message: expect.stringContaining('release/1') });
  });

  test('if somebody moved the branch from elsewhere', async () => {
    const refused = await refusedAfter((rig) => {
      rig.git('user', 'stash', '--quiet');
      rig.git('user', 'commit', '--quiet', '--allow-empty', '-m', 'other');
      rig.git('user', 'update-ref', 'refs/heads/meow/run-wf-1', 'HEAD');
    });
    expect(refused.kind).toBe('moved');
  });

  test('if somebody committed in the tree since the run last inspected it', async () => {
    let last = '';
    const { rig, worktree } = await setup();
    await using _ = rig;
    last = value(await worktree.snapshot('pre_run')).head ?? '';
    rig.git(TREE, 'commit', '--quiet', '--allow-empty', '-m', 'by a person');
    const refused = problem(await worktree.restore(rig.restoreTo('pre_run', 'r1', { lastCommit: 'f'.repeat(40) })));
    expect(refused).toMatchObject({ kind: 'moved', message: expect.stringContaining('somebody else') });
    expect(last).not.toBe(rig.git(TREE, 'rev-parse', 'HEAD').trim());
  });

  test('if another tree uses the branch', async () => {
    const refused = await refusedAfter((rig) => {
      rig.git(TREE, 'checkout', '--quiet', '--detach');
      rig.git('user', 'worktree', 'add', '--quiet', join(rig.base, 'other'), 'meow/run-wf-1');
    });
    expect(refused).toMatchObject({ kind: 'moved', message: expect.stringContaining('another working tree') });
  });

  test('if a nested repository is gone, or at another commit', async () => {
    const gone = await refusedAfter((rig) => rmSync(join(rig.base, TREE, 'inner'), { recursive: true }));
    expect(gone).toMatchObject({ kind: 'opaque', message: expect.stringContaining('is gone') });
    const moved = await refusedAfter((rig) =>
      rig.git(`${TREE}/inner`, 'commit', '--quiet', '--allow-empty', '-m', 'more'),
    );
    expect(moved).toMatchObject({ kind: 'opaque', cure: expect.stringContaining('checkout') });
  });

  test('if the snapshot does not exist', async () => {
    expect(await refusedAfter(() => undefined, { to: { ...NONE, tree: '1'.repeat(40) } })).toMatchObject({
      kind: 'no-snapshot',
    });
  });
});

test('patterns of protected branches', () => {
  const patterns = ['main', 'release/*', 'v+'];
  expect(['main', 'release/1', 'release/1/2', 'v+'].every((name) => isProtected(name, patterns))).toBe(true);
  expect(['mainly', 'not/main', 'release', 'vv'].some((name) => isProtected(name, patterns))).toBe(false);
});

describe('a restore that is killed', () => {
  test('at any moment can be repeated, and loses nothing', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    write(rig, 'x.log', 'old');
    write(rig, 'untracked', 'u');
    value(await worktree.snapshot('pre_run'));
    const then = see(rig, TREE);
    const work = (round: number): void => {
      write(rig, 'a.txt', `changed ${round}`);
      rig.git(TREE, 'add', 'a.txt');
      rig.git(TREE, 'commit', '--quiet', '-m', `round ${round}`);
      rmSync(join(rig.base, TREE, 'dir'), { recursive: true });
      write(rig, 'dir', 'a file');
      write(rig, 'untracked', `precious ${round}`);
      write(rig, 'y.log', `log ${round}`);
      rig.git(TREE, 'checkout', '--quiet', '-b', `side-${round}`);
    };

    let isOver = false;
    for (let round = 0; !isOver; round += 1) {
      work(round);
      const id = `r${round}`;
      isOver = !(await killedAt(1 + round * STRIDE, () => worktree.restore(rig.restoreTo('pre_run', id))));
      // After a restart of the engine.
      const again = await rig.worktree();
      const done = value(await again.restore(rig.restoreTo('pre_run', id)));
      const after = see(rig, TREE);
      expect(after.files, `killed at ${1 + round * STRIDE}`).toEqual(then.files);
      expect(after.git).toEqual(then.git);
      const [undone = ''] = done.undone;
      expect(rig.git('user', 'show', `${worktree.refOf(undone)}:untracked`)).toBe(`precious ${round}`);
      expect(readFileSync(join(rig.base, 'before.patch'), 'latin1')).toContain(`precious ${round}`);
      expect(done.keptIn.some((folder) => existsSync(join(folder, 'y.log')))).toBe(true);
      if (isOver) expect(round * STRIDE).toBeGreaterThan(40);
    }
  });
});

/** Tests every STRIDE-th operation: each takes a whole restore, and one more. */
const STRIDE = IS_WHOLE ? 4 : 16;

class Killed extends Error {}

/** Stops before the Nth operation on files or processes. False if there are fewer. */
async function killedAt(act: number, run: () => Promise<unknown>): Promise<boolean> {
  let left = act;
  const count = (): void => {
    left -= 1;
    if (left <= 0) throw new Killed();
  };
  const undo: (() => void)[] = [];
  const watch = (target: object, names: readonly string[]): void => {
    const functions = target as Record<string, (...args: unknown[]) => unknown>;
    for (const name of names) {
      const original = present(functions[name], name);
      functions[name] = (...args: unknown[]) => {
        count();
        return original(...args);
      };
      undo.push(() => {
        functions[name] = original;
      });
    }
  };
  const acts = ['rename', 'rm', 'unlink', 'rmdir', 'mkdir', 'symlink', 'open', 'writeFile', 'copyFile', 'cp', 'utimes'];
  watch(fs.promises, acts);
  watch(fs, ['writeFileSync', 'renameSync', 'mkdirSync']);
  watch(childProcess, ['spawn']);
  syncBuiltinESMExports();
  try {
    await run();
    return false;
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
    return true;
  } finally {
    for (const restore of undo) restore();
    syncBuiltinESMExports();
  }
}
