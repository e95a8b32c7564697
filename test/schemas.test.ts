// The schemas of documents: they accept every document that comes with meow, and refuse what the reader refuses. Reader, schema
// and reference know the same keys.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';

import { parse as parseYaml } from 'yaml';

import { makeSource } from '../src/base/source.ts';
import { compileConductor } from '../src/languages/conductor/compile.ts';
import { DEFAULT_CONDUCTOR } from '../src/languages/conductor/config.ts';
import { CONDUCTOR, ROUTES } from '../src/languages/conductor/keys.ts';
import { routeNames } from '../src/languages/conductor/routes.ts';
import { OPCODES } from '../src/languages/conductor/syntax.ts';
import { CONFIG } from '../src/languages/config-keys.ts';
import { readConfig } from '../src/languages/config.ts';
import { DOCUMENTS } from '../src/languages/documents.ts';
import { schemaOf } from '../src/languages/json-schema.ts';
import { type Key, keyAt, keysOf, namesOf, type Shape, type Table, tablesAt } from '../src/languages/keys.ts';
import { compileMeow } from '../src/languages/meow/compile.ts';
import { EXECUTOR_NAMES, findExecutor } from '../src/languages/meow/executors/executors.ts';
import { EXECUTOR_TABLES, MEOW, STEP } from '../src/languages/meow/keys.ts';
import { createReport } from '../src/languages/report.ts';
import { tomlToJson } from '../src/languages/toml-tree.ts';
import { readToml } from '../src/languages/toml.ts';

const ROOT = join(import.meta.dirname, '..');
const ajv = new Ajv({ allErrors: true, strict: true, strictRequired: false, allowUnionTypes: true });
const acceptsMeow = ajv.compile(schemaOf(MEOW));

function parsed(text: string): unknown {
  const root = readToml(createReport(makeSource('a', text)));
  return root === null ? {} : tomlToJson(root);
}

function errorsOf(text: string): readonly string[] {
  const { diagnostics } = compileMeow({ file: 'a', text, workflow: null, given: [] });
  return diagnostics.filter(({ severity }) => severity === 'error').map(({ code }) => code);
}

describe('the schema of MEOW workflows', () => {
  const shipped = ['examples', 'lib'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.meow.toml'))
      .map((file) => join(folder, file)),
  );
  test.each(shipped)('accepts %s', (file) => {
    acceptsMeow(parsed(readFileSync(join(ROOT, file), 'utf8')));
    expect(acceptsMeow.errors ?? []).toEqual([]);
  });

  const broken = JSON.parse(readFileSync(join(ROOT, 'test/fixtures/schemas/meow.json'), 'utf8')) as Record<
    string,
    string
  >;
  test.each(Object.entries(broken))('refuses %s, as the reader does', (_, text) => {
    expect(errorsOf(text)).not.toEqual([]);
    expect(acceptsMeow(parsed(text))).toBe(false);
  });

  test('refuses at least 60 broken documents', () => {
    expect(Object.keys(broken).length).toBeGreaterThanOrEqual(60);
  });

  test('accepts an older file with its steps at the top', () => {
    const text = '[meta]\nname = "a"\n[variables]\nx = 1\n[[steps]]\nid = "a"\nexecutor = "shell"\ncommand = "true"\n';
    expect(errorsOf(text)).toEqual([]);
    expect(acceptsMeow(parsed(text))).toBe(true);
  });

  test('refuses a key of another executor', () => {
    for (const executor of EXECUTOR_NAMES) {
      const own = findExecutor(executor)?.keys ?? [];
      const foreign = keysOf(STEP, null).filter(({ name }) => !own.includes(name) && !isCommon(name));
      for (const { name } of foreign) {
        acceptsMeow({ main: { steps: [{ id: 'a', executor, [name]: 'x' }] } });
        expect({ executor, name, refused: hasUnknown(name) }).toEqual({ executor, name, refused: true });
      }
    }
  });
});

function isCommon(name: string): boolean {
  return STEP.keys.some((key) => key.name === name);
}

function hasUnknown(name: string): boolean {
  return (acceptsMeow.errors ?? []).some(
    ({ keyword, params }) => keyword === 'additionalProperties' && params['additionalProperty'] === name,
  );
}

describe('the schema of Conductor workflows', () => {
  const accepts = ajv.compile(schemaOf(CONDUCTOR));

  test.each(filesUnder('examples/conductor', /^(?!.*deploy).*\.yaml$/))('accepts %s', (file) => {
    accepts(parseYaml(readFileSync(join(ROOT, file), 'utf8')));
    expect(accepts.errors ?? []).toEqual([]);
  });

  test.each(Object.entries(brokenDocuments('conductor')))('refuses %s, as the reader does', (_, text) => {
    expect(conductorErrors(text)).not.toEqual([]);
    expect(accepts(parseYaml(text))).toBe(false);
  });

  test('has the outcomes that the reader routes', () => {
    for (const opcode of OPCODES) expect(namesOf(ROUTES[opcode].keys)).toEqual(routeNames(opcode));
  });
});

