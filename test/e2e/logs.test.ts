// `meow logs` and `meow why`: which step they choose, and output that is safe to look at.

import { describe, expect, test } from 'vitest';
import { ConductorRig, validate } from '../fixtures/conductor/rig.ts';
import { RaymondRig } from '../fixtures/raymond/rig.ts';
import { Rig, shellStep, waitingStep } from '../rig/rig.ts';
import { Terminal } from '../rig/terminal.ts';

describe('without a step', () => {
  test('the failed one is chosen, and named', async () => {
    await using rig = await Rig.setup();
    rig.write(
      'w.meow.toml',
      `[main]\n${shellStep('a', 'echo fine')}${shellStep('b', 'echo broken; exit 3', 'needs = ["a"]')}`,
    );
    await rig.meow('run', 'w.meow.toml', '--id', 'r');
    const chosen = 'step b (failed); for another one, name it: meow show r --steps\n';
    expect(await rig.meow('logs', 'r')).toEqual({ stdout: 'broken\n', stderr: chosen, code: 0 });
    const why = await rig.meow('why', 'r');
    expect(why).toMatchObject({ stderr: chosen, code: 0 });
    expect(why.stdout).toMatch(/^b is failed\.\n/);
  });

  test('else the running one, else the last', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `[main]\n${shellStep('a', 'echo a')}${waitingStep('hold', 'needs = ["a"]')}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'r');
    await rig.appears('hold.began');
    expect((await rig.meow('why', 'r')).stdout).toMatch(/^hold is running\.\n/);
    rig.write('hold.go', '');
    await run.ended;
    expect((await rig.meow('why', 'r')).stdout).toMatch(/^hold is done\.\n/);
  });
});

test('a loop has no output of its own: the step below it that has is named, and shown without a step', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]
[[main.steps]]
id = "f"
executor = "loop"
until = "echo not yet; false"
max_rounds = 2
inline = [{ id = "x", executor = "shell", command = "true" }]
`,
  );
  const { stdout } = await rig.meow('run', 'w.meow.toml', '--id', 'r');
  expect(stdout).toMatch(/^next: meow logs r f\.2\.until · meow resume r$/m);
  expect(await rig.meow('logs', 'r', 'f')).toEqual({
    stdout: '',
    stderr: 'step f has no output of its own; that of f.2.until: meow logs r f.2.until\n',
    code: 0,
  });
  expect(await rig.meow('logs', 'r')).toMatchObject({
    stdout: 'not yet\n',
    stderr: expect.stringMatching(
      /^step f\.2\.until \(done\), since f \(failed\) has no output of its own; /,
    ) as string,
  });
});

test('logs of a Conductor run that is done are those of its last step with output', async () => {
  await using made = await ConductorRig.setup({ 'package.json': '{ "scripts": { "test": "echo tested" } }' });
  made.workflow({ check: validate('STOP', ['tests']) });
  expect((await made.run()).code).toBe(0);
  const { stdout, stderr } = await made.rig.meow('logs', 'r');
  expect(stderr).toMatch(/^step check#1 \(done\); /);
  expect(stdout).toContain('tested\n');
});

test('messages of an agent without a terminal are shown as text; --raw shows its events', async () => {
  await using ray = await RaymondRig.setup();
  ray.folder('flow', { 'START.md': 'Say it. <result>end</result>' });
  ray.rig.write('flow.sim.toml', '');
  expect(await ray.rig.meow('run', 'flow', '--adapter', 'sim', '--id', 'r')).toMatchObject({ code: 0 });
  const text = '<result>end</result>\n';
  expect(await ray.rig.meow('logs', 'r', 'main.1.START')).toEqual({ stdout: text, stderr: '', code: 0 });
  expect((await ray.rig.meow('logs', 'r', 'main.1.START', '--follow')).stdout).toBe(text);
  const raw = (await ray.rig.meow('logs', 'r', 'main.1.START', '--raw')).stdout;
  expect(raw.split('\n')[0]).toMatch(/^\{"kind":"begun"/);
});

test('on a terminal, escape sequences are shown as text unless --raw is given; a pipe gets the bytes', async () => {
  await using rig = await Rig.setup();
  const bytes = '\u001B]0;owned\u0007\u001B[2Jred \u001B[31malert\u001B[0m ä\u009B1m';
  rig.write('w.meow.toml', `[main]\n${shellStep('a', 'cat bytes')}`);
  rig.write('bytes', `${bytes}\n`);
  await rig.meow('run', 'w.meow.toml', '--id', 'r');
  expect((await rig.meow('logs', 'r', 'a')).stdout).toBe(`${bytes}\n`);
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.type('meow logs r a; echo over');
  await terminal.shows(/^\\x1b\]0;owned\\x07\\x1b\[2Jred \\x1b\[31malert\\x1b\[0m ä\\x9b1m\nover$/m);
  terminal.type('meow logs r a --raw; echo end');
  await terminal.shows(/^red alert ä.*\nend$/m);
});

test('a step called cleanup does not hide the log of the cleanup script', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\ncleanup_on_success = "echo swept"\n${shellStep('cleanup', 'echo a step')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'r');
  expect(await rig.meow('logs', 'r', 'cleanup')).toMatchObject({
    stdout: 'a step\n',
    stderr: 'this is the step cleanup; the cleanup script: meow logs r @cleanup\n',
  });
  expect(await rig.meow('logs', 'r', '@cleanup')).toMatchObject({ stdout: 'swept\n', stderr: '' });
});
