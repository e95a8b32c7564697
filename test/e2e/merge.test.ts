// `meow merge`: what an offer comes to, what it leaves alone, and what bad input gets. merge-histories.test.ts kills offers.

import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isAlive, Live, MEOW, until } from '../rig/rig.ts';
import { Offers } from './merge/offers.ts';

test('work is rebased, checked on exactly the merged tree, and merged with its key', async () => {
  await using offers = await Offers.setup();
  offers.worker('w1', { one: '1\n', 'done-w1': 'w1\n' });
  offers.worker('w2', { two: '2\n', 'done-w2': 'w2\n' });
  const base = offers.git('rev-parse', 'main');
  const tip = offers.git('rev-parse', 'w2');

  const first = await offers.offered('w1');
  expect(first).toMatchObject({ outcome: 'merged', target: 'main', base, check: null, output: '' });
  const second = await offers.offered('w2');
  expect(second).toMatchObject({ outcome: 'merged', base: first.commit });

  expect(offers.git('log', '-1', '--format=%P', 'main').split(' ')).toHaveLength(2);
  expect(offers.git('log', '-1', '--format=%an %ae', 'main^2')).toBe('Ada ada@example.org');
  expect(offers.git('log', '-1', '--format=%(trailers:key=Meow-Offer)', 'main')).toBe('Meow-Offer: w2');
  expect(offers.git('rev-parse', 'w2')).toBe(tip);
  // Checked out: it has followed.
  expect(offers.rig.read('two')).toBe('2\n');
  expect(
    await offers.problems(new Map([first, second].map(({ commit }, index) => [`w${index + 1}`, commit ?? '']))),
  ).toEqual([]);
});

test('an offer that is merged already is not merged again', async () => {
  await using offers = await Offers.setup();
  offers.worker('w1', { 'done-w1': 'w1\n' });
  const first = await offers.offered('w1');
  offers.work('w1', { more: 'm\n' });
  expect(await offers.offered('w1')).toEqual(first);
  expect(offers.history()).toHaveLength(1);
});

test('conflicts name their files, failing checks their output, and nothing is merged', async () => {
  await using offers = await Offers.setup();
  offers.worker('w1', { a: 'one\n', 'done-w1': 'w1\n' });
  offers.worker('w2', { a: 'two\n', b: 'two\n' });
  const { commit } = await offers.offered('w1');

  expect(await offers.offered('w2')).toEqual({
    outcome: 'conflict',
    target: 'main',
    base: commit,
    commit: null,
    check: null,
    output: 'a',
  });
  const failing = await offers.offered(
    'w1',
    '--id',
    'again',
    '--check',
    'true',
    '--check',
    'echo out; echo err >&2; exit 3',
  );
  expect(failing).toMatchObject({ outcome: 'withdrawn', output: expect.stringContaining('nothing to merge') });
  offers.work('w1', { more: 'm\n' });
  const failed = await offers.offered(
    'w1',
    '--id',
    'again',
    '--check',
    'true',
    '--check',
    'echo out; echo err >&2; exit 3',
  );
  expect(failed).toMatchObject({ outcome: 'check_failed', commit: null, check: 'echo out; echo err >&2; exit 3' });
  expect(failed.output.split('\n').toSorted()).toEqual(['', 'err', 'out']);
  expect(await offers.problems(new Map([['w1', commit ?? '']]))).toEqual([]);
});

test('a check gets the tree of the merge, whatever the check before it has changed', async () => {
  await using offers = await Offers.setup();
  offers.worker('w1', { a: 'new\n' });
  const checks = [
    '--check',
    'echo fixed >a; rm b; echo built >out',
    '--check',
    'test "$(cat a b out)" = "new\nb\nbuilt"',
  ];
  expect((await offers.offered('w1', ...checks)).outcome).toBe('merged');
  expect(offers.git('show', 'main:a')).toBe('new');
});

test('work after a merge of the target into the branch is merged as it is', async () => {
  await using offers = await Offers.setup();
  offers.worker('w1', { a: 'one\n' });
  offers.worker('w2', { a: 'two\n' });
  offers.worker('w3', { c: 'three\n' });
  await offers.offered('w1');
  expect((await offers.offered('w2')).outcome).toBe('conflict');
  offers.resolve('w2');
  // The target moves once more, so w2 has to be combined with it.
  await offers.offered('w3');
  expect((await offers.offered('w2')).outcome).toBe('merged');
  expect(offers.git('show', 'main:a')).toBe('two');
  expect(offers.git('show', 'main:c')).toBe('three');
});

