import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

const FOX = `[adapter]
name = "fox"
description = "an agent of our own"
[headless]
command = "fox -p --session {{session_id}}"
resume = "fox -p --resume {{session_id}}"
`;

const SPAWN = `[main]
name = "main"
[[main.steps]]
id = "start"
executor = "spawn"
agent = "worker"
`;

const inHome = (rig: Rig, path: string): string => join(rig.home, '.meow/adapters', path);

/** A repository with an adapter, tagged v1, and a later version. */
function repository(rig: Rig): string {
  const folder = join(dirname(rig.folder), 'repository');
  mkdirSync(folder);
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', '-C', folder, ...args], {
      encoding: 'utf8',
      env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null' },
    });
  git('init', '--quiet', '--initial-branch=main');
  writeFileSync(join(folder, 'adapter.toml'), FOX);
  writeFileSync(join(folder, 'README.md'), '# fox\n');
  git('add', '.');
  git('commit', '--quiet', '-m', 'one');
  git('tag', 'v1');
  writeFileSync(join(folder, 'adapter.toml'), FOX.replace('an agent of our own', 'a newer one'));
  git('commit', '--quiet', '-am', 'two');
  return folder;
}

test('adapter list and show include the built-in adapters', async () => {
  await using rig = await Rig.setup();
  const { stdout, code } = await rig.meow('adapter', 'list');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ADAPTER +CHANNELS +FROM +WHAT IT STARTS\naider /);
  expect(stdout).toMatch(/^claude +terminal, headless +built in +Claude Code \(default\)$/m);
  const listed = JSON.parse((await rig.meow('adapter', 'list', '--json')).stdout) as readonly { name: string }[];
  for (const { name } of listed) {
    const shown = await rig.meow('adapter', 'show', name);
    expect(shown).toMatchObject({ code: 0, stderr: '' });
    expect(shown.stdout).toContain('Commands\n');
    expect(JSON.parse((await rig.meow('adapter', 'show', name, '--json')).stdout)).toMatchObject({ name, valid: true });
  }
});

test('adapter show prints all effective settings under the keys of the file, and marks defaults', async () => {
  await using rig = await Rig.setup();
  const terminal = `[spawn]
command = "fox"
[ready]
patterns = ['^fox>', '^\\w']
[prompt_injection]
post_delay = "1m"
clear_keys = ["C-a", "C-k"]
[[dialogs]]
name = "permission"
pattern = 'May I\\?'
approve = ["y", "Enter"]
cure = "let it"
[[limits]]
pattern = 'wait (\\d+h)'
reset = "duration"
`;
  rig.write('.meow/adapters/fox/adapter.toml', `${FOX}${terminal}`);
  const { stdout } = await rig.meow('adapter', 'show', 'fox');
  expect(stdout).toContain(`When it can take a prompt  [ready]
  patterns  ^fox>
            ^\\w
  deadline  30s  (default)

How a prompt is put in  [prompt_injection]
  pre_delay   0ms  (default)
  method      paste  (default)
  post_delay  1m
  post_keys   Enter  (default)
  clear_keys  C-a C-k

How a prompt is known to have arrived  [acknowledge]
  hook     false  (default)
  timeout  2s  (default)
`);
  expect(stdout).toMatch(/^ {2}permission {2}May I\\\?\n +a person decides: yes is y Enter\n +let it$/m);
  expect(stdout).toMatch(/^ {2}says {2}wait \(\\d\+h\)\n +when it ends: duration$/m);
  for (const section of ['spawn', 'graceful_stop', 'headless']) expect(stdout).toContain(`[${section}]\n`);
  const shown: unknown = JSON.parse((await rig.meow('adapter', 'show', 'fox', '--json')).stdout);
  expect(shown).toMatchObject({
    ready: { patterns: ['^fox>', '^\\w'], deadline: '30s' },
    prompt_injection: { post_delay: '1m', clear_keys: ['C-a', 'C-k'] },
    graceful_stop: { interrupt_keys: ['C-c'], signal: 'SIGTERM' },
    acp: null,
  });
});

