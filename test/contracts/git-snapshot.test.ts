// Snapshots, their contents and costs; patches and lists of changes.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { INDEX_ARGS, readIndexListing } from '../../src/drivers/git/listing.ts';
import { Repository } from '../../src/drivers/git/repository.ts';
import type { Worktree } from '../../src/drivers/git/worktree.ts';
import { see } from './git-play.ts';
import { GitRig, picture, problem, value } from './git-rig.ts';

const TREE = 'trees/wf-1';

async function setup(): Promise<{
  rig: GitRig;
  worktree: Worktree;
  write: (path: string, text: string | Uint8Array) => void;
}> {
  const rig = await GitRig.setup();
  const worktree = await rig.worktree();
  return { rig, worktree, write: (path, text) => writeFileSync(join(worktree.path, path), text) };
}

describe('a snapshot', () => {
  test('of a clean tree is HEAD, and costs one process', async () => {
    await using rig = await GitRig.setup();
    const log = join(rig.base, 'calls');
    const bin = join(rig.base, 'bin');
    mkdirSync(bin);
    writeFileSync(join(bin, 'git'), `#!/bin/sh\necho "$@" >> '${log}'\nPATH=\${PATH#*:} exec git "$@"\n`);
    chmodSync(join(bin, 'git'), 0o755);
    const environment = { ...rig.environment, PATH: `${bin}:${rig.environment['PATH']}` };
    const repository = value(await Repository.open(rig.user, environment));
    const worktree = value(await repository.addWorktree(rig.request(repository)));
    const calls = async (act: () => Promise<unknown>): Promise<number> => {
      writeFileSync(log, '');
      await act();
      return readFileSync(log, 'utf8').split('\n').length - 1;
    };
    const first = value(await worktree.snapshot('pre_run'));
    expect(first).toMatchObject({ head: repository.head, commit: repository.head, branch: 'meow/run-wf-1' });
    expect(rig.git('user', 'rev-parse', 'refs/meow/wf-1/pre_run').trim()).toBe(repository.head);
    expect(await calls(() => worktree.snapshot('pre_step'))).toBe(1);
    expect(await calls(() => worktree.changes(rig.snapshot('pre_run'), rig.snapshot('pre_step')))).toBe(0);

    writeFileSync(join(worktree.path, 'new'), 'new');
    expect(await calls(() => worktree.snapshot('pre_step'))).toBe(5);
    writeFileSync(join(worktree.path, 'new'), 'newer');
    expect(await calls(() => worktree.snapshot('pre_step'))).toBe(5);
  });

  test('contains all tracked and untracked files, with HEAD and the index as parents', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    write('a.txt', 'staged');
    rig.git(TREE, 'add', 'a.txt');
    write('a.txt', 'changed again');
    write('new', 'new');
    write('x.log', 'ignored');
    const before = see(rig, TREE);
    const index = readFileSync(join(rig.user, '.git/worktrees/wf-1/index'));
    const { commit, tree } = value(await worktree.snapshot('pre_run'));
    const names = rig.git('user', 'ls-tree', '-r', '--name-only', commit).trimEnd().split('\n');
    expect(names).toEqual(['.gitignore', 'a.txt', 'dir/c.txt', 'dir/sub/f', 'new', 'run.sh']);
    expect(rig.git('user', 'show', `${commit}:a.txt`)).toBe('changed again');
    expect(rig.git('user', 'show', `${commit}^2:a.txt`)).toBe('staged');
    expect(rig.git('user', 'rev-parse', `${commit}^1`).trim()).toBe(worktree.base);
    expect(rig.git('user', 'rev-parse', `${commit}^{tree}`).trim()).toBe(tree);
    expect(see(rig, TREE)).toEqual(before);
    expect(readFileSync(join(rig.user, '.git/worktrees/wf-1/index'))).toEqual(index);
  });

  test('has the same tree for the same contents, committed or not', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    write('new', 'new');
    const { tree } = value(await worktree.snapshot('one'));
    rig.git(TREE, 'add', '-A');
    rig.git(TREE, 'commit', '--quiet', '-m', 'new');
    expect(value(await worktree.snapshot('two')).tree).toBe(tree);
    write('new', 'other');
    expect(value(await worktree.snapshot('two')).tree).not.toBe(tree);
  });

  test('detects a change that keeps size and times as far as possible, and one that git was told to ignore', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    write('new', 'one');
    const one = value(await worktree.snapshot('one'));
    write('new', 'two');
    const two = value(await worktree.snapshot('two'));
    expect(two.tree).not.toBe(one.tree);
    rig.git(TREE, 'update-index', '--assume-unchanged', 'a.txt');
    rig.git(TREE, 'update-index', '--skip-worktree', 'dir/c.txt');
    write('a.txt', 'hidden');
    write('dir/c.txt', 'hidden too');
    value(await worktree.snapshot('three'));
    const changes = value(await worktree.changes(rig.snapshot('two'), rig.snapshot('three')));
    expect(changes.map(({ path }) => path)).toEqual(['a.txt', 'dir/c.txt']);
  });

  test('has the exact bytes of a file, despite line ending conversion and filters', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    rig.git('user', 'config', 'filter.lossy.clean', 'tr a-z A-Z');
    write('.gitattributes', '*.txt text eol=crlf\n*.up filter=lossy\n');
    write('mixed.txt', 'one\r\ntwo\n');
    write('x.up', 'small');
    value(await worktree.snapshot('pre_run'));
    const then = picture(worktree.path);
    for (const name of ['mixed.txt', 'x.up', '.gitattributes']) rmSync(join(worktree.path, name));
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(picture(worktree.path)).toEqual(then);
  });

  test('survives garbage collection, including content that was only staged', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    write('a.txt', 'only staged');
    rig.git(TREE, 'add', 'a.txt');
    write('a.txt', 'only here');
    value(await worktree.snapshot('pre_run'));
    const then = see(rig, TREE);
    rig.git(TREE, 'reset', '--hard', '--quiet');
    rig.git('user', 'reflog', 'expire', '--expire=now', '--all');
    rig.git('user', 'gc', '--quiet', '--prune=now');
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(see(rig, TREE)).toEqual(then);
    expect(rig.git(TREE, 'show', ':a.txt')).toBe('only staged');
  });

  test('can be taken of a growing file', async () => {
    const { rig, worktree } = await setup();
    await using _ = rig;
    const child = spawn('sh', ['-c', 'echo x > growing; echo; while :; do echo x; done >> growing'], {
      cwd: worktree.path,
    });
    try {
      await once(child.stdout, 'data');
      value(await worktree.snapshot('pre_run'));
    } finally {
      child.kill();
    }
  });

  test('is refused if a file is not readable, and names it', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    write('secret', 'x');
    chmodSync(join(worktree.path, 'secret'), 0);
    const result = await worktree.snapshot('pre_run');
    // Root can read everything.
    if (process.getuid?.() === 0) value(result);
    else expect(problem(result)).toMatchObject({ kind: 'refused', message: expect.stringContaining('secret') });
  });

  test('ignores a stale lock on its ref', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    const lock = join(rig.user, '.git/refs/meow/wf-1/pre_run.lock');
    value(await worktree.snapshot('pre_run'));
    for (const text of ['clean', 'changed']) {
      if (text === 'changed') write('a.txt', text);
      else rig.git(TREE, 'commit', '--quiet', '--allow-empty', '-m', 'moves HEAD');
      writeFileSync(lock, '');
      const { commit } = value(await worktree.snapshot('pre_run'));
      expect(rig.git('user', 'rev-parse', 'refs/meow/wf-1/pre_run').trim()).toBe(commit);
    }
  });

  test('is not affected by a replaced object', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    value(await worktree.snapshot('one'));
    write('a.txt', 'other');
    const [was, is] = ['HEAD:a.txt', rig.git(TREE, 'hash-object', '-w', 'a.txt').trim()];
    rig.git(TREE, 'replace', rig.git(TREE, 'rev-parse', was).trim(), is);
    value(await worktree.snapshot('two'));
    const changes = value(await worktree.changes(rig.snapshot('one'), rig.snapshot('two')));
    expect(changes.map(({ path }) => path)).toEqual(['a.txt']);
    value(await worktree.restore(rig.restoreTo('one', 'r1')));
    expect(readFileSync(join(worktree.path, 'a.txt'), 'utf8')).not.toBe('other');
  });

  test('contains names and links of any kind', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    for (const name of ['git~1', '"quoted"', 'two\nlines', '-w', ' ', 'back\\slash', 'é']) write(name, name);
    for (const target of ['a.txt', 'nowhere', 'two\nlines', '"'])
      symlinkSync(target, join(worktree.path, `to ${target}`));
    value(await worktree.snapshot('pre_run'));
    const then = picture(worktree.path);
    for (const name of ['git~1', '"quoted"', 'two\nlines', 'to nowhere']) rmSync(join(worktree.path, name));
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(picture(worktree.path)).toEqual(then);
    expect(readdirSync(join(rig.user, '.git/meow/wf-1')).filter((name) => name.startsWith('links'))).toEqual([]);
  });

  test('contains an index with conflicts, also one with a single stage', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    const oid = rig.git(TREE, 'rev-parse', 'HEAD:a.txt').trim();
    rig.git(TREE, 'update-index', '--force-remove', 'a.txt', 'run.sh');
    const lines = [`100644 ${oid} 1\ta.txt`, `100644 ${oid} 2\trun.sh`, `100644 ${oid} 3\trun.sh`];
    const index = { cwd: worktree.path, input: `${lines.join('\n')}\n` };
    execFileSync('git', ['update-index', '--index-info'], index);
    write('new', 'new');
    const then = see(rig, TREE);
    const { commit } = value(await worktree.snapshot('pre_run'));
    const names = rig.git('user', 'ls-tree', '-r', '--name-only', `${commit}^2`).trimEnd().split('\n');
    expect(names).toEqual(['.gitignore', 'a.txt~1', 'dir/c.txt', 'dir/sub/f', 'run.sh~2', 'run.sh~3']);
    rig.git(TREE, 'reset', '--hard', '--quiet');
    value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(see(rig, TREE)).toEqual(then);
  });

  test('can be taken after an object of the last one was garbage-collected', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    write('new', 'new');
    await sleep(2_100);
    value(await worktree.snapshot('one'));
    rig.git('user', 'update-ref', '-d', 'refs/meow/wf-1/one');
    rig.git('user', 'prune', '--expire=now');
    write('other', 'x');
    const { commit } = value(await worktree.snapshot('two'));
    expect(rig.git('user', 'show', `${commit}:new`)).toBe('new');
  });

  test('needs no space for the index of the one that it replaces', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    for (const text of ['one', 'two', 'three']) {
      write('a.txt', text);
      rig.git(TREE, 'add', 'a.txt');
      value(await worktree.snapshot('pre_step'));
    }
    expect(readdirSync(join(rig.user, '.git/meow/wf-1/indexes'))).toHaveLength(1);
  });
});

