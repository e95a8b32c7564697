// Every workflow in examples/ and lib/ has tests beside it. They pass, cover the workflow, and survive deaths of the engine.
// With MEOW_SWEEP=whole the engine is killed in more of them.

import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { IS_WHOLE } from '../rig/sample.ts';
import { Rig } from '../rig/rig.ts';

const ROOT = resolve(import.meta.dirname, '../..');

/** Runs `meow test` in the repository. */
async function tested(rig: Rig, ...args: readonly string[]) {
  const { stdout, stderr, code } = await rig.shell(`cd '${ROOT}' && meow test ${args.join(' ')} --json`);
  const lines = stdout
    .trim()
    .split('\n')
    .map(
      (line) =>
        JSON.parse(line) as { kind: string; file?: string; name?: string; failures?: unknown[]; deaths?: number },
    );
  const broken = lines.filter(({ failures = [] }) => failures.length > 0);
  expect({ broken, stderr, code }).toEqual({ broken: [], stderr: '', code: 0 });
  return lines;
}

function workflowsIn(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap(({ name }) => {
    const [, base] = /^(.+)\.meow\.toml$/.exec(name) ?? [];
    return base === undefined ? [] : [join(folder, base)];
  });
}

function testFilesIn(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder)).flatMap((name) => (name.endsWith('.test.toml') ? [join(folder, name)] : []));
}

test('every workflow has tests', () => {
  const raymond = readdirSync(join(ROOT, 'examples/raymond'), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() || entry.name === 'single.yaml'
      ? [join('examples/raymond', entry.name.replace('.yaml', ''))]
      : [],
  );
  const conductor = readdirSync(join(ROOT, 'examples/conductor'), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [join('examples/conductor', entry.name, entry.name)] : [],
  );
  const found = ['examples', 'examples/agents', 'lib', 'lib/init'].flatMap(workflowsIn);
  const all = [...found, ...raymond, ...conductor];
  expect(all.length).toBeGreaterThan(35);
  expect(all.filter((name) => !existsSync(join(ROOT, `${name}.test.toml`)))).toEqual([]);
});

test.for(['examples', 'lib'])('the tests of %s pass, and reach nine tenths of its steps and routes', async (path) => {
  await using rig = await Rig.setup();
  const last = (await tested(rig, path, '--coverage=90')).at(-1);
  expect(last).toMatchObject({ kind: 'tests-ended', failed: 0, errors: 0 });
});

/** Tests of terminal agents have thousands of deaths together, so each file is a test of its own. */
const CRASHED = [
  'examples/raymond',
  'examples/hello.test.toml',
  ...(IS_WHOLE ? ['lib', ...testFilesIn('examples/agents')] : []),
];

test.for(CRASHED)('the tests of %s survive the death of the engine', async (path) => {
  await using rig = await Rig.setup();
  const last = (await tested(rig, path, '--crash')).at(-1);
  expect(last).toMatchObject({ kind: 'tests-ended', failed: 0, errors: 0 });
  expect(last?.deaths).toBeGreaterThan(20);
});

test.runIf(IS_WHOLE)('a test on a real repository survives the death of the engine', async () => {
  await using rig = await Rig.setup();
  const lines = await tested(rig, 'examples/conductor/unsafe', '--crash', '-t', "'a planner that is stuck'");
  expect(lines.at(-1)?.deaths).toBeGreaterThan(20);
});
