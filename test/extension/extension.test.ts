// A language, an effect, a store and a face are added by new files and by edits of very few existing ones. This test adds a
// toy of each kind to a copy of the source tree, counts the existing files that it touches, and uses the toys.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  importsFormNoCycle,
  importsKeepToTheLayers,
  languagesDoNotKnowEachOther,
  pureLayersArePure,
} from '../tidy/layers.ts';
import { codeUnder, readTree } from '../tidy/tree.ts';
import { SourceCopy } from './source-copy.ts';
import { TOYS } from './toys.ts';

const copy = new SourceCopy();
const project = join(copy.root, 'project');
/** Kind of toy → paths of existing files. */
const touched = new Map<string, readonly string[]>();

beforeAll(() => {
  for (const [kind, toy] of Object.entries(TOYS)) touched.set(kind, copy.add(toy));
});

afterAll(() => copy.remove());

test.each(Object.entries(TOYS))('a new %s touches few existing files', (kind, { limit }) => {
  const paths = touched.get(kind) ?? [];
  expect(paths.length, `it touches ${paths.join(', ')}`).toBeLessThanOrEqual(limit);
});

test('an edit of a text that is gone is refused', () => {
  const edit = { path: 'src/languages/registry.ts', find: 'this text', replace: '' };
  expect(() => copy.add({ limit: 1, files: {}, edits: [edit] })).toThrow('contains "this text" 0 times');
});

test('the copy has no type errors, also in its tests', async () => {
  await run('node_modules/.bin/tsc', ['-p', 'tsconfig.json'], copy.root);
  await run('node_modules/.bin/tsc', ['-p', 'tsconfig.pure.json'], copy.root);
});