describe('the listing of an index', () => {
  test.each(['sha1', 'sha256'])('with %s has names of any kind, and submodules', async (format) => {
    await using rig = await GitRig.setup([`--object-format=${format}`]);
    for (const name of ['long/name/of/another', 'tab\tin it', 'é']) rig.write(name, name);
    rig.git('user', 'add', '-A');
    const oid = '1'.repeat(format === 'sha256' ? 64 : 40);
    rig.git('user', 'update-index', '--add', '--cacheinfo', `160000,${oid},sub`);
    const { names, entries } = readIndexListing(Buffer.from(rig.git('user', ...INDEX_ARGS), 'latin1'));
    expect([...names]).toEqual(rig.git('user', 'ls-files', '-z').split('\0').slice(0, -1));
    expect(entries.get('sub')).toEqual({ mode: '160000', oid });
  });
});

describe('submodules', () => {
  function addSubmodule(rig: GitRig): void {
    rig.git('.', 'clone', '--quiet', '--bare', rig.user, 'library');
    rig.git('user', 'stash', '--quiet', '-u');
    rig.git('user', 'submodule', '--quiet', 'add', join(rig.base, 'library'), 'sub');
    rig.git('user', 'commit', '--quiet', '-m', 'sub');
  }

  test('that the agent has initialized are moved aside, and their empty folders stay', async () => {
    await using rig = await GitRig.setup();
    addSubmodule(rig);
    const worktree = await rig.worktree();
    const { tree } = value(await worktree.snapshot('pre_run'));
    const then = see(rig, TREE);
    rig.git(TREE, 'submodule', '--quiet', 'update', '--init');
    const done = value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(done.movedAside).toEqual(['sub']);
    expect(see(rig, TREE)).toEqual(then);
    expect(readdirSync(join(worktree.path, 'sub'))).toEqual([]);
    expect(value(await worktree.snapshot('post')).tree).toBe(tree);
  });

  test('are reported as a whole; an added one is moved aside, a moved one is not rolled back', async () => {
    await using rig = await GitRig.setup();
    addSubmodule(rig);
    const worktree = await rig.worktree();
    rig.git(TREE, 'submodule', '--quiet', 'update', '--init');
    value(await worktree.snapshot('pre_run'));
    const before = picture(worktree.path);

    rig.git(TREE, 'submodule', '--quiet', 'add', join(rig.base, 'library'), 'second');
    writeFileSync(join(worktree.path, 'sub/dirty'), 'x');
    value(await worktree.snapshot('post'));
    const changes = value(await worktree.changes(rig.snapshot('pre_run'), rig.snapshot('post')));
    expect(changes.map(({ status, path }) => `${status} ${path}`)).toContain('added second');
    const done = value(await worktree.restore(rig.restoreTo('pre_run', 'r1')));
    expect(done.movedAside).toEqual(['second/.git']);
    expect(picture(worktree.path)).toEqual(new Map([...before, ['sub/dirty', expect.any(String)]]));

    rig.git(`${TREE}/sub`, 'commit', '--quiet', '--allow-empty', '-m', 'inner');
    expect(problem(await worktree.restore(rig.restoreTo('pre_run', 'r2')))).toMatchObject({ kind: 'opaque' });
  });
});

