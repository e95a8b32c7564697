// Names of commands and flags, colours, and exit codes that hold for all commands.

import { expect, test } from 'vitest';
import { Rig, shellStep, until, waitingStep } from '../rig/rig.ts';

const GOOD = `[main]\n${shellStep('a', 'true')}`;

test('meow version prints the version', async () => {
  await using rig = await Rig.setup();
  const printed = await rig.meow('version');
  expect(printed).toMatchObject({ code: 0, stderr: '' });
  expect(printed.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(await rig.meow('--version')).toEqual(printed);
  expect((await rig.meow('version', '--help')).stdout).toMatch(/^Usage: meow version/);
});

test('meow ls is meow list, also for help and for hints', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GOOD);
  await rig.meow('run', 'w.meow.toml', '--id', 'r');
  expect((await rig.meow('ls', '--json')).stdout).toBe((await rig.meow('list', '--json')).stdout);
  expect((await rig.meow('help', 'ls')).stdout).toBe((await rig.meow('help', 'list')).stdout);
  expect((await rig.meow('ls', '--statsu', 'done')).stderr).toContain('did you mean --status? its flags: meow help ls');
});

test('run -d is run --detach', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  expect(await rig.meow('run', '-d', 'w.meow.toml', '--id', 'r')).toEqual({ stdout: 'r\n', stderr: '', code: 0 });
  await rig.appears('hold.began');
  rig.write('hold.go', '');
  await rig.decided('r', 'run-ended');
});

test('gates and agents take a run by --run, and by the older --workflow', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('gate', 'meow await-approval review')}`);
  for (const id of ['one', 'two']) await rig.meow('run', 'w.meow.toml', '--id', id, '--no-wait');
  const open = JSON.parse((await rig.meow('gates', '--run', 'one', '--json')).stdout) as unknown;
  expect(open).toMatchObject([{ workflow: 'one', id: 'review' }]);
  expect(JSON.parse((await rig.meow('gates', '--workflow', 'one', '--json')).stdout)).toEqual(open);
  for (const flag of ['--run', '--workflow']) {
    expect(await rig.meow('agents', flag, 'one')).toMatchObject({ stderr: 'the run has no agents\n', code: 0 });
  }
  expect(await rig.meow('gates', '--run', 'one', '--workflow', 'two')).toMatchObject({ code: 2 });
});

test('FORCE_COLOR colours output that is not a terminal, and wins over NO_COLOR', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GOOD);
  const green = '\u001B[32m';
  expect((await rig.meowWith({ FORCE_COLOR: '1' }, 'run', 'w.meow.toml', '--id', 'r')).stdout).toContain(green);
  for (const [environment, coloured] of [
    [{}, false],
    [{ FORCE_COLOR: '1' }, true],
    [{ FORCE_COLOR: '1', NO_COLOR: '1' }, true],
    [{ FORCE_COLOR: '0' }, false],
    [{ FORCE_COLOR: '' }, false],
  ] as const) {
    const { stdout } = await rig.meowWith(environment, 'status', 'r');
    expect([environment, stdout.includes(green)]).toEqual([environment, coloured]);
  }
  // The log of an engine in the background is a file.
  expect((await rig.meowWith({ FORCE_COLOR: '1' }, 'run', '-d', 'w.meow.toml', '--id', 'd')).code).toBe(0);
  await until(() => rig.read('.meow/workflows/d/engine.log').includes('done in'), 'the end of the run');
  expect(rig.read('.meow/workflows/d/engine.log')).not.toContain('\u001B[');
});

test('a list without runs of the status says so', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GOOD);
  await rig.meow('run', 'w.meow.toml');
  expect(await rig.meow('list', '--status', 'failed')).toEqual({ stdout: '', stderr: 'no failed runs\n', code: 0 });
});

test('validate reports a missing file beside the errors of another, and exits with 1', async () => {
  await using rig = await Rig.setup();
  rig.write('good.meow.toml', GOOD);
  rig.write('bad.meow.toml', GOOD.replace('shell', 'shel'));
  const both = await rig.meow('validate', 'missing.meow.toml', 'bad.meow.toml', 'good.meow.toml');
  expect(both.code).toBe(1);
  expect(both.stderr).toContain('meow: there is no file missing.meow.toml\n');
  expect(both.stdout).toMatch(/^bad\.meow\.toml:\d+:\d+: error /);
  const missing = await rig.meow('validate', 'good.meow.toml', 'missing.meow.toml');
  expect(missing).toMatchObject({ stdout: '', code: 2 });
  expect(missing.stderr).toContain('meow: there is no file missing.meow.toml\n');
});
