// The documents say what is so: workflows in them compile, references are complete, and the commands at the head of the
// README are the ones that are meant. That links lead somewhere is a tidy rule.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { AGENT_HELP } from '../src/cli/help.ts';
import { readConfig } from '../src/languages/config.ts';
import { compileMeow, type OtherFiles } from '../src/languages/meow/compile.ts';
import { readSimScript } from '../src/sim/script.ts';
import { readTestFile } from '../src/testing/test-file.ts';
import { renderDiagnostic } from '../src/view/diagnostics.ts';
import { plainPalette } from '../src/view/row.ts';

const ROOT = join(import.meta.dirname, '..');
const FIRST_RUN = 'npm ci && bin/meow run examples/hello.meow.toml';
const TESTS = 'npm ci && npm run setup && npm test';

/** What comes with meow, as a workflow in a document may refer to it. */
const LIBRARY = libraryFiles();

const documents = ['README.md', ...markdownUnder('docs')];

interface Fence {
  /** `docs/guide.md:12` */
  readonly place: string;
  /** What stands behind the backticks: `toml`, `toml error`, `sh`. */
  readonly info: string;
  readonly text: string;
}

const fences = documents.flatMap(fencesOf);

describe('workflows in the documents', () => {
  const good = fences.filter(({ info }) => info === 'toml');
  const bad = fences.filter(({ info }) => info === 'toml error');

  test.each(good)('$place compiles', ({ place, text }) => {
    expect(errorsOf(place, text)).toEqual([]);
  });

  test.each(bad)('$place has the error that it is there for', ({ place, text }) => {
    expect(errorsOf(place, text)).not.toEqual([]);
  });

  test('there are some, and no fence has a mark that nobody reads', () => {
    expect(good.length).toBeGreaterThan(5);
    expect(fences.filter(({ info }) => info.startsWith('toml') && !['toml', 'toml error'].includes(info))).toEqual([]);
  });
});

test('every test that a guarantee names exists', () => {
  const table = readFileSync(join(ROOT, 'docs/guarantees.md'), 'utf8');
  const named = [...table.matchAll(/`((?:attacks|contracts|e2e|simulation)\/[\w-]+)`/g)].map(([, name]) => name ?? '');
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((name) => !existsSync(join(ROOT, 'test', `${name}.test.ts`)))).toEqual([]);
});

describe('diagnostics in the documents', () => {
  // What a workflow with an error is told stands right behind it.
  const told = fences.flatMap((fence, index) => {
    const next = fences[index + 1];
    const file = /^(\S+\.toml):/.exec(next?.text ?? '')?.[1];
    return fence.info === 'toml error' && next?.info === 'text' && file !== undefined
      ? [{ place: next.place, file, source: fence.text, shown: next.text }]
      : [];
  });

  test.each(told)('$place is what the program prints', ({ file, source, shown }) => {
    const { diagnostics } = compileMeow({ file, text: source, workflow: null, given: null });
    expect(shown).toBe(diagnostics.map((diagnostic) => `${renderDiagnostic(diagnostic, plainPalette)}\n`).join(''));
  });

  test('there are some, and all others have the same form', () => {
    expect(told.length).toBeGreaterThan(1);
    const heads = /^(\S+\.toml):(\d+):\d+: (?:error|warning) [a-z-]+: .*\n(?! {2}\2 \| .*\n +\| +\^~*\n {2}hint: )/gm;
    expect(fences.flatMap(({ text }) => [...text.matchAll(heads)].map(([head]) => head))).toEqual([]);
  });
});

test.each(fences.filter(({ info }) => info === 'ini'))('$place is a configuration', ({ place, text }) => {
  expect(readConfig({ file: place, text }).diagnostics).toEqual([]);
});

test.each(fences.filter(({ info }) => info === 'sim'))('$place is a script of simulated agents', ({ place, text }) => {
  expect(readSimScript(text, place).diagnostics).toEqual([]);
});

test.each(fences.filter(({ info }) => info === 'test'))('$place is a test file', ({ place, text }) => {
  expect(readTestFile(text, place).diagnostics).toEqual([]);
});

describe('the reference of the journal', () => {
  const reference = read('docs/journal.md');

  test.each([
    ['input', kindsIn('src/kernel/input.ts'), 7],
    ['decision', kindsIn('src/kernel/decision.ts'), 25],
    ['failure', failureKinds(), 15],
  ])('names every kind of %s', (_what, kinds, atLeast) => {
    expect(kinds.length).toBeGreaterThanOrEqual(atLeast);
    expect(kinds.filter((kind) => !reference.includes(`\`${kind}\``))).toEqual([]);
  });
});