describe('changes', () => {
  test('are listed by path, committed or not', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    write('a.txt', 'changed');
    write('committed', 'c');
    rig.git(TREE, 'add', '-A');
    rig.git(TREE, 'commit', '--quiet', '-m', 'work');
    rig.git(TREE, 'mv', 'dir/c.txt', 'moved.txt');
    rmSync(join(worktree.path, 'dir'), { recursive: true });
    chmodSync(join(worktree.path, 'run.sh'), 0o644);
    rmSync(join(worktree.path, '.gitignore'));
    symlinkSync('nowhere', join(worktree.path, '.gitignore'));
    writeFileSync(Buffer.concat([Buffer.from(`${worktree.path}/`), Buffer.from([0x66, 0xff])]), '');
    rig.git(TREE, 'init', '--quiet', 'inner');
    value(await worktree.snapshot('post'));
    const changes = value(await worktree.changes(rig.commit('user', worktree.base), rig.snapshot('post')));
    const told = changes.map(({ status, path, from, isExact, modeBefore, modeAfter }) =>
      [status, from, path, isExact ? '' : 'inexact', modeBefore, modeAfter].join(' '),
    );
    expect(told.sort()).toEqual([
      'added  committed  000000 100644',
      'added  f\ufffd inexact 000000 100644',
      'added  inner  000000 160000',
      'deleted  dir/sub/f  100644 000000',
      'modified  a.txt  100644 100644',
      'modified  run.sh  100755 100644',
      'renamed dir/c.txt moved.txt  100644 100644',
      'typechange  .gitignore  100644 120000',
    ]);
  });
});