test('a target that others keep moving makes an offer stale', async () => {
  await using offers = await Offers.setup();
  offers.git('switch', '--quiet', '--detach');
  offers.worker('w1', { a: 'one\n' });
  const move =
    'git update-ref refs/heads/main $(git -c user.name=o -c user.email=o@o commit-tree -p main -m theirs main^{tree})';
  const stale = await offers.offered('w1', '--check', move);
  expect(stale).toMatchObject({ outcome: 'stale', commit: null });
  expect(offers.git('rev-list', '--count', 'main')).toBe('4');
  // Moved once, it is merged after the work of the others.
  const once = `[ -e ${offers.rig.path('../moved')} ] || { touch ${offers.rig.path('../moved')}; ${move}; }`;
  expect((await offers.offered('w1', '--check', once)).outcome).toBe('merged');
});

test('a target that is checked out with changes is refused, and follows if it is clean', async () => {
  await using offers = await Offers.setup();
  offers.worker('w1', { a: 'one\n', new: 'n\n' });
  offers.rig.write('b', 'mine\n');
  const dirty = await offers.offer('w1');
  expect(dirty).toMatchObject({ code: 2, stdout: '' });
  expect(dirty.stderr).toContain(`main is checked out in ${offers.rig.folder}, where b has uncommitted changes`);
  offers.git('checkout', '--quiet', 'b');
  offers.rig.write('new', 'in the way\n');
  expect(await offers.offer('w1')).toMatchObject({ code: 2, stdout: '' });
  expect(offers.rig.read('new')).toBe('in the way\n');
  expect(offers.history()).toEqual([]);
  offers.git('clean', '-fdq');
  offers.rig.write('untracked', 'mine\n');
  expect((await offers.offered('w1')).outcome).toBe('merged');
  expect(offers.git('status', '--porcelain')).toBe('?? untracked');
});

test('work that is not committed is named, and is not part of the offer', async () => {
  await using offers = await Offers.setup();
  offers.worker('w1', { a: 'one\n' });
  writeFileSync(offers.rig.path('../w1/late'), 'l\n');
  const { stderr, code } = await offers.offer('w1');
  expect({ stderr, code }).toMatchObject({ code: 0, stderr: expect.stringContaining('not part of the offer') });
  expect(stderr).toContain('late');
  expect(offers.git('ls-tree', '--name-only', 'main')).not.toContain('late');
});

test('no filter, hook or merge driver of the repository runs (merge/1)', async () => {
  await using offers = await Offers.setup();
  offers.rig.write('.gitattributes', '* filter=lie merge=lie\n');
  offers.commit('.', 'attributes');
  offers.worker('w1', { a: 'one\n', b: 'one\n' });
  offers.worker('w2', { a: 'one\ntwo\n' });
  offers.git('switch', '--quiet', '--detach');
  const ran = offers.rig.path('../ran');
  for (const name of ['clean', 'smudge']) offers.git('config', `filter.lie.${name}`, `echo ${name} >>${ran}; cat`);
  offers.git('config', 'merge.lie.driver', `echo merge >>${ran}`);
  for (const hook of ['post-checkout', 'pre-rebase', 'reference-transaction', 'pre-merge-commit', 'post-rewrite']) {
    offers.rig.write(`.git/hooks/${hook}`, `#!/bin/sh\necho ${hook} >>${ran}\n`);
    chmodSync(offers.rig.path(`.git/hooks/${hook}`), 0o755);
  }
  expect((await offers.offered('w1', '--check', 'true')).outcome).toBe('merged');
  expect((await offers.offered('w2', '--check', 'true')).outcome).toBe('conflict');
  expect(offers.rig.exists('../ran')).toBe(false);
});

