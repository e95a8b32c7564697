// Lists from files.

import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { readDriver } from '../../src/drivers/read-driver.ts';
import type { Driver } from '../../src/engine/ports.ts';
import type { Effect, Outcome, ReadSpec } from '../../src/ir/effect.ts';
import type { FilledText } from '../../src/ir/text.ts';
import { localRunFiles } from '../../src/stores/local-run-files.ts';

let root: string;
let driver: Driver;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'meow-read-'));
  for (const folder of ['work', 'run']) mkdirSync(join(root, folder));
  driver = readDriver({ cwd: join(root, 'work'), files: localRunFiles(join(root, 'run')) });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function reading(path: FilledText, from: ReadSpec<unknown>['from'] = 'cwd'): Effect {
  const spec = { kind: 'read', path, from } as const;
  return { id: 'a#1', step: 'a', attempt: 1, spec, session: { kind: 'fresh' }, lane: 'main', variables: {} };
}

function read(path: FilledText, from: ReadSpec<unknown>['from'] = 'cwd'): Promise<Outcome> {
  return new Promise((resolve) => driver.start(reading(path, from), resolve));
}

async function problem(text: string): Promise<string> {
  writeFileSync(join(root, 'work/list.json'), text);
  const outcome = await read('list.json');
  if (outcome.kind === 'success') throw new Error('it is a list');
  expect(outcome.failure.kind).toBe('invalid-items');
  return outcome.failure.message.replace(join(root, 'work/'), '');
}

describe('a list is read', () => {
  test('from a file, relative to the working directory of commands', async () => {
    writeFileSync(join(root, 'work/list.json'), '\uFEFF[1, {"a": "b"}]\n');
    expect(await read('list.json')).toMatchObject({ kind: 'success', outputs: { items: [1, { a: 'b' }] } });
    expect(await read(join(root, 'work/list.json'))).toMatchObject({ kind: 'success' });
  });

  test('from a file of the run', async () => {
    mkdirSync(join(root, 'run/steps/a.1.outputs'), { recursive: true });
    writeFileSync(join(root, 'run/steps/a.1.outputs/list'), '[]');
    const outcome = await read('steps/a.1.outputs/list', 'run-folder');
    expect(outcome).toMatchObject({ kind: 'success', outputs: { items: [] } });
  });

  test('also by the next engine', async () => {
    writeFileSync(join(root, 'work/list.json'), '[1]');
    const outcome = new Promise((resolve) => driver.find(reading('list.json'), resolve));
    expect(await outcome).toMatchObject({ kind: 'success' });
  });
});

describe('an error is reported if', () => {
  test('the file is missing', async () => {
    expect(await read('nothing.json')).toMatchObject({
      failure: { kind: 'invalid-items', message: `there is no file ${join(root, 'work/nothing.json')}` },
    });
  });

  test.each([
    ['[1,\n 2,, 3]', 'list.json is not JSON: ", 3]" at line 2, column 4 does not belong there'],
    ['[1, 2', 'list.json is not JSON: it breaks off at line 1, column 6'],
    ['', 'list.json is not JSON: it is empty'],
    ['{"a": 1}', 'list.json holds no list but a map'],
    ['"a"', 'list.json holds no list but a string'],
    ['null', 'list.json holds no list but null'],
  ])('%j', async (text, message) => {
    expect(await problem(text)).toBe(message);
  });

  test('the file is too large', async () => {
    writeFileSync(join(root, 'work/list.json'), '');
    truncateSync(join(root, 'work/list.json'), 64 * 1024 * 1024 + 1);
    expect(await read('list.json')).toMatchObject({
      failure: { message: expect.stringContaining('at most') as unknown },
    });
  });

  test('the file is a folder', async () => {
    expect(await read('.')).toMatchObject({ failure: { kind: 'invalid-items' } });
  });
});

test('a stop is answered', async () => {
  writeFileSync(join(root, 'work/list.json'), '[]');
  const outcome = read('list.json');
  driver.stop('a#1', { force: false, why: 'run-ending' });
  expect(await outcome).toMatchObject({ failure: { kind: 'stopped' } });
});