describe('a patch', () => {
  test('has commits, changes and untracked files, also binary ones, and can be applied', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    write('a.txt', 'committed\n');
    rig.git(TREE, 'commit', '--quiet', '-am', 'work');
    write('dir/c.txt', 'changed\n');
    write('binary', new Uint8Array([0, 255, 10, 0, 128]));
    symlinkSync('a.txt', join(worktree.path, 'link'));
    rmSync(join(worktree.path, 'run.sh'));
    const index = readFileSync(join(rig.user, '.git/worktrees/wf-1/index'));
    const file = join(rig.base, 'diff.patch');
    value(await worktree.diff({ against: rig.commit('user', worktree.base), to: file }));
    expect(readFileSync(file, 'latin1')).toContain('diff --git a/a.txt b/a.txt');
    expect(readFileSync(join(rig.user, '.git/worktrees/wf-1/index'))).toEqual(index);
    rig.git('.', 'clone', '--quiet', rig.user, 'copy');
    rig.git('copy', 'apply', file);
    expect(picture(join(rig.base, 'copy'))).toEqual(picture(worktree.path));
  });

  test('shows what was changed, and not what git converts', async () => {
    const { rig, worktree, write } = await setup();
    await using _ = rig;
    write('.gitattributes', '*.bat text eol=crlf\n');
    write('x.bat', 'one\r\ntwo\r\n');
    rig.git(TREE, 'add', '-A');
    rig.git(TREE, 'commit', '--quiet', '-m', 'bat');
    const then = value(await worktree.snapshot('pre_step'));
    write('x.bat', 'one\r\nTWO\r\n');
    const file = join(rig.base, 'diff.patch');
    value(await worktree.diff({ against: then, to: file }));
    const changed = readFileSync(file, 'latin1')
      .split('\n')
      .filter((line) => /^[-+][^-+]/.test(line));
    expect(changed).toEqual(['-two\r', '+TWO\r']);
  });
});
