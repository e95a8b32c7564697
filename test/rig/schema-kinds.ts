// The kinds of documents that have schemas: how each is parsed, written and read, and which of them come with meow.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse as parseYaml, stringify } from 'yaml';

import { isJsonMap, type Json } from '../../src/base/json.ts';
import { type Diagnostic, makeSource } from '../../src/base/source.ts';
import { readAdapter } from '../../src/languages/adapter/read-adapter.ts';
import { compileConductor } from '../../src/languages/conductor/compile.ts';
import { DEFAULT_CONDUCTOR } from '../../src/languages/conductor/config.ts';
import { readConfig } from '../../src/languages/config.ts';
import { compileMeow } from '../../src/languages/meow/compile.ts';
import { compileRaymond } from '../../src/languages/raymond/compile.ts';
import { createReport } from '../../src/languages/report.ts';
import { tomlToJson } from '../../src/languages/toml-tree.ts';
import { readToml } from '../../src/languages/toml.ts';
import { readSimScript } from '../../src/sim/script.ts';
import { readTestFile } from '../../src/testing/test-file.ts';

export const ROOT = join(import.meta.dirname, '../..');

type Problems = readonly Diagnostic[];

interface Kind {
  readonly syntax: 'toml' | 'yaml';
  /** What the reader reports about a text. */
  readonly problems: (text: string) => Problems;
  /** Documents of that kind that come with meow. */
  readonly shipped: RegExp;
  /** Those among them that are something else. */
  readonly besides?: RegExp;
}

const ADAPTERS = {
  forced: null,
  fallback: 'sim',
  meant: (name: string) => name,
  refusal: () => null,
  canFork: () => true,
  canChoose: () => true,
};

export const KINDS: Readonly<Record<string, Kind>> = {
  meow: {
    syntax: 'toml',
    problems: (text) => compileMeow({ file: 'a', text, workflow: null, given: [] }).diagnostics,
    shipped: /^(?:examples|lib)\/.*\.meow\.toml$/,
  },
  raymond: {
    syntax: 'yaml',
    problems: (text) =>
      compileRaymond({
        source: { kind: 'single', key: 'w', name: 'w.yaml', text, start: null },
        given: [],
        adapters: ADAPTERS,
        find: () => ({ kind: 'found', entry: 'other', required: [], visited: [] }),
      }).diagnostics,
    shipped: /^examples\/raymond\/.*\.yaml$/,
  },
  conductor: {
    syntax: 'yaml',
    problems: conductorProblems,
    shipped: /^examples\/conductor\/.*\.yaml$/,
    besides: /\/deploy\/production\.yaml$/,
  },
  test: {
    syntax: 'toml',
    problems: (text) => readTestFile(text, 'a.test.toml').diagnostics,
    shipped: /^(?:examples|lib)\/.*\.test\.toml$/,
  },
  sim: {
    syntax: 'toml',
    problems: (text) => readSimScript(text, 'a.sim.toml').diagnostics,
    shipped: /^(?:examples|lib)\/.*\.sim\.toml$/,
  },
  adapter: {
    syntax: 'toml',
    problems: (text) => readAdapter({ file: 'adapter.toml', text, readers: ['text', 'json'] }).diagnostics,
    shipped: /^lib\/adapters\/.*\/adapter\.toml$/,
  },
  config: {
    syntax: 'toml',
    problems: (text) => readConfig({ file: 'config.toml', text }).diagnostics,
    shipped: /^(?:examples|lib)\/.*(?:\.meow|init)\/config\.toml$/,
  },
};

function conductorProblems(text: string): Problems {
  return compileConductor({
    source: { file: 'w.yaml', text },
    config: DEFAULT_CONDUCTOR,
    adapters: ADAPTERS,
    prompts: (id) => {
      const [role = ''] = id.split('.');
      return { path: id, text: `---\nprompt_id: ${id.replace(/\.v1$/, '')}\nversion: 1\nrole: ${role}\n---\nDo it.\n` };
    },
    validators: (id) => (id.trim() === '' ? null : { command: id, from: 'Makefile' }),
    enter: () => ({ kind: 'found', entry: 'other', required: [], visited: [] }),
    artifactsDirDefault: '.meow/run/',
  }).diagnostics;
}

export function parsed(syntax: Kind['syntax'], text: string): Json {
  if (syntax === 'yaml') return parseYaml(text) as Json;
  const root = readToml(createReport(makeSource('a', text)));
  return root === null ? {} : tomlToJson(root);
}

export function written({ syntax }: Kind, document: Json): string {
  if (syntax === 'yaml') return stringify(document);
  return isJsonMap(document)
    ? Object.entries(document)
        .map((entry) => `${tomlEntry(entry)}\n`)
        .join('')
    : '';
}

function tomlEntry([key, value]: readonly [string, Json]): string {
  return `${JSON.stringify(key)} = ${tomlValue(value)}`;
}

function tomlValue(value: Json): string {
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(tomlValue).join(', ')}]`;
  return isJsonMap(value) ? `{ ${Object.entries(value).map(tomlEntry).join(', ')} }` : JSON.stringify(value);
}

export function shippedFiles({ shipped, besides }: Kind): readonly string[] {
  return ['examples', 'lib']
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
    )
    .filter((file) => shipped.test(file) && besides?.test(file) !== true);
}

/** By what is wrong with them. */
export function brokenTexts(name: string): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(join(ROOT, `test/fixtures/schemas/${name}.json`), 'utf8')) as Record<string, string>;
}

/** A document with every key. */
export function completeText(name: string, { syntax }: Kind): string {
  return readFileSync(join(ROOT, `test/fixtures/schemas/complete/${name}.${syntax}`), 'utf8');
}
