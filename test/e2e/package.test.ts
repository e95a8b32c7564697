// The npm package: packed, installed into an empty prefix, and used as its README says.

import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../..');

let base = '';
let installed = '';
let environment: Record<string, string | undefined> = {};

beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'meow-package-')));
  // npm scripts would rebuild dist/ during other tests.
  const pack = ['pack', '--ignore-scripts', '--json', '--pack-destination', base];
  const [{ filename }] = JSON.parse(execFileSync('npm', pack, { cwd: ROOT, encoding: 'utf8' })) as [
    { filename: string },
  ];
  const prefix = join(base, 'prefix');
  const install = ['install', '--global', '--offline', '--no-audit', '--no-fund', '--prefix', prefix];
  execFileSync('npm', [...install, join(base, filename)], { cwd: base, stdio: 'ignore' });
  installed = join(prefix, 'lib/node_modules/meow-workflows');
  environment = { ...process.env, HOME: join(base, 'home'), PATH: `${prefix}/bin:${process.env['PATH'] ?? ''}` };
  delete environment['XDG_CACHE_HOME'];
});

afterAll(() => rmSync(base, { recursive: true, force: true }));

/** Runs a shell command as a user who has installed the package. */
function shell(command: string, cwd: string): string {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, env: environment, encoding: 'utf8' });
  expect(status, `${command}\n${stdout}\n${stderr}`).toBe(0);
  return stdout;
}

/** Commands in the README that call meow. */
function readmeCommands(): readonly string[] {
  const fences = readFileSync(join(installed, 'README.md'), 'utf8').matchAll(/^```sh\n(.*?)^```/gms);
  return [...fences]
    .flatMap(([, text = '']) => text.trim().split('\n'))
    .map((line) => line.replace('npm ci && bin/meow', 'meow'))
    .filter((line) => line.startsWith('meow '));
}

describe('the installed package', () => {
  test('contains no source maps, no code cache, no tests and no sources', () => {
    // Its optional dependencies, which npm puts there, have what they have.
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' }).filter(
      (file) => !/^node_modules/.test(file),
    );
    expect(files.filter((file) => /\.(?:map|cache|ts)$|^(?:src|test|bench|scripts)\b/.test(file))).toEqual([]);
  });

  test('contains every file that its README links to', () => {
    const links = readFileSync(join(installed, 'README.md'), 'utf8').matchAll(/\]\((?!https?:)([^)#]+)/g);
    const missing = [...links].map(([, path = '']) => path).filter((path) => !existsSync(join(installed, path)));
    expect(missing).toEqual([]);
  });

  test('runs every command of its README', () => {
    const commands = readmeCommands();
    expect(commands.length).toBeGreaterThanOrEqual(3);
    for (const command of commands) shell(command, installed);
  });

  test('saves a code cache at its first start, and uses it', () => {
    rmSync(join(base, 'home'), { recursive: true, force: true });
    const caches = join(base, 'home/.cache/meow');
    shell('meow list --help', base);
    const [build = ''] = readdirSync(caches);
    expect(readdirSync(join(caches, build))).toEqual(['cli.cache']);
    expect(shell('meow list --help', base)).toContain('Usage: meow list');
  });

  test('also uses a code cache that a run has saved, and in a run', () => {
    rmSync(join(base, 'home'), { recursive: true, force: true });
    const [caches, folder] = [join(base, 'home/.cache/meow'), mkdtempSync(join(base, 'run-'))];
    writeFileSync(join(folder, 'a.meow.toml'), '[[main.steps]]\nid = "a"\nexecutor = "shell"\ncommand = "true"\n');
    shell('meow run a.meow.toml', folder);
    const saved = (): number => statSync(join(caches, readdirSync(caches)[0] ?? '', 'cli.cache')).ino;
    const first = saved();
    shell('meow run a.meow.toml && meow list', folder);
    expect(saved()).toBe(first);
  });

  test('starts without a writable cache folder', () => {
    const unwritable = spawnSync('meow', ['list', '--help'], {
      cwd: base,
      env: { ...environment, XDG_CACHE_HOME: '/dev/null' },
      encoding: 'utf8',
    });
    expect([unwritable.status, unwritable.stderr]).toEqual([0, '']);
  });

  test('draws the picture of its README', () => {
    const play = join(base, 'play');
    shell(`mkdir ${play}`, base);
    shell('meow init --template parallel && meow run parallel --id demo', play);
    expect(shell('meow graph demo --format svg', play)).toBe(readFileSync(join(installed, 'docs/run.svg'), 'utf8'));
  });
});