test('an offer that waits or is being checked can be withdrawn, and then stays withdrawn (queue/4)', async () => {
  await using offers = await Offers.setup();
  const { rig } = offers;
  offers.worker('w1', { a: 'one\n' });
  offers.worker('w2', { b: 'two\n' });
  const began = rig.path('../began');
  const hang = ['--json', '--check', `echo $$ >${began}; sleep 100`];
  const offer = (name: string): Live =>
    new Live(MEOW, ['merge', 'offer', '--id', name, ...hang], rig.path(join('..', name)), rig.environment);
  const checked = offer('w1');
  await until(() => rig.exists('../began') && rig.read('../began').endsWith('\n'), 'the check to begin');
  const waiting = offer('w2');
  await waiting.line(/another offer for main is being checked/);
  for (const name of ['w1', 'w2']) {
    const answer = await rig.meow('merge', 'withdraw', name, '--json');
    expect(answer).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(answer.stdout)).toMatchObject({ outcome: 'withdrawn', target: 'main' });
  }
  for (const { ended } of [checked, waiting])
    expect(JSON.parse((await ended).stdout)).toMatchObject({ outcome: 'withdrawn', commit: null });
  await until(() => !isAlive(Number(rig.read('../began'))), 'the check to end');
  expect((await offers.offered('w1')).outcome).toBe('withdrawn');
  expect((await offers.offered('w1', '--id', 'w1-again')).outcome).toBe('merged');
  expect(await rig.meow('merge', 'withdraw', 'w1-again')).toMatchObject({ code: 1 });
});

test('a check that is left by a killed offer is ended by the next one (queue/3)', async () => {
  await using offers = await Offers.setup();
  const { rig } = offers;
  offers.worker('w1', { a: 'one\n' });
  const began = rig.path('../began');
  const args = ['merge', 'offer', '--check', `sleep 1000 & echo $! >${began}; wait`];
  const killed = new Live(MEOW, args, rig.path('../w1'), rig.environment);
  await until(() => rig.exists('../began') && rig.read('../began').endsWith('\n'), 'the check to begin');
  killed.kill('SIGKILL');
  await killed.ended.catch(() => null);
  const pid = Number(rig.read('../began'));
  expect(isAlive(pid)).toBe(true);
  expect((await offers.offered('w1')).outcome).toBe('merged');
  expect(isAlive(pid)).toBe(false);
  expect(await offers.left()).toEqual([]);
});

test('an interrupted offer leaves nothing', async () => {
  await using offers = await Offers.setup();
  const { rig } = offers;
  offers.worker('w1', { a: 'one\n' });
  const args = ['merge', 'offer', '--check', `touch ${rig.path('../began')}; sleep 1000`];
  const offer = new Live(MEOW, args, rig.path('../w1'), rig.environment);
  await rig.appears('../began');
  offer.kill('SIGTERM');
  expect((await offer.ended).code).toBe(143);
  expect(await offers.left()).toEqual([]);
  expect(offers.history()).toEqual([]);
});

test('what an offer cannot be made of is refused', async () => {
  await using offers = await Offers.setup();
  const { rig } = offers;
  offers.worker('w1', { a: 'one\n' });
  const refused = async (expected: string, ...args: readonly string[]): Promise<void> => {
    const { code, stderr, stdout } = await rig.meow('merge', ...args);
    expect({ code, stdout, stderr }).toMatchObject({ code: 2, stdout: '' });
    expect(stderr).toContain(expected);
  };
  await refused('meow merge cannot "ofer"', 'ofer');
  await refused('needs a check', 'offer');
  await refused('--check needs a command', 'offer', '--check', ' ');
  await refused('takes no argument: w1', 'offer', 'w1', '--check', 'true');
  await refused('there is no branch mian', 'offer', '--check', 'true', '--target', 'mian');
  await refused('cannot be the key of an offer', 'offer', '--check', 'true', '--id', 'two\nlines');
  await refused('is not in a git repository', 'offer', '--check', 'true', '--worktree', rig.home);
  await refused('there is no offer "w9"', 'withdraw', 'w9');
  await refused('needs the key of an offer', 'withdraw');
  await refused('does not take --target', 'withdraw', 'w9', '--target', 'main');
  offers.git('switch', '--quiet', '--orphan', 'other');
  offers.commit('.', 'unrelated');
  await refused('has no history in common with main', 'offer', '--check', 'true');
});
