import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { Rig, shellStep, until } from '../rig/rig.ts';

const GATED = `[main]\n${shellStep('gate', 'meow await-approval review > said; echo $? > status')}`;

async function waiting(script = GATED): Promise<{ rig: Rig; run: ReturnType<Rig['start']> }> {
  const rig = await Rig.setup();
  rig.write('w.meow.toml', script);
  const run = rig.start('run', 'w.meow.toml', '--id', 'g');
  await rig.decided('g', 'gate-asked gate');
  return { rig, run };
}

test('an approval lets a step continue, and its notes reach the step', async () => {
  const { rig, run } = await waiting();
  await using _ = rig;
  const { stdout, code } = await rig.meow('approve', 'g', 'review', '--notes', 'looks good', '--as', 'ann');
  expect(stdout).toBe('review is approved\n');
  expect(code).toBe(0);
  expect((await run.ended).code).toBe(0);
  expect([rig.read('status'), rig.read('said')]).toEqual(['0\n', 'looks good\n']);
});

test('a rejection is exit code 1 with its reason', async () => {
  const { rig, run } = await waiting();
  await using _ = rig;
  expect((await rig.meow('reject', 'g', 'review', '--reason', 'no tests')).code).toBe(0);
  await run.ended;
  expect([rig.read('status'), rig.read('said')]).toEqual(['1\n', 'no tests\n']);
  const gates = JSON.parse((await rig.meow('status', 'g', '--json')).stdout) as { gates: { decided_by: string }[] };
  expect(gates.gates).toMatchObject([{ status: 'rejected', decided_by: userInfo().username, notes: 'no tests' }]);
});

test('a question is answered with a text', async () => {
  const { rig, run } = await waiting();
  await using _ = rig;
  expect((await rig.meow('answer', 'g', 'the blue one')).code).toBe(0);
  await run.ended;
  expect([rig.read('status'), rig.read('said')]).toEqual(['0\n', 'the blue one\n']);
});

test('without a decision in time: exit code 3', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GATED.replace('await-approval review', 'await-approval review --timeout 200ms'));
  const { stdout } = await rig.meow('run', 'w.meow.toml', '--id', 'g');
  expect(stdout).toContain('done in');
  expect(rig.read('status')).toBe('3\n');
  expect(rig.decisions('g')).toContain('gate-expired gate');
});

test('gates lists the open gates of all runs', async () => {
  const { rig, run } = await waiting();
  await using _ = rig;
  const { stdout } = await rig.meow('gates');
  expect(stdout).toMatch(/^RUN +GATE +STEP +WAITS +PROMPT\ng +review +gate +\S+\n$/);
  const open = JSON.parse((await rig.meow('gates', '--workflow', 'g', '--json')).stdout) as unknown;
  expect(open).toMatchObject([{ workflow: 'g', id: 'review', step: 'gate', status: 'open', decided_by: null }]);
  await rig.meow('approve', 'g', 'review');
  await run.ended;
  expect(JSON.parse((await rig.meow('gates', '--json')).stdout)).toEqual([]);
  expect(await rig.meow('gates')).toMatchObject({ stdout: '', stderr: 'no gate is open\n', code: 0 });
});

test('gates shows the question', async () => {
  const { rig, run } = await waiting(
    `[main]\n${shellStep('gate', "meow await-approval review --prompt 'Is the plan good?'")}`,
  );
  await using _ = rig;
  expect((await rig.meow('gates')).stdout).toMatch(/^RUN .*\ng +review +gate +\S+ +Is the plan good\?\n$/);
  const { gates } = JSON.parse((await rig.meow('status', 'g', '--json')).stdout) as { gates: unknown };
  expect(gates).toMatchObject([{ id: 'review', prompt: 'Is the plan good?' }]);
  await rig.meow('approve', 'g', 'review');
  expect((await run.ended).code).toBe(0);
});

