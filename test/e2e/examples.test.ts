// Every workflow in examples/ is run by the built binary, in a folder that has nothing but what a user may have there. An
// example without a test of its own fails the last one.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { RunObject } from '../rig/rig.ts';
import { Rig } from '../rig/rig.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

/** Some examples name a folder outside of the project by the id of the run, so that it must be nobody else's. */
function idOf(name: string): string {
  return `${name}-${process.pid}`;
}

/** Runs it to its end, which must be the one that is wanted. */
async function run(rig: Rig, name: string, wanted: 'done' | 'failed', ...flags: readonly string[]): Promise<RunObject> {
  const { code, stderr } = await rig.meow('run', join(EXAMPLES, `${name}.meow.toml`), '--id', idOf(name), ...flags);
  expect({ code, stderr }).toEqual({ code: wanted === 'done' ? 0 : 1, stderr: '' });
  const status = await rig.status(idOf(name));
  expect(status.status).toBe(wanted);
  return status;
}

function output({ steps }: RunObject, step: string, name: string): unknown {
  return steps[step]?.outputs[name];
}

test('hello: greets by name, whatever the name is', async () => {
  await using rig = await Rig.setup();
  rig.write('one', '');
  const status = await run(rig, 'hello', 'done', '--var', "name=Ada $(exit) o'Neill");

  expect(output(status, 'greet', 'text')).toBe("Hello, Ada $(exit) o'Neill!");
  expect(output(status, 'count', 'files')).toBe(1);
  const { stdout } = await rig.meow('logs', idOf('hello'), 'card');
  expect(stdout).toContain(" ( o.o )   Hello, Ada $(exit) o'Neill!\n  > ^ <    1 files here, on ");
});

test('checks: sums up what failed, and goes on all the same', async () => {
  await using rig = await Rig.setup();
  rig.write('good.json', '{}');
  rig.write('deep/bad.json', '{');
  rig.write('deep/script.sh', 'echo fine');
  rig.write('merged.txt', `${'<'.repeat(7)} ours\n`);
  const status = await run(rig, 'checks', 'done');

  expect(output(status, 'summary', 'table')).toBe(
    'FAIL  JSON files\nok    shell scripts\nFAIL  merge conflicts\nok    file sizes',
  );
  expect(status.counts).toMatchObject({ done: 3, failed: 2 });
});

test('checks: fails when it is told to be strict', async () => {
  await using rig = await Rig.setup();
  rig.write('large.txt', 'x'.repeat(3_000));
  const status = await run(rig, 'checks', 'failed', '--var', 'strict=true', '--var', 'kilobytes=1');
  expect(status.steps['check-size']?.status).toBe('failed');
  expect(status.steps['summary']?.status).toBe('failed');
});

test('download: arrives at the third attempt, and leaves nothing behind', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'download', 'done');

  expect(status.steps['fetch']).toMatchObject({ attempt: 3, outputs: { attempts: 3 } });
  expect(output(status, 'verify', 'report')).toMatch(/^whole after 3 attempts: \d+ \d+$/);
  expect(await rig.shell(`test ! -e "\${TMPDIR:-/tmp}/meow-${idOf('download')}"`)).toMatchObject({ code: 0 });
});

test('download: gives up when the server never answers', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'download', 'failed', '--var', 'hang_ups=99');
  expect(status.steps['fetch']).toMatchObject({ status: 'failed', attempt: 5 });
  expect(status.steps['verify']).toMatchObject({ status: 'skipped' });
});

test('backup: keeps an archive of every file', async () => {
  await using rig = await Rig.setup();
  rig.write('data/a file.txt', 'a');
  rig.write('data/deep/b', 'b');
  const status = await run(rig, 'backup', 'done', '--var', 'source=data');

  expect(output(status, 'inventory', 'files')).toBe(2);
  expect(output(status, 'publish', 'path')).toBe(`backups/backup-${idOf('backup')}.tar`);
  const { stdout } = await rig.shell('tar -tf backups/backup-*.tar | sort');
  expect(stdout).toBe('data/a file.txt\ndata/deep/b\n');
});

