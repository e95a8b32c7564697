import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isAlive, Rig, shellStep, timeless, until, waitingStep } from '../rig/rig.ts';

const HOLDS = `[main]\ncleanup_on_stop = "echo cleaned >> cleaned"\n${waitingStep('hold')}${shellStep('after', 'true', 'needs = ["hold"]')}`;

/** Ignores SIGTERM. */
const STUBBORN = `[main]\n${shellStep('hold', "trap '' TERM; echo $$ > hold.began; while :; do sleep 0.05; done")}`;

test('Ctrl-C stops the run, its commands and their children, and cleans up', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HOLDS);
  const run = rig.start('run', 'w.meow.toml', '--id', 'c');
  await rig.appears('hold.began');
  run.kill('SIGINT');
  const { stdout, stderr, code } = await run.ended;
  expect(code).toBe(130);
  expect(stderr).toBe('meow: stopping: commands have a few seconds; press Ctrl-C again to kill them\n');
  expect(timeless(stdout).split('\n').slice(-3).join('\n')).toBe(
    'stopped in T: 2 skipped (stopped by Ctrl-C)\nnext: meow resume c\n',
  );
  expect(rig.read('cleaned')).toBe('cleaned\n');
  await until(() => rig.processes().length === 0, 'the engine and its commands to end');
  expect(rig.exists('.meow/workflows/c.yaml.lock')).toBe(false);
  expect(rig.read('.meow/workflows/c.yaml')).toMatch(/^status: stopped$/m);
});

test('a second Ctrl-C kills commands that do not exit', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', STUBBORN);
  const run = rig.start('run', 'w.meow.toml', '--id', 'c');
  await rig.appears('hold.began');
  run.kill('SIGINT');
  await rig.decided('c', 'run-ending');
  run.kill('SIGINT');
  const { stderr, code } = await run.ended;
  expect(code).toBe(130);
  expect(stderr).toContain('meow: killing running commands\n');
  expect(rig.decisions('c').filter((decision) => decision === 'steps-stopping')).toHaveLength(2);
  await until(() => rig.processes().length === 0, 'the engine and its commands to end');
});

test('a second Ctrl-C also kills a cleanup', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HOLDS.replace('echo cleaned >> cleaned', 'while :; do sleep 0.02; done'));
  const run = rig.start('run', 'w.meow.toml', '--id', 'c');
  await rig.appears('hold.began');
  run.kill('SIGINT');
  await rig.decided('c', 'cleanup-started');
  run.kill('SIGINT');
  const { stderr, code } = await run.ended;
  expect(code).toBe(130);
  expect(stderr).toContain('meow: killing the cleanup script\n');
  expect((await rig.status('c')).status).toBe('stopped');
  await until(() => rig.processes().length === 0, 'the engine and its commands to end');
});