describe('the schema of the configuration', () => {
  const accepts = ajv.compile(schemaOf(CONFIG));

  test.each(['lib/init/config.toml', ...filesUnder('examples', /\.meow\/config\.toml$/)])('accepts %s', (file) => {
    accepts(parsed(readFileSync(join(ROOT, file), 'utf8')));
    expect(accepts.errors ?? []).toEqual([]);
  });

  test.each(Object.entries(brokenDocuments('config')))('refuses %s, of which the reader warns', (_, text) => {
    expect(readConfig({ file: 'config.toml', text }).diagnostics).not.toEqual([]);
    expect(accepts(parsed(text))).toBe(false);
  });
});

function filesUnder(folder: string, ending: RegExp): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file))
    .map((file) => join(folder, file));
}

function brokenDocuments(name: string): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(join(ROOT, `test/fixtures/schemas/${name}.json`), 'utf8')) as Record<string, string>;
}

function conductorErrors(text: string): readonly string[] {
  const { diagnostics } = compileConductor({
    source: { file: 'w.yaml', text },
    config: DEFAULT_CONDUCTOR,
    adapters: { forced: null, fallback: 'sim', meant: (name) => name, refusal: () => null, canChoose: () => true },
    prompts: (id) => ({ path: id, text: '---\nprompt_id: task.do\nversion: 1\nrole: task\n---\nDo it.\n' }),
    validators: (id) => ({ command: id, from: 'Makefile' }),
    enter: () => null,
    artifactsDirDefault: '.meow/run/',
  });
  return diagnostics.filter(({ severity }) => severity === 'error').map(({ code }) => code);
}

describe('one table of keys', () => {
  test('has an entry for each executor, and a timeout where the executor has one', () => {
    expect(Object.keys(EXECUTOR_TABLES)).toEqual(EXECUTOR_NAMES);
    for (const name of EXECUTOR_NAMES) {
      const executor = findExecutor(name);
      expect([name, executor?.keys.includes('timeout')]).toEqual([name, executor?.timeout !== 'none']);
    }
  });

  test.each(Object.entries(DOCUMENTS))('describes every key of %s in a sentence', (_, { root }) => {
    for (const { doc } of [...tablesBelow(root)].flatMap(allKeys)) expect(doc).toMatch(/^[A-Z].{8,}\.$/);
  });

  test.each([
    ['meow', 'docs/languages/meow.md'],
    ['conductor', 'docs/languages/conductor.md'],
  ])('of %s is in the reference', (name, file) => {
    const reference = readFileSync(join(ROOT, file), 'utf8');
    const keys = [...tablesBelow(DOCUMENTS[name]?.root ?? expect.fail())].flatMap(allKeys);
    const absent = keys.filter((key) => !new RegExp(`\`(?:\\[?${key.name}\\]?)\``).test(reference));
    expect([...new Set(absent.map((key) => key.name))]).toEqual([]);
  });

  test('is found by the path of a document', () => {
    const path = ['main', 'steps', 2, 'on_true', 'inline', 0];
    const textAt = (at: readonly (string | number)[]): string | null =>
      at.join('.') === [...path, 'executor'].join('.') ? 'shell' : null;
    expect(keyAt(MEOW.root, [...path, 'command'], textAt)?.doc).toBe('The shell script to run.');
    expect(keyAt(MEOW.root, [...path, 'prompt'], textAt)).toBeNull();
    expect(keyAt(MEOW.root, [...path, 'prompt'], () => null)?.name).toBe('prompt');
    expect(keyAt(MEOW.root, ['main', 'variables', 'x', 'type'], () => null)?.name).toBe('type');
    expect(tablesAt(MEOW.root, path, textAt).map(({ table }) => table)).toEqual([STEP]);
  });
});

function allKeys(table: Table): readonly Key[] {
  return keysOf(table, null);
}

function tablesBelow(root: Table, seen = new Set<Table>()): ReadonlySet<Table> {
  if (seen.has(root)) return seen;
  seen.add(root);
  for (const { shape } of allKeys(root)) visit(shape, seen);
  if (root.others !== undefined) visit(root.others.shape, seen);
  return seen;
}

function visit(shape: Shape, seen: Set<Table>): void {
  if (shape.kind === 'table') tablesBelow(shape.table(), seen);
  else if (shape.kind === 'either') for (const each of shape.of) visit(each, seen);
  else if (shape.kind === 'list' || shape.kind === 'map') visit(shape.of, seen);
}