test('a gate may be decided before it is requested, and the command says so', async () => {
  await using rig = await Rig.setup();
  const hold = 'while [ ! -e go ]; do sleep 0.02; done; meow await-approval later; echo $? > status';
  rig.write('w.meow.toml', `[main]\n${shellStep('gate', 'meow await-approval now')}${shellStep('hold', hold)}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'g');
  await rig.decided('g', 'gate-asked gate');
  const { stdout, code } = await rig.meow('reject', 'g', 'later');
  expect(code).toBe(0);
  expect(stdout).toBe('no step has asked for gate later yet: the decision is stored until one does (open now: now)\n');
  rig.write('go', '');
  await rig.meow('approve', 'g', 'now');
  await run.ended;
  expect(rig.read('status')).toBe('1\n');
});

test('the first decision is final', async () => {
  const { rig, run } = await waiting(
    `[main]\n${shellStep('gate', 'meow await-approval review; while [ ! -e go ]; do sleep 0.02; done')}`,
  );
  await using _ = rig;
  await rig.meow('approve', 'g', 'review', '--as', 'ann');
  expect(await rig.meow('approve', 'g', 'review')).toMatchObject({ code: 0 });
  const { stderr, code } = await rig.meow('reject', 'g', 'review');
  expect(stderr).toBe('meow: gate review was already approved by ann, and the first decision counts\n');
  expect(code).toBe(2);
  rig.write('go', '');
  await run.ended;
  expect(await rig.meow('approve', 'g', 'review')).toMatchObject({ code: 2 });
});

test('a decision without an engine is stored and applied at resume; there too, the first is final', async () => {
  const { rig, run } = await waiting();
  await using _ = rig;
  run.kill('SIGKILL');
  await run.ended;
  const { stdout, code } = await rig.meow('approve', 'g', 'review', '--notes', 'fine');
  expect(stdout).toBe('approved; run g has no engine, so this takes effect when you run: meow resume g\n');
  expect(code).toBe(0);
  expect((await rig.meow('approve', 'g', 'review')).code).toBe(0);
  expect((await rig.meow('reject', 'g', 'review')).code).toBe(2);
  expect((await rig.meow('resume', 'g')).code).toBe(0);
  expect([rig.read('status'), rig.read('said')]).toEqual(['0\n', 'fine\n']);
});

test('a gate that was requested before a crash is still open after it', async () => {
  const { rig, run } = await waiting();
  await using _ = rig;
  run.kill('SIGKILL');
  await run.ended;
  const again = rig.start('resume', 'g');
  await until(() => rig.exists('.meow/workflows/g/sock'), 'the socket');
  expect((await rig.meow('approve', 'g', 'review')).code).toBe(0);
  expect((await again.ended).code).toBe(0);
  expect(rig.read('status')).toBe('0\n');
});

test('await-approval returns when the run fails', async () => {
  await using rig = await Rig.setup();
  const fails = shellStep('fails', 'while [ ! -e go ]; do sleep 0.02; done; exit 1');
  rig.write('w.meow.toml', `${GATED}${fails}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'g');
  await rig.decided('g', 'gate-asked gate');
  rig.write('go', '');
  expect((await run.ended).code).toBe(1);
  expect(rig.read('status')).toBe('2\n');
  expect(await rig.meow('approve', 'g', 'review')).toMatchObject({ code: 2 });
});

test('without a name the only open gate is meant, and a misspelt name is refused', async () => {
  await using rig = await Rig.setup();
  const gates = ['review', 'deploy'].map((gate) => shellStep(gate, `meow await-approval ${gate}`)).join('');
  rig.write('one.meow.toml', `[main]\n${shellStep('a', 'meow await-approval review')}`);
  rig.write('two.meow.toml', `[main]\n${gates}`);
  const one = rig.start('run', 'one.meow.toml', '--id', 'one');
  await rig.decided('one', 'gate-asked a');
  expect(await rig.meow('approve', 'one', 'revieu')).toEqual({
    code: 2,
    stdout: '',
    stderr: 'meow: run one has no gate revieu\n  did you mean review? open now: review\n',
  });
  expect(await rig.meow('approve', 'one')).toMatchObject({ code: 0, stdout: 'review is approved\n' });
  await one.ended;
  await rig.meow('run', 'two.meow.toml', '--id', 'two', '--no-wait');
  expect((await rig.meow('reject', 'two')).stderr).toMatch(
    /run two has 2 open gates\n +say which: (?:review, deploy|deploy, review)\n/,
  );
  // One that the workflow names may be asked for later.
  expect(await rig.meow('approve', 'two', 'something-else')).toMatchObject({ code: 0 });
});