describe('installing', () => {
  test('from a folder: the adapter is checked and installed, and its commands are shown', async () => {
    await using rig = await Rig.setup();
    rig.write('fox/adapter.toml', FOX);
    rig.write('fox/more/notes.md', 'notes');
    const { stdout, stderr, code } = await rig.meow('adapter', 'install', './fox');
    expect(code).toBe(0);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^installed fox \(an agent of our own\) in ~\/\.meow\/adapters\/fox\n/);
    expect(stdout).toMatch(/^ +headless +fox -p --session \{\{session_id\}\}$/m);
    expect(readFileSync(inHome(rig, 'fox/adapter.toml'), 'utf8')).toBe(FOX);
    expect(readFileSync(inHome(rig, 'fox/more/notes.md'), 'utf8')).toBe('notes');
    expect(readdirSync(inHome(rig, ''))).toEqual(['fox']);
    expect((await rig.meow('adapter', 'show', 'fox')).stdout).toContain(
      'from      user: ~/.meow/adapters/fox/adapter.toml',
    );
    rig.write('a.meow.toml', `${SPAWN}adapter = "fox"\n`);
    expect(await rig.meow('validate', 'a.meow.toml')).toMatchObject({ code: 0, stdout: 'no problems\n' });
  });

  test('from a repository: its head, a tag, or a commit', async () => {
    await using rig = await Rig.setup();
    const folder = repository(rig);
    const url = `file://${folder}`;
    expect(await rig.meow('adapter', 'install', url)).toMatchObject({ code: 0, stderr: '' });
    expect(readFileSync(inHome(rig, 'fox/adapter.toml'), 'utf8')).toContain('a newer one');
    expect(readdirSync(inHome(rig, 'fox')).toSorted()).toEqual(['README.md', 'adapter.toml']);
    expect((await rig.meow('adapter', 'install', `${url}#v1`, '--force')).code).toBe(0);
    expect(readFileSync(inHome(rig, 'fox/adapter.toml'), 'utf8')).toBe(FOX);
    expect((await rig.meow('adapter', 'install', `${folder}#main`, '--force')).code).toBe(0);
    expect(readFileSync(inHome(rig, 'fox/adapter.toml'), 'utf8')).toContain('a newer one');
    writeFileSync(join(folder, 'adapter.toml'), '[adapter]\nname = "fox"\n');
    execFileSync('git', [
      '-c',
      'user.name=a',
      '-c',
      'user.email=a@example.org',
      '-C',
      folder,
      'commit',
      '-qam',
      'three',
    ]);
    const { stderr, code } = await rig.meow('adapter', 'install', url, '--force');
    expect(code).toBe(1);
    expect(stderr).toMatch(/^adapter\.toml:1:2: error no-channel: /);
    expect(readFileSync(inHome(rig, 'fox/adapter.toml'), 'utf8')).toContain('a newer one');
  });

  test('a failed fetch is reported in one line', async () => {
    await using rig = await Rig.setup();
    const { stderr, code } = await rig.meow('adapter', 'install', `file://${rig.folder}/nowhere`);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^meow: git cannot fetch file:\/\/.*\n {2}check the address/);
    expect((await rig.meow('adapter', 'install', './nowhere')).stderr).toContain('there is no folder ./nowhere');
    rig.write('empty/README.md', '');
    expect((await rig.meow('adapter', 'install', 'empty')).stderr).toContain('there is no adapter.toml in empty');
    expect(existsSync(inHome(rig, ''))).toBe(false);
  });

  test('an invalid adapter is refused with all its problems, and nothing is installed', async () => {
    await using rig = await Rig.setup();
    rig.write(
      'fox/adapter.toml',
      FOX.replace('{{session_id}}"\nresume', '{{sesion}}"\nresume').replace('fox"', 'f.x"'),
    );
    const { stdout, stderr, code } = await rig.meow('adapter', 'install', 'fox');
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^fox\/adapter\.toml:2:8: error invalid-name: /);
    expect(stderr).toContain('fox/adapter.toml:5:29: error unknown-hole: {{sesion}} is not a known placeholder');
    expect(stderr).toMatch(/2 errors\nnothing was installed\n$/);
    expect(existsSync(inHome(rig, 'f.x'))).toBe(false);
  });

  test('an adapter with a symbolic link is refused', async () => {
    await using rig = await Rig.setup();
    rig.write('fox/adapter.toml', FOX);
    symlinkSync('/etc/passwd', rig.path('fox/more'));
    const { stderr, code } = await rig.meow('adapter', 'install', 'fox');
    expect(code).toBe(2);
    expect(stderr).toContain('more is not a regular file');
    expect(existsSync(inHome(rig, 'fox'))).toBe(false);
  });

  test('an installed adapter is replaced only with --force, and then completely', async () => {
    await using rig = await Rig.setup();
    rig.write('fox/adapter.toml', FOX);
    rig.write('fox/old', '');
    await rig.meow('adapter', 'install', 'fox');
    rig.write('new/adapter.toml', FOX.replace('our own', 'theirs'));
    const refused = await rig.meow('adapter', 'install', 'new');
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--force') as string });
    expect(readFileSync(inHome(rig, 'fox/adapter.toml'), 'utf8')).toBe(FOX);
    expect((await rig.meow('adapter', 'install', 'new', '--force')).code).toBe(0);
    expect(readdirSync(inHome(rig, 'fox'))).toEqual(['adapter.toml']);
    expect(readdirSync(inHome(rig, ''))).toEqual(['fox']);
  });

  test('--project installs for the project only, and overrides a built-in adapter', async () => {
    await using rig = await Rig.setup();
    rig.write('.meow/config.toml', '');
    rig.write('own/adapter.toml', FOX.replace('"fox"', '"sim"'));
    const { stderr, code } = await rig.meow('adapter', 'install', 'own', '--project');
    expect(code).toBe(0);
    expect(stderr).toBe('note: it overrides the built-in adapter sim\n');
    expect(rig.exists('.meow/adapters/sim/adapter.toml')).toBe(true);
    expect((await rig.meow('adapter', 'show', 'sim')).stdout).toContain('it overrides the one that is built in');
    expect((await rig.meow('adapter', 'remove', 'sim')).stderr).toContain('meow adapter remove sim --project');
    const removed = await rig.meow('adapter', 'remove', 'sim', '--project');
    expect(removed).toMatchObject({ code: 0, stdout: 'removed .meow/adapters/sim\n' });
    expect(removed.stderr).toContain('sim now means the built in adapter');
    expect(rig.exists('.meow/adapters/sim')).toBe(false);
  });
});

