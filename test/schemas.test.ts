// The schemas of documents: they accept every document that comes with meow, and refuse what the reader refuses. Reader, schema
// and reference know the same keys.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv, type ValidateFunction } from 'ajv';
import { describe, expect, test } from 'vitest';

import { schemaNamed, schemaNames } from '../src/app/schemas.ts';
import { isJsonMap, type Json, type JsonMap } from '../src/base/json.ts';
import { ROUTES } from '../src/languages/conductor/keys.ts';
import { routeNames } from '../src/languages/conductor/routes.ts';
import { OPCODES } from '../src/languages/conductor/syntax.ts';
import { DOCUMENTS } from '../src/languages/documents.ts';
import {
  type Key,
  keyAt,
  keysOf,
  namesOf,
  type Path,
  type Shape,
  type Table,
  tablesAt,
} from '../src/languages/keys.ts';
import { EXECUTOR_NAMES, findExecutor } from '../src/languages/meow/executors/executors.ts';
import { EXECUTOR_TABLES, MEOW, STEP } from '../src/languages/meow/keys.ts';
import { brokenTexts, completeText, KINDS, parsed, ROOT, shippedFiles, written } from './rig/schema-kinds.ts';

const ajv = new Ajv({ allErrors: true, strict: true, strictRequired: false, allowUnionTypes: true });
const ACCEPTS = new Map(
  Object.keys(KINDS).map((name) => [name, ajv.compile(schemaNamed(name) ?? expect.fail(name))] as const),
);

function accepts(name: string): ValidateFunction {
  return ACCEPTS.get(name) ?? expect.fail(name);
}

test('every document has a schema, and its reader is known to these tests', () => {
  expect(schemaNames().map(({ name }) => name)).toEqual(Object.keys(KINDS));
});

describe.each(Object.entries(KINDS))('the schema of %s', (name, kind) => {
  const shipped = shippedFiles(kind);

  test('is tried with documents that come with meow', () => {
    expect(shipped).not.toEqual([]);
  });

  test.each(shipped)('accepts %s', (file) => {
    accepts(name)(parsed(kind.syntax, readFileSync(join(ROOT, file), 'utf8')));
    expect(accepts(name).errors ?? []).toEqual([]);
  });

  test('accepts a document with every key, and so does the reader', () => {
    const text = completeText(name, kind);
    expect(kind.problems(text)).toEqual([]);
    accepts(name)(parsed(kind.syntax, text));
    expect(accepts(name).errors ?? []).toEqual([]);
    const { root } = DOCUMENTS[name] ?? expect.fail();
    const names = new Set([...tablesBelow(root)].flatMap((table) => namesOf(allKeys(table))));
    const used = usedKeys(root, parsed(kind.syntax, text));
    // Only an older file has it.
    expect([...names].filter((key) => !used.has(key))).toEqual(name === 'meow' ? ['meta'] : []);
  });

  test.each(Object.entries(brokenTexts(name)))('refuses %s, as the reader does', (_, text) => {
    expect(kind.problems(text)).not.toEqual([]);
    expect(accepts(name)(parsed(kind.syntax, text))).toBe(false);
  });

  test('refuses only what the reader refuses, wherever a value is changed', () => {
    const document = parsed(kind.syntax, completeText(name, kind));
    const changes = [...changesOf(document, [], { at: 0 })].filter(
      ({ changed }) => kind.syntax === 'yaml' || !JSON.stringify(changed).includes('null'),
    );
    const disagreements = changes.flatMap(({ change, changed }) => {
      if (UNDECIDED.test(`${name} ${change}`)) return [];
      const isAccepted = accepts(name)(changed);
      const codes = kind.problems(written(kind, changed)).map(({ code }) => code);
      if (!isAccepted && codes.length === 0) return [`only the schema refuses ${change}`];
      const unknown = codes.includes('unknown-key') || codes.includes('unknown-action');
      return isAccepted && unknown ? [`only the reader refuses ${change}`] : [];
    });
    expect(disagreements).toEqual([]);
    expect(changes.length).toBeGreaterThan(100);
  });
});

