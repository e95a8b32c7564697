// Workflows of all languages are compiled from memory, as an editor does with its buffers.

import { describe, expect, test } from 'vitest';
import { checkProgram } from '../ir/check.ts';
import type { Program } from '../ir/program.ts';
import type { AdapterCatalog } from './adapter-catalog.ts';
import { checkWorkflow, composeWorkflow, detectLanguage, type Surroundings } from './compose.ts';
import { DEFAULT_CONFIG, readConfig } from './config.ts';
import { baseName, type Compiled, type SourceReader } from './language.ts';

const ADAPTERS: AdapterCatalog = {
  forced: null,
  fallback: () => 'sim',
  meant: (name) => name,
  named: () => ({ ok: false, error: 'there is no adapter' }),
  refusal: () => null,
};

function normal(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return `/${parts.join('/')}`;
}

/** Files by their absolute paths. */
function memoryReader(files: Readonly<Record<string, string>>): SourceReader {
  const paths = Object.keys(files);
  const folderOf = (path: string): string => normal(`${path}/..`);
  const text = (path: string): string => files[path] ?? expect.fail(`${path} is not there`);
  return {
    resolve: (folder, path) => normal(path.startsWith('/') ? path : `${folder}/${path}`),
    folderOf,
    shown: (path) => path.slice(1),
    realPath: (path) => path,
    kindOf: (path) => {
      if (paths.includes(path)) return 'file';
      return paths.some((each) => each.startsWith(`${path}/`)) ? 'folder' : null;
    },
    text,
    optionalText: (path) => files[path] ?? null,
    files: (folder) =>
      paths
        .filter((path) => folderOf(path) === folder)
        .map((path) => ({
          name: baseName(path),
          path,
          isExecutable: false,
          bytes: text(path).length,
          text: () => text(path),
        })),
    folders: { work: '/', project: '/', templates: ['/templates'], prompts: ['/prompts'], library: '/' },
  };
}

function around(files: Readonly<Record<string, string>>): Surroundings {
  const text = '[validators.ok]\ncommand = "true"\n';
  const config = readConfig({ file: 'config.toml', text }).config ?? DEFAULT_CONFIG;
  return { reader: memoryReader(files), config, adapters: ADAPTERS };
}

function compile(path: string, files: Readonly<Record<string, string>>): Compiled {
  const given = around(files);
  const language = detectLanguage(given.reader, path, 'yes') ?? expect.fail(`${path} has no language`);
  const location = { path, file: path.slice(1), workflow: null };
  expect(checkWorkflow(language, location, given).diagnostics).toEqual([]);
  return composeWorkflow(language, location, given, null);
}

const RAYMOND = (path: string): Readonly<Record<string, string>> => ({
  '/from/START.sh': `echo '<call-workflow return="END.sh">../${path}</call-workflow>'\n`,
  '/from/END.sh': "echo '<result>done</result>'\n",
});
const CONDUCTOR = (id: string, target: string): string => `workflow_id: ${id}
version: 1
description: A part.
entry_step: ${id}
steps:
  - id: ${id}
    opcode: RUN_VALIDATION
    run: [ok]
    routes: { completed: ${target}, error: STOP, killed_timeout: STOP, killed_idle: STOP, killed_policy: STOP }
`;
const MEOW = (executor: string): string => `[main]\n[[main.steps]]\nid = "only"\n${executor}\n`;

/** What begins with a path, and the files that it needs. */
const FROM = {
  meow: (path: string) => ({
    path: '/from.meow.toml',
    files: { '/from.meow.toml': MEOW(`executor = "expand"\ntemplate = "./${path}"`) },
  }),
  raymond: (path: string) => ({ path: '/from', files: RAYMOND(path) }),
  conductor: (path: string) => ({ path: '/from.yaml', files: { '/from.yaml': CONDUCTOR('from', `./${path}`) } }),
};
const TO = {
  meow: {
    path: 'to.meow.toml',
    block: 'to.meow.toml#main',
    files: { '/to.meow.toml': MEOW('executor = "shell"\ncommand = "true"') },
  },
  raymond: { path: 'to', block: 'to-START', files: { '/to/START.sh': "echo '<result>x</result>'\n" } },
  conductor: { path: 'to.yaml', block: 'to.yaml#to', files: { '/to.yaml': CONDUCTOR('to', 'STOP') } },
};
const LANGUAGES = ['meow', 'raymond', 'conductor'] as const;

function targets(program: Program): string {
  return JSON.stringify([program.blocks[program.entry], program.machines]);
}

describe('every language enters every language', () => {
  test.each(LANGUAGES.flatMap((from) => LANGUAGES.map((to) => ({ from, to }))))('$from enters $to', ({ from, to }) => {
    const { path, files } = FROM[from](TO[to].path);
    const { program, diagnostics } = compile(path, { ...TO[to].files, ...files });
    expect(diagnostics).toEqual([]);
    expect(program?.source.language).toBe(from);
    expect(checkProgram(program ?? expect.fail())).toEqual([]);
    expect(Object.keys(program?.blocks ?? {})).toContain(TO[to].block);
    expect(targets(program ?? expect.fail())).toContain(JSON.stringify(TO[to].block));
  });
});

test('a part of a workflow that is one is refused where it is named', () => {
  const files = { '/from.yaml': CONDUCTOR('from', '"./to.yaml#x"'), ...TO.conductor.files };
  const given = around(files);
  const language = detectLanguage(given.reader, '/from.yaml', 'yes') ?? expect.fail();
  const { diagnostics } = checkWorkflow(language, { path: '/from.yaml', file: 'from.yaml', workflow: null }, given);
  expect(diagnostics).toMatchObject([{ code: 'missing-target', message: 'to.yaml is one workflow, without parts' }]);
});