test('signals of different kinds do not escalate, nor does repeating meow stop', async () => {
  await using rig = await Rig.setup();
  const patient =
    "trap 'echo asked >> asked; while [ ! -e go ]; do sleep 0.02; done; exit 0' TERM; echo > hold.began; while :; do sleep 0.02; done";
  rig.write('w.meow.toml', `[main]\n${shellStep('hold', patient)}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'c');
  await rig.appears('hold.began');
  run.kill('SIGTERM');
  await rig.appears('asked');
  run.kill('SIGHUP');
  await run.line(/(stopping: [^]*){2}/);
  const stops = [rig.start('stop', 'c'), rig.start('stop', 'c')];
  await run.line(/(stopping: [^]*){3}/);
  await Promise.all(stops.map((stop) => stop.line(/stopping c/)));
  rig.write('go', '');
  const { stderr, code } = await run.ended;
  expect(code).toBe(143);
  expect(stderr).not.toContain('killing');
  for (const stop of stops) expect((await stop.ended).code).toBe(0);
  expect(rig.decisions('c').filter((decision) => decision === 'steps-stopping')).toHaveLength(1);
});

test('SIGTERM also stops the run, with exit code 143', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HOLDS);
  const run = rig.start('run', 'w.meow.toml', '--id', 't', '--json');
  await rig.appears('hold.began');
  run.kill('SIGTERM');
  const { stdout, code } = await run.ended;
  expect(code).toBe(143);
  expect(stdout).toContain('"reason":"stopped by SIGTERM"');
  expect(JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '')).toEqual({
    kind: 'run-ended',
    id: 't',
    status: 'stopped',
    exit: 143,
  });
});

test('meow stop stops a run of another terminal, and prints how it ended', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HOLDS);
  const run = rig.start('run', 'w.meow.toml', '--id', 's');
  await rig.appears('hold.began');
  const pid = rig.enginePid('s');
  const stopped = await rig.meow('stop', 's');
  expect(stopped).toEqual({
    stdout: `stopping s (engine ${pid})\ns is stopped; resume it: meow resume s\n`,
    stderr: '',
    code: 0,
  });
  const { stdout, stderr, code } = await run.ended;
  expect(code).toBe(143);
  expect(stderr).toBe('meow: stopping: commands have a few seconds; meow stop --force kills them\n');
  expect(stdout).toMatch(/ run is stopping: stopped by meow stop\n[^]*\(stopped by meow stop\)\n/);
  expect(await rig.meow('stop', 's')).toEqual({
    stdout: 'run s is stopped; it has no running commands\n',
    stderr: '',
    code: 0,
  });
});

test('meow stop --force does not wait for the commands', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', STUBBORN);
  const run = rig.start('run', 'w.meow.toml', '--id', 'f');
  await rig.appears('hold.began');
  expect((await rig.meow('stop', 'f', '--force')).code).toBe(0);
  const { stdout, code } = await run.ended;
  expect(code).toBe(143);
  expect(stdout).toContain('(stopped by meow stop --force)\n');
  expect((await rig.status('f')).status).toBe('stopped');
  await until(() => rig.processes().length === 0, 'the engine and its commands to end');
});

test('meow stop stops a run whose engine was killed, with its remaining processes', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HOLDS);
  const run = rig.start('run', 'w.meow.toml', '--id', 'k');
  await rig.appears('hold.began');
  run.kill('SIGKILL');
  await run.ended;
  const command = Number(rig.read('hold.began'));
  expect(isAlive(command)).toBe(true);
  const { stdout, code } = await rig.meow('stop', 'k');
  expect(timeless(stdout)).toBe(`k
+T run is stopping: stopped by meow stop
+T hold is being stopped
+T hold stopped
+T after skipped
+T cleanup started
+T cleanup finished
k is stopped; resume it: meow resume k
`);
  expect(code).toBe(0);
  await until(() => !isAlive(command), 'the command to end');
  expect(rig.read('cleaned')).toBe('cleaned\n');
});

test.for(['1:durable', '2:durable', '3:durable'])(
  'meow stop of a run whose engine was killed starts nothing that was only asked for (%s)',
  async (append) => {
    await using rig = await Rig.setup();
    const steps = ['a', 'b', 'c'].map((id, index) =>
      shellStep(id, `echo ${id} >> ran`, index === 0 ? '' : `needs = ["${'abc'[index - 1]}"]`),
    );
    rig.write('w.meow.toml', `[main]\n${steps.join('')}`);
    await rig.meowKilledAt(append, 'run', 'w.meow.toml', '--id', 'k');
    const ran = (): string => (rig.exists('ran') ? rig.read('ran') : '');
    const before = ran();
    expect((await rig.meow('stop', 'k')).code).toBe(0);
    expect(ran()).toBe(before);
    expect((await rig.status('k')).status).toBe('stopped');
    expect((await rig.meow('resume', 'k')).code).toBe(0);
    expect(ran()).toBe('a\nb\nc\n');
  },
);

test('meow stop --force kills commands of a killed engine at once', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', STUBBORN);
  const run = rig.start('run', 'w.meow.toml', '--id', 'k');
  await rig.appears('hold.began');
  run.kill('SIGKILL');
  await run.ended;
  expect((await rig.meow('stop', 'k', '--force')).code).toBe(0);
  expect(rig.decisions('k')).not.toContain('run-resumed');
  expect(await rig.left()).toEqual([]);
});

test('a run that is done cannot be stopped', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'true')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'd');
  expect(await rig.meow('stop', 'd')).toEqual({
    stdout: '',
    stderr: 'meow: run d has ended: it is done\n  meow status d shows it\n',
    code: 2,
  });
});

test.each([[[]], [['--force']]])('meow stop %j wakes a suspended engine', async (flags) => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.appears('hold.began');
  const engine = rig.enginePid('r');
  process.kill(engine, 'SIGSTOP');
  await until(() => / T /.test(readFileSync(`/proc/${engine}/stat`, 'utf8')), 'the engine to be suspended');
  const stopped = await rig.meow('stop', 'r', ...flags);
  expect(stopped.stdout).toContain('r is stopped; resume it: meow resume r\n');
  expect(stopped.code).toBe(0);
  expect((await run.ended).code).toBe(143);
});
