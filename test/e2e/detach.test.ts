import { expect, test } from 'vitest';
import { Rig, waitingStep, until } from '../rig/rig.ts';

const HOLDS = `[main]\n${waitingStep('hold')}`;

test('--detach prints the id and returns while the run continues', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HOLDS);
  expect(await rig.meow('run', 'w.meow.toml', '--id', 'd', '--detach')).toEqual({ stdout: 'd\n', stderr: '', code: 0 });
  const { engine, status } = await rig.status('d');
  expect(status).toBe('running');
  expect(engine).toEqual({ pid: rig.enginePid('d') });
  await rig.appears('hold.began');
  rig.write('hold.go', '');
  await rig.decided('d', 'run-ended');
  expect(rig.read('ran')).toBe('hold\n');
  expect((await rig.meow('status', 'd', '--watch')).code).toBe(0);
  const trace = (await rig.meow('trace', 'd')).stdout;
  expect(trace).toMatch(/ run started\n[^]* an engine has started the run\n/);
  expect(trace).not.toContain('resumed');
  expect(rig.read('.meow/workflows/d/engine.log')).toMatch(/^d\n[^]*done in .*: 1 done\n$/);
});

test('a killed run is resumed in the background and stopped there', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HOLDS);
  const run = rig.start('run', 'w.meow.toml', '--id', 'd');
  await rig.appears('hold.began');
  run.kill('SIGKILL');
  await run.ended;
  expect(await rig.meow('resume', 'd', '--detach')).toEqual({ stdout: 'd\n', stderr: '', code: 0 });
  const again = await rig.meow('resume', 'd', '--detach');
  expect(again.stderr).toMatch(/^meow: run d is locked by another engine \(pid \d+, since /);
  expect(again.code).toBe(2);
  expect((await rig.meow('stop', 'd')).code).toBe(0);
  await until(() => rig.processes().length === 0, 'the engine and its commands to end');
  expect((await rig.status('d')).status).toBe('stopped');
});

test('a stop signal while the run is created completes the creation and starts no engine', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HOLDS);
  // `meow stop` finds that this process holds the run, and signals it.
  rig.write(
    'signalled.cjs',
    `const promises = require('node:fs/promises');
const { open } = promises;
promises.open = async (path, ...rest) => {
  if (String(path).endsWith('journal.jsonl')) process.kill(process.pid, 'SIGUSR2');
  return open(path, ...rest);
};
`,
  );
  const environment = { NODE_OPTIONS: `--require ${rig.path('signalled.cjs')}` };
  expect(await rig.meowWith(environment, 'run', 'w.meow.toml', '--id', 'd', '--detach')).toEqual({
    stdout: '',
    stderr: 'meow: stopped before an engine was started; resume the run: meow resume d\n',
    code: 143,
  });
  expect(rig.exists('hold.began')).toBe(false);
  expect(rig.exists('.meow/workflows/d.yaml.lock')).toBe(false);
  expect((await rig.meow('stop', 'd')).code).toBe(0);
  expect((await rig.status('d')).status).toBe('stopped');
});

test('a run that is done is not resumed in the background either', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HOLDS);
  rig.write('hold.go', '');
  await rig.meow('run', 'w.meow.toml', '--id', 'd');
  expect(await rig.meow('resume', 'd', '--detach')).toEqual({
    stdout: '',
    stderr: 'meow: run d is done; there is nothing to resume\n  meow status d shows it\n',
    code: 2,
  });
});