test('backup: removes the half of an archive when it fails', async () => {
  await using rig = await Rig.setup();
  rig.write('data/a', 'a');
  // A folder stands where the list of files is to be written.
  rig.write(`backups/.list-${idOf('backup')}/in-the-way`, '');
  const status = await run(rig, 'backup', 'failed', '--var', 'source=data');

  expect(status.steps['publish']).toMatchObject({ status: 'skipped' });
  expect(rig.files('backups').filter((path) => path.endsWith('.tar'))).toEqual([]);
  expect(rig.decisions(idOf('backup'))).toContain('cleanup-finished');
});

test('matrix: builds every combination, and lists them', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'matrix', 'done');

  expect(output(status, 'list', 'sizes')).toEqual({
    en: { readable: 109, compact: 100 },
    de: { readable: 109, compact: 100 },
  });
  expect(rig.files('site')).toEqual(['de.html', 'de.min.html', 'en.html', 'en.min.html', 'sizes.json'].map(inSite));
  expect(rig.read('site/de.html')).toContain("<title>It's &lt;MEOW&gt; &amp; more</title>\n  <p>Guten Morgen</p>");
});

function inSite(name: string): string {
  return `site/${name}`;
}

test('pipeline: hands JSON from step to step', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'pipeline', 'done');

  expect(output(status, 'clean', 'result')).toMatchObject({ kept: 5, dropped: 2 });
  expect(output(status, 'regions', 'totals')).toEqual({ north: 165.5, south: 390, west: 99 });
  expect(output(status, 'large', 'orders')).toEqual({ count: 2, sum: 430 });
  expect(rig.read('report.md')).toContain('5 orders, 2 lines that were none.');
});

test('pipeline: reads a table of one’s own', async () => {
  await using rig = await Rig.setup();
  rig.write('orders.csv', 'region,amount\neast,500\neast,1\n');
  const flags = ['--var', 'csv=orders.csv', '--var-json', 'thresholds={"large":500}'];
  const status = await run(rig, 'pipeline', 'done', ...flags);
  expect(output(status, 'large', 'orders')).toEqual({ count: 1, sum: 500 });
});

test('release-notes: sorts the commits of a repository', async () => {
  await using rig = await Rig.setup();
  for (const subject of ['Add a door', 'Fix $(reboot) in "quotes"', "Rename it's parts"]) {
    const author = '-c user.name=Ann -c user.email=ann@example.org';
    await rig.shell(`git ${author} commit --quiet --allow-empty -m '${subject.replaceAll("'", String.raw`'\''`)}'`);
  }
  const status = await run(rig, 'release-notes', 'done', '--var', 'version=1.0.0');

  expect(output(status, 'notes', 'text')).toBe(rig.read('RELEASE_NOTES.md'));
  expect(rig.read('RELEASE_NOTES.md')).toBe(`## 1.0.0

### Added

- Add a door

### Fixed

- Fix $(reboot) in "quotes"

### Changed

- Rename it's parts
`);
});

test('release-notes: says so where there is no history', async () => {
  await using rig = await Rig.setup();
  const status = await run(rig, 'release-notes', 'done');
  expect(output(status, 'notes', 'text')).toBe('## unreleased\n\n(no history here)\n');
});

test('every example is tried', () => {
  const names = readdirSync(EXAMPLES).flatMap((file) => /^(.*)\.meow\.toml$/.exec(file)?.[1] ?? []);
  const tried = readFileSync(import.meta.filename, 'utf8').matchAll(/run\(rig, '([\w-]+)'/g);
  expect([...new Set([...tried].map(({ 1: name = '' }) => name))].toSorted()).toEqual(names.toSorted());
});