test('the toys keep to the layers', () => {
  const tree = readTree(copy.root);
  const rules = [importsKeepToTheLayers, languagesDoNotKnowEachOther, pureLayersArePure, importsFormNoCycle];
  expect(rules.flatMap((rule) => rule(tree))).toEqual([]);
  const face = codeUnder(tree, 'src/web').filter(({ path }) => Object.values(TOYS.face.files).includes(path));
  const imported = face.flatMap(({ imports }) => imports.flatMap(({ target }) => target ?? []));
  expect(imported).not.toEqual([]);
  expect(imported.filter((path) => !/^src\/(?:app|view|base)\//.test(path))).toEqual([]);
});

describe('the program that is built from the copy', () => {
  beforeAll(async () => {
    mkdirSync(join(project, '.meow'), { recursive: true });
    await run(process.execPath, ['scripts/build.mjs'], copy.root);
  });

  test('runs a file of the language', async () => {
    write('hello.lines', '# Two steps.\nhello: echo hello\nbye: echo bye > bye.txt\n');
    const { language, steps } = await runToEnd('hello.lines', 'lines');
    expect(language).toBe('lines');
    expect(steps).toMatchObject({ hello: { status: 'done', outputs: { text: 'hello' } }, bye: { status: 'done' } });
    expect(readFileSync(join(project, 'bye.txt'), 'utf8')).toBe('bye\n');
  });

  test('reports the problems of such a file', async () => {
    write('bad.lines', 'a: true\nwhat is this\n');
    const told = await meow('validate', 'bad.lines').catch((error: { readonly stdout: string }) => error.stdout);
    expect(told).toContain('bad.lines:2:1: error not-a-step: this line is not a step');
  });

  test('enters such a file from another language', async () => {
    write('inner.lines', 'inside: echo inside\n');
    write('outer.meow.toml', '[[main.steps]]\nid = "outer"\nexecutor = "expand"\ntemplate = "./inner.lines"\n');
    const { steps } = await runToEnd('outer.meow.toml', 'outer');
    expect(steps).toMatchObject({ 'outer.inside': { status: 'done', outputs: { text: 'inside' } } });
  });

  test('performs the effect, and shows it', async () => {
    write('turned.lines', 'word: echo meow\nturned: reverse word\n');
    const { steps } = await runToEnd('turned.lines', 'turned');
    expect(steps).toMatchObject({ turned: { status: 'done', outputs: { reversed: 'woem' } } });
    const journal = readFileSync(join(project, '.meow/workflows/turned/journal.jsonl'), 'utf8');
    expect(journal).toContain('"effect":{"kind":"reverse","text":"meow"}');
    const shown = JSON.parse(await meow('show', 'turned', 'turned', '--json')) as unknown;
    expect(shown).toMatchObject({ asks: { kind: 'reverse', text: 'meow' } });
  });

  test('uses the store that one file chooses', async () => {
    expect(await meow('list')).toContain('turned');
    const { stdout } = await run(join(copy.root, 'bin/meow'), ['list', '--json'], project, { MEOW_STORE: 'toy' });
    expect(stdout.trim()).toBe('[]');
  });

  test('shows a run on the face, while it runs', async () => {
    write('slow.lines', 'wait: until [ -e go ]; do sleep 0.1; done\nlast: true\n');
    const bundle = join(copy.root, 'dist/text-page.cjs');
    const source = join(copy.root, 'src/web/text-page.ts');
    await build({ entryPoints: [source], outfile: bundle, bundle: true, ...AS_BUILT });
    const page = spawn(process.execPath, [bundle], { cwd: project, stdio: ['ignore', 'pipe', 'inherit'] });
    const slow = runToEnd('slow.lines', 'slow');
    try {
      const url = await firstLine(page);
      const seen: string[] = [];
      for await (const text of await pageOf(`${url}/slow`)) {
        // Before the first record the run has no name yet.
        if (text.startsWith('slow')) seen.push(text);
        if (seen.length > 0) write('go', '');
      }
      expect(seen[0]).toMatch(/^slow \(lines\) running\n {2}wait (?:pending|running)\n {2}last pending\n/);
      expect(seen.join('')).toMatch(/slow \(lines\) done\n {2}wait done\n {2}last done\n$/);
      expect((await fetch(`${url}/nothing`)).status).toBe(404);
    } finally {
      write('go', '');
      page.kill();
      await slow;
    }
  });
});

/** As in scripts/build.mjs. */
const AS_BUILT = { platform: 'node', target: 'node20', define: { 'import.meta.dirname': '__dirname' } } as const;

/** The status of the run, as an object. */
async function runToEnd(file: string, id: string): Promise<Record<string, unknown>> {
  await meow('run', file, '--id', id);
  return JSON.parse(await meow('status', id, '--json')) as Record<string, unknown>;
}

async function meow(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(join(copy.root, 'bin/meow'), args, project);
  return stdout;
}

/** Rejects if it fails, with what it printed. */
async function run(
  program: string,
  args: readonly string[],
  cwd: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<{ readonly stdout: string }> {
  const path = program.startsWith('/') ? program : join(copy.root, program);
  const env = { PATH: process.env['PATH'], HOME: copy.root, ...variables };
  return promisify(execFile)(path, args, { cwd, env, encoding: 'utf8' }).catch((error: Error & { stdout: string }) => {
    throw Object.assign(new Error(`${error.message}\n${error.stdout}`), { stdout: error.stdout });
  });
}

function write(file: string, text: string): void {
  writeFileSync(join(project, file), text);
}

function firstLine({ stdout }: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    stdout?.once('data', (chunk: Buffer) => resolve(chunk.toString('utf8').trim()));
    stdout?.once('end', () => reject(new Error('the page ended without a line')));
  });
}

/** The parts of the page as they arrive, once the run exists. */
async function pageOf(url: string): Promise<AsyncIterable<string>> {
  for (;;) {
    const { ok, body } = await fetch(url);
    if (ok && body !== null) return body.pipeThrough(new TextDecoderStream());
    await sleep(50);
  }
}
