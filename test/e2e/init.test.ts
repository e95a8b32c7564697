import { expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

test('init makes an example that is valid and runs, and overwrites nothing', async () => {
  await using rig = await Rig.setup();
  const { stdout, code } = await rig.meow('init');
  expect(stdout).toBe(`wrote .meow/config.toml
wrote .meow/templates/hello.meow.toml

Run the example:    meow run hello
Read and change it: .meow/templates/hello.meow.toml
`);
  expect(code).toBe(0);
  expect((await rig.meow('validate', 'hello')).stdout).toBe('no problems\n');
  const run = await rig.meow('run', 'hello', '--var', "name=O'Hara", '--id', 'h');
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  expect((await rig.meow('logs', 'h', 'report')).stdout).toMatch(/^hello, O'Hara\nthere are \d+ files here\n$/);

  rig.write('.meow/config.toml', 'shell = "bash"\n');
  expect((await rig.meow('init')).stdout).toContain('kept  .meow/config.toml (it was there already)\n');
  expect(rig.read('.meow/config.toml')).toBe('shell = "bash"\n');
  expect(await rig.meow('init', '--template', 'helo')).toEqual({
    stdout: '',
    stderr: 'meow: there is no template "helo"\n  did you mean hello? There is hello\n',
    code: 2,
  });
});

test('help names every command, and each has its own', async () => {
  await using rig = await Rig.setup();
  const { stdout, stderr, code } = await rig.meow('help');
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(await rig.meow()).toEqual({ stdout, stderr: '', code: 0 });
  expect((await rig.meow('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  for (const name of [
    'run',
    'resume',
    'stop',
    'status',
    'list',
    'show',
    'trace',
    'logs',
    'why',
    'init',
    'validate',
    'graph',
  ]) {
    expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'));
  }
  expect((await rig.meow('help', 'run')).stdout).toMatch(
    /^Usage: meow run PATH\[#WORKFLOW\] \[FLAGS\]\n[^]*Examples:\n/,
  );
  expect((await rig.meow('logs', '--help')).stdout).toMatch(/^Usage: meow logs ID STEP/);
});