test('at least 60 broken documents are refused, and some of each kind', () => {
  const counts = Object.keys(KINDS).map((name) => Object.keys(brokenTexts(name)).length);
  expect(counts.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(60);
  expect(Math.min(...counts)).toBeGreaterThanOrEqual(12);
});

/** YAML has texts that look like booleans, which are ids in Conductor. */
const UNDECIDED = /^conductor .*\bid = (?:true|false)$/;

const OTHER_VALUES: readonly Json[] = [true, 'x y', -1, '', { x: 1 }, ['x'], 1.5, null, [], 0, ' ', {}, [1], false];

interface Change {
  /** What was done, and where. */
  readonly change: string;
  readonly changed: Json;
}

/** Each key removed, each value replaced by one of several others in turn, and an unknown key in each map. */
function* changesOf(value: Json, path: Path, turn: { at: number }): Generator<Change> {
  if (isJsonMap(value)) {
    for (const key of Object.keys(value)) {
      const { [key]: _, ...rest } = value;
      yield { change: `${[...path, key].join('.')} removed`, changed: rest };
    }
    yield { change: `${path.join('.')} with no_such_key`, changed: { ...value, no_such_key: 1 } };
  }
  for (const [key, old] of entriesOf(value)) {
    const below = [...path, key];
    const other = OTHER_VALUES[turn.at % OTHER_VALUES.length] ?? null;
    turn.at += 1;
    yield { change: `${below.join('.')} = ${JSON.stringify(other)}`, changed: replaced(value, key, other) };
    for (const { change, changed } of changesOf(old, below, turn)) {
      yield { change, changed: replaced(value, key, changed) };
    }
  }
}

function entriesOf(value: Json): readonly (readonly [string | number, Json])[] {
  if (Array.isArray(value)) return [...(value as readonly Json[]).entries()];
  return isJsonMap(value) ? Object.entries(value) : [];
}

function replaced(value: Json, key: string | number, other: Json): Json {
  if (Array.isArray(value)) return (value as readonly Json[]).map((item, index) => (index === key ? other : item));
  return { ...(value as JsonMap), [key]: other };
}

/** The keys of its tables that a document has. */
function usedKeys(root: Table, document: Json): ReadonlySet<string> {
  const textAt = (path: Path): string | null => {
    const found = path.reduce<Json | undefined>((value, step) => (value as Record<string, Json>)[step], document);
    return typeof found === 'string' ? found : null;
  };
  const used = new Set<string>();
  const visit = (value: Json, path: Path): void => {
    if (isJsonMap(value)) {
      for (const { keys } of tablesAt(root, path, textAt)) {
        for (const { name } of keys) if (name in value) used.add(name);
      }
    }
    for (const [key, inner] of entriesOf(value)) visit(inner, [...path, key]);
  };
  visit(document, []);
  return used;
}

describe('the schema of MEOW workflows', () => {
  const acceptsMeow = accepts('meow');

  test('accepts an older file with its steps at the top', () => {
    const text = '[meta]\nname = "a"\n[variables]\nx = 1\n[[steps]]\nid = "a"\nexecutor = "shell"\ncommand = "true"\n';
    const { meow = expect.fail() } = KINDS;
    expect(meow.problems(text)).toEqual([]);
    expect(acceptsMeow(parsed(meow.syntax, text))).toBe(true);
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
  return (accepts('meow').errors ?? []).some(
    ({ keyword, params }) => keyword === 'additionalProperties' && params['additionalProperty'] === name,
  );
}

describe('the schema of Conductor workflows', () => {
  test('has the outcomes that the reader routes', () => {
    for (const opcode of OPCODES) expect(namesOf(ROUTES[opcode].keys)).toEqual(routeNames(opcode));
  });
});

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
    ['meow', ['languages/meow.md']],
    ['raymond', ['languages/raymond.md']],
    ['conductor', ['languages/conductor.md']],
    ['test', ['testing.md', 'sim.md']],
    ['sim', ['sim.md']],
    ['adapter', ['adapters.md']],
    ['config', ['guide.md', 'cli.md', 'operating.md', 'languages/conductor.md']],
  ])('of %s is in the reference', (name, files) => {
    const reference = files.map((file) => readFileSync(join(ROOT, 'docs', file), 'utf8')).join('\n');
    const keys = [...tablesBelow(DOCUMENTS[name]?.root ?? expect.fail())].flatMap((table) => namesOf(allKeys(table)));
    // Between backticks, or a line of an example.
    const isKnown = (key: string): boolean =>
      new RegExp(`\`[^\`\\n]*\\b${key}\\b[^\`\\n]*\`|^\\[?${key}(?:[.\\]]| +=)`, 'm').test(reference);
    expect([...new Set(keys)].filter((key) => !isKnown(key))).toEqual([]);
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
