import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { Rig, shellStep, until, waitingStep } from '../rig/rig.ts';

interface Check {
  readonly name: string;
  readonly status: string;
  readonly text: string;
  readonly cure: string | null;
  readonly needed: boolean;
}

const FOX = `[adapter]
name = "fox"
[program]
name = "fox"
version_command = "fox --version"
tried = ["1.5.0", "2.0.0"]
install = "get fox"
login_command = "fox whoami"
login_cure = "fox login"
[[program.checks]]
name = "den"
command = "test -e den"
cure = "dig one"
[environment]
FOX_QUIET = "1"
[headless]
command = "fox -p"
`;

/** Puts a program with this name on the PATH of the rig's processes. */
function program(rig: Rig, name: string, script: string): string {
  rig.write(`bin/${name}`, `#!/bin/sh\n${script}\n`);
  chmodSync(rig.path(`bin/${name}`), 0o755);
  return `${rig.path('bin')}:${rig.environment['PATH'] ?? ''}`;
}

async function examine(rig: Rig, PATH: string): Promise<{ readonly code: number; readonly checks: readonly Check[] }> {
  const { stdout, stderr, code } = await rig.meowWith({ PATH }, 'doctor', '--json');
  expect(stderr).toBe('');
  return { code, checks: (JSON.parse(stdout) as { checks: readonly Check[] }).checks };
}

const named = (checks: readonly Check[], name: string): Check =>
  checks.find((each) => each.name === name) ?? expect.fail(name);

test('prints one line for each check, with advice', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/adapters/fox/adapter.toml', FOX);
  const { stdout, stderr, code } = await rig.meow('doctor');
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  expect(stdout).toMatch(/^ok +node +\d+\.\d+/);
  expect(stdout).toMatch(/^ok +runs +are kept in \.meow\/workflows$/m);
  expect(stdout).toMatch(/^missing +fox +fox is not on PATH · install it: get fox$/m);
});

test('checks the program of an adapter: version, login, and other requirements', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/adapters/fox/adapter.toml', FOX);
  const PATH = program(rig, 'fox', 'case $1 in --version) echo "fox v2.0.0 ($FOX_QUIET)";; whoami) exit 1;; esac');
  const { code, checks } = await examine(rig, PATH);
  expect(code).toBe(0);
  expect(named(checks, 'fox')).toMatchObject({ status: 'ok', text: '2.0.0' });
  expect(named(checks, 'fox: login')).toMatchObject({ status: 'warning', cure: 'fox login' });
  expect(named(checks, 'fox: den')).toMatchObject({ status: 'warning', cure: 'dig one' });
  rig.write('den', '');
  program(rig, 'fox', '[ "$1" != --version ] || echo 1.4');
  const later = await examine(rig, PATH);
  expect(named(later.checks, 'fox')).toMatchObject({ status: 'warning', cure: 'install it anew: get fox' });
  expect(named(later.checks, 'fox: login')).toMatchObject({ status: 'ok' });
  expect(named(later.checks, 'fox: den')).toMatchObject({ status: 'ok' });
  program(rig, 'fox', '[ "$1" != --version ] || echo 2.1.0');
  expect(named((await examine(rig, PATH)).checks, 'fox')).toMatchObject({
    status: 'ok',
    text: '2.1.0; tried with 1.5.0, 2.0.0',
  });
});

test('a program that hangs is given up', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/adapters/fox/adapter.toml', FOX.replace(/login_command.*\n/, ''));
  const PATH = program(rig, 'fox', 'sleep 600');
  const { checks } = await examine(rig, PATH);
  expect(named(checks, 'fox')).toMatchObject({ status: 'warning', text: 'does not answer: fox --version' });
});

test('an adapter with an error is named', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/adapters/fox/adapter.toml', '[adapter]\nname = "fox"\n');
  const { code, checks } = await examine(rig, rig.environment['PATH'] ?? '');
  expect(code).toBe(0);
  expect(named(checks, 'fox')).toMatchObject({ status: 'warning', cure: 'fix it: meow adapter show fox' });
});

test('a missing requirement makes the exit code 1', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/workflows', 'a file');
  const { code, checks } = await examine(rig, rig.environment['PATH'] ?? '');
  expect(code).toBe(1);
  expect(named(checks, 'runs')).toMatchObject({ status: 'missing', needed: true });
});

test('a missing optional program is only reported', async () => {
  await using rig = await Rig.setup();
  const bin = join(dirname(rig.folder), 'bin');
  mkdirSync(bin);
  for (const name of ['sh', 'env', 'dirname', 'readlink']) symlinkSync(`/bin/${name}`, join(bin, name));
  symlinkSync(process.execPath, join(bin, 'node'));
  const { code, checks } = await examine(rig, bin);
  expect(code).toBe(0);
  for (const name of ['tmux', 'git']) expect(named(checks, name).status).toBe('missing');
  for (const name of ['flock', 'perl']) expect(named(checks, name).status).toBe('warning');
});

test('names the processes of runs without an engine, and how to stop them', async () => {
  await using rig = await Rig.setup();
  await using other = await Rig.setup();
  const PATH = rig.environment['PATH'] ?? '';
  for (const each of [rig, other]) each.write('w.meow.toml', `[main]\n${waitingStep('hold')}`);
  const runs = [rig, other].map((each) => each.start('run', 'w.meow.toml', '--id', 'r'));
  for (const each of [rig, other]) await each.appears('hold.began');
  expect(named((await examine(rig, PATH)).checks, 'orphans')).toMatchObject({ status: 'ok' });
  for (const run of runs) run.kill('SIGKILL');
  await Promise.all(runs.map(({ ended }) => ended));
  const { text, status, cure } = named((await examine(rig, PATH)).checks, 'orphans');
  expect(status).toBe('warning');
  expect(text).toMatch(/^run r has no engine, and has left processes: /);
  const pids = (text.match(/\d+/g) ?? []).map(Number);
  expect(pids).toContain(Number(rig.read('hold.began')));
  // The same id, in another project.
  expect(pids).not.toContain(Number(other.read('hold.began')));
  expect(cure).toBe('meow resume r finds them; stop them: meow stop r');
  expect((await rig.meow('stop', 'r')).code).toBe(0);
  expect(named((await examine(rig, PATH)).checks, 'orphans')).toMatchObject({ status: 'ok' });
});

test('names what a run left that is done', async () => {
  await using rig = await Rig.setup();
  const server = "setsid sh -c 'echo $$ > server; while :; do sleep 0.1; done' >/dev/null 2>&1 &";
  rig.write('w.meow.toml', `[main]\n${shellStep('serve', server)}`);
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(0);
  await until(() => rig.exists('server') && /\n/.test(rig.read('server')), 'the server');
  const { cure } = named((await examine(rig, rig.environment['PATH'] ?? '')).checks, 'orphans');
  expect(cure).toMatch(new RegExp(`^stop them: kill (?:\\d+ )*${rig.read('server').trim()}(?: \\d+)*$`));
});