test('the reference of the command line has every command and every flag', () => {
  const reference = read('docs/cli.md');
  const source = read('src/cli/cli.ts');
  const ofPeople = [...source.matchAll(/\bcommand\(\s*(?:'[^']*'|[A-Z]+),\s*'([a-z-]+)/g)];
  const ofOthers = Object.values(AGENT_HELP).flatMap(({ options }) => Object.keys(options));
  const commands = [...ofPeople.map(({ 1: name = '' }) => name), ...Object.keys(AGENT_HELP)];
  const written = [...source.matchAll(/(?:option|limit|growth|Option)\(\s*'(?:-\w, )?(--[a-z-]+)/g)];
  const flags = [...written.map(({ 1: flag = '' }) => flag), ...ofOthers.map((flag) => flag.replace(/ .*/, ''))];
  expect(commands.length).toBeGreaterThanOrEqual(24);
  expect(commands.filter((name) => !new RegExp(`^### \`meow ${name}\`$`, 'm').test(reference))).toEqual([]);
  const hidden = '--as-engine';
  expect(flags.filter((flag) => flag !== hidden && !reference.includes(flag))).toEqual([]);
});

test('the changelog tells of this version', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  expect(read('CHANGELOG.md')).toContain(`## [${version}]`);
});

test('the README begins with the two commands, and CI runs the second', () => {
  const [title = '', ...paragraphs] = read('README.md').split(/\n\n+/);
  expect(title).toMatch(/^# /);
  const [first, second] = fencesOf('README.md').map(({ text }) => text.trim());
  expect([first, second]).toEqual([FIRST_RUN, TESTS]);
  // Before them stand the pitch and the words that lead to each, and no heading.
  const before = paragraphs.slice(
    0,
    paragraphs.findIndex((text) => text.includes(TESTS)),
  );
  expect(before.length).toBeLessThanOrEqual(4);
  expect(before.filter((text) => text.startsWith('#'))).toEqual([]);
  expect(read('.ci/run')).toContain(TESTS);
});

/** In ARCHITECTURE.md layers are named without the `src/` before them. */
test.each(['ARCHITECTURE.md', 'CONTRIBUTING.md'])('%s names files that exist', (document) => {
  const paths = [...read(document).matchAll(/`((?:[a-z][\w-]*\/)+[\w.-]+\.(?:ts|trace|toml|json))`/g)];
  const named = paths.map(({ 1: path = '' }) => path);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((path) => ![path, `src/${path}`, `src/languages/${path}`].some(exists))).toEqual([]);
});

function libraryFiles(): OtherFiles {
  const files = readdirSync(join(ROOT, 'lib'))
    .filter((name) => name.endsWith('.meow.toml'))
    .map((name) => ({ file: `lib/${name}`, text: read(`lib/${name}`) }));
  const find = (_from: string, name: string): string | null =>
    files.find(({ file }) => file === `${name}.meow.toml`)?.file ?? null;
  return { files, find };
}

/** Variables that a run would have to be given are no problem of the text. */
function errorsOf(file: string, text: string): readonly string[] {
  const workflow = /^\[main\]|^\[meta\]|^\[\[steps\]\]/m.test(text) ? null : (/^\[([\w-]+)\]/m.exec(text)?.[1] ?? null);
  const { diagnostics } = compileMeow({ file, text, workflow, given: null, others: LIBRARY });
  return diagnostics.filter(({ severity }) => severity === 'error').map(({ code, message }) => `${code}: ${message}`);
}

/** The members of the union in the file, which has only one. */
function kindsIn(path: string): readonly string[] {
  return [...read(path).matchAll(/\bkind: '([a-z-]+)'/g)].map(({ 1: kind = '' }) => kind);
}

function failureKinds(): readonly string[] {
  const table = /const ERROR_TYPES = \{([\s\S]*?)\n\}/.exec(read('src/ir/failure.ts'))?.[1] ?? '';
  return [...table.matchAll(/^ {2}'?([a-z-]+)'?:/gm)].map(({ 1: kind = '' }) => kind);
}

function fencesOf(path: string): readonly Fence[] {
  const text = read(path);
  return [...text.matchAll(/^```([^\n`]*)\n([\s\S]*?)^```$/gm)].map(({ 1: info = '', 2: inside = '', index }) => ({
    place: `${path}:${text.slice(0, index).split('\n').length}`,
    info: info.trim(),
    text: inside,
  }));
}

function markdownUnder(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `${folder}/${name}`)
    .toSorted();
}

function exists(path: string): boolean {
  return existsSync(join(ROOT, path));
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}
