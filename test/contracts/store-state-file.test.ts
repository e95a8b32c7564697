// The state file: complete at every moment, the last text wins.

import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { stateFile } from '../../src/sys/files.ts';
import { refusalOf } from './store.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'meow-state-'));
  path = join(folder, 'wf-1.yaml');
});
afterEach(() => rm(folder, { recursive: true }));

test('a written text can be read, and no other file is left', async () => {
  const file = stateFile(path);
  await file.write('one\n');
  expect(await readFile(path, 'utf8')).toBe('one\n');
  await file.write('two\n');
  expect(await readFile(path, 'utf8')).toBe('two\n');
  expect(await readdir(folder)).toEqual(['wf-1.yaml']);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test('texts that wait together are written once, as the last of them', async () => {
  const file = stateFile(path);
  const inodes = new Set<number>();
  const writes = Array.from({ length: 50 }, (_, index) =>
    file.write(`text ${index}\n`).then(async () => inodes.add((await stat(path)).ino)),
  );
  await Promise.all(writes);
  expect(await readFile(path, 'utf8')).toBe('text 49\n');
  expect(inodes.size).toBeLessThanOrEqual(2);
});

test('a reader never finds a partial text', async () => {
  const file = stateFile(path);
  await file.write('0'.repeat(100_000));
  const writes = (async () => {
    for (let digit = 1; digit < 10; digit++) await file.write(String(digit).repeat(100_000));
  })();
  let last = '0';
  while (last !== '9') {
    const text = await readFile(path, 'utf8');
    last = text[0] ?? '';
    expect(text === last.repeat(100_000)).toBe(true);
  }
  await writes;
});

test('a temporary file that a crash left is removed', async () => {
  await writeFile(join(folder, '.wf-1.yaml.0123456789ab.tmp'), 'x'.repeat(1_000), { mode: 0o644 });
  await writeFile(join(folder, '.wf-1.yaml.notes.tmp'), 'of somebody');
  await stateFile(path).write('short\n');
  expect(await readFile(path, 'utf8')).toBe('short\n');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(['.wf-1.yaml.notes.tmp', 'wf-1.yaml']);
});

test('unfinished texts are in the folder for them', async () => {
  await mkdir(join(folder, 'own'));
  const file = stateFile(path, join(folder, 'own'));
  await writeFile(join(folder, 'own', '.wf-1.yaml.0123456789ab.tmp'), '');
  await file.write('one\n');
  expect(await readFile(path, 'utf8')).toBe('one\n');
  expect(await readdir(join(folder, 'own'))).toEqual([]);
});

test('a failed write is reported, and the next one tries again', async () => {
  const file = stateFile(path);
  await rm(folder, { recursive: true });
  const refusal = await refusalOf(file.write('one\n'));
  expect(refusal.message).toMatch(/^cannot write the state file: a folder on the path is missing \(ENOENT: /);
  await mkdir(folder);
  await file.write('two\n');
  expect(await readFile(path, 'utf8')).toBe('two\n');
});

test('a folder in its place is moved aside (guard/3)', async () => {
  await mkdir(path);
  await writeFile(join(path, 'work'), 'of somebody');
  await stateFile(path).write('one\n');
  expect(await readFile(path, 'utf8')).toBe('one\n');
  const [aside = ''] = (await readdir(folder)).filter((name) => name.startsWith('wf-1.yaml.aside-'));
  expect(await readFile(join(folder, aside, 'work'), 'utf8')).toBe('of somebody');
});