test('only installed adapters can be removed', async () => {
  await using rig = await Rig.setup();
  rig.write('fox/adapter.toml', FOX);
  await rig.meow('adapter', 'install', 'fox');
  expect(await rig.meow('adapter', 'remove', 'fox')).toMatchObject({ code: 0, stderr: '' });
  expect(readdirSync(inHome(rig, ''))).toEqual([]);
  expect(await rig.meow('adapter', 'remove', 'fox')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('there is no adapter "fox"') as string,
  });
  expect((await rig.meow('adapter', 'remove', 'claude')).stderr).toContain('the adapter claude is built in');
});

describe('a run is refused before it starts if its adapter is unusable', () => {
  test('an adapter that does not exist', async () => {
    await using rig = await Rig.setup();
    rig.write('a.meow.toml', `${SPAWN}adapter = "comand"\n`);
    const { stdout, stderr, code } = await rig.meow('run', 'a.meow.toml');
    expect({ stdout, code }).toEqual({ stdout: '', code: 1 });
    expect(stderr).toContain('the step start cannot start its agent: there is no adapter "comand"');
    expect(stderr).toContain('Did you mean "command"? Available: "aider", ');
    expect(rig.exists('.meow')).toBe(false);
    const checked = await rig.meow('validate', 'a.meow.toml');
    expect(checked.code).toBe(0);
    expect(checked.stdout).toContain('a.meow.toml:7:11: warning adapter-unavailable: there is no adapter "comand"');
  });

  test('an adapter with an error', async () => {
    await using rig = await Rig.setup();
    rig.write('.meow/adapters/fox/adapter.toml', FOX.replace('session_id', 'sesion_id'));
    rig.write('a.meow.toml', `${SPAWN}adapter = "fox"\n`);
    const { stderr, code } = await rig.meow('run', 'a.meow.toml');
    expect(code).toBe(1);
    expect(stderr).toContain(
      'has an error: .meow/adapters/fox/adapter.toml:5:29: {{sesion_id}} is not a known placeholder',
    );
    const shown = await rig.meow('adapter', 'show', 'fox');
    expect(shown).toMatchObject({ code: 1, stdout: '' });
    expect(shown.stderr).toContain('hint: Did you mean "session_id"?');
    expect((await rig.meow('adapter', 'list')).stdout).toMatch(
      /^fox +- +project +has an error: meow adapter show fox$/m,
    );
  });

  test('an adapter from the configuration', async () => {
    await using rig = await Rig.setup();
    rig.write('.meow/config.toml', '[agents]\ndefault_adapter = "nobody"\n');
    rig.write('a.meow.toml', SPAWN);
    expect((await rig.meow('run', 'a.meow.toml')).stderr).toContain('there is no adapter "nobody"');
    const dry = await rig.meow('run', 'a.meow.toml', '--dry-run');
    expect(dry.stdout).toContain('agent worker, adapter nobody');
  });
});

test('without any setting, the default adapter is used', async () => {
  await using rig = await Rig.setup();
  rig.write('a.meow.toml', SPAWN);
  expect((await rig.meow('run', 'a.meow.toml', '--dry-run')).stdout).toContain('agent worker, adapter claude');
});

describe('wrong usage', () => {
  test.each([
    [['adapter'], "missing required argument 'action'"],
    [['adapter', 'instal', 'x'], 'did you mean install?'],
    [['adapter', 'install'], 'meow adapter install SOURCE'],
    [['adapter', 'show'], 'meow adapter show NAME'],
    [['adapter', 'list', 'x'], "unexpected argument 'x'"],
    [['adapter', 'list', '--force'], "has no option '--force'"],
    [['adapter', 'show', 'nobody'], 'there is no adapter "nobody"'],
  ])('%j', async (args, message) => {
    await using rig = await Rig.setup();
    const { stderr, code } = await rig.meow(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});
