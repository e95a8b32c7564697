import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';

import type { Compiled } from '../languages/language.ts';
import { compileMeow, validateMeow } from '../languages/meow/compile.ts';
import { meow, type MeowSource } from '../languages/meow/language.ts';
import { Adapters, refuseAdapters } from './adapters.ts';
import { findWorkflow } from './compile.ts';
import { resolveVariables } from './prepare-run.ts';
import type { Project } from './project.ts';
import { projectReader } from './sources.ts';

const base = realpathSync(mkdtempSync(join(tmpdir(), 'meow-workflow-')));
afterAll(() => rmSync(base, { recursive: true, force: true }));

let project: Project;
let count = 0;
beforeEach(() => {
  const folder = join(base, String((count += 1)));
  const meow = join(folder, 'project/.meow');
  const shared = join(folder, 'home/.meow');
  project = { cwd: dirname(meow), meow, exists: true, runs: join(meow, 'workflows'), shared };
  mkdirSync(project.cwd, { recursive: true });
});

/** A file of the project, or of the home folder where its name begins with ~. */
function write(file: string, text: string): void {
  const path = file.startsWith('~') ? join(dirname(project.shared), file.slice(2)) : join(project.cwd, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const says = (word: string, workflow = 'main'): string =>
  `[${workflow}]\n[[${workflow}.steps]]\nid = "say"\nexecutor = "shell"\ncommand = "echo ${word}"\n`;
const leadsTo = (template: string, rest = ''): string =>
  `[main]\n[[main.steps]]\nid = "go"\nexecutor = "expand"\ntemplate = "${template}"\n${rest}`;

function read(reference: string, values: Readonly<Record<string, string>> = {}): MeowSource {
  return meow.load(projectReader(project), findWorkflow(project, reference, null), values);
}

function compile(source: MeowSource): Compiled {
  return compileMeow({ ...source, given: null });
}

function filesOf(reference: string, values: Readonly<Record<string, string>> = {}): readonly string[] {
  return read(reference, values).others.files.map(({ file }) => file);
}

describe('the language of a YAML file', () => {
  test.each([
    ['workflow_id: w\nsteps: []', 'conductor'],
    ['# a comment\n---\n{ "workflow_id": "w", "steps": [] }', 'conductor'],
    ['states: { START: { prompt: x } }', 'raymond'],
    ['"states":\n  START: { prompt: x }', 'raymond'],
    ['{ states: { START: { prompt: workflow_id } } }', 'raymond'],
  ])('%j is told by its keys, in block and flow style', (text, language) => {
    write('w.yaml', text);
    expect(findWorkflow(project, 'w.yaml', null).language.name).toBe(language);
  });

  test('is asked for if it has none of these keys, with the names of the languages', () => {
    write('w.yaml', '{ a: { states: 1 } }');
    expect(() => findWorkflow(project, 'w.yaml', null)).toThrow(
      expect.objectContaining({ hint: expect.stringMatching(/Conductor.*Raymond.*--language/) as string }),
    );
  });
});

describe('a template is looked for', () => {
  const places = [
    'lib/tools.meow.toml',
    '.meow/templates/lib/tools.meow.toml',
    '.meow/workflows/lib/tools.toml',
    '~/.meow/templates/lib/tools.meow.toml',
    '~/.meow/workflows/lib/tools.meow.toml',
  ];

  test('beside the file that names it, then in the project, then at home', () => {
    write('a.meow.toml', leadsTo('lib/tools'));
    for (const place of places.toReversed()) {
      write(place, says(place));
      const { program, diagnostics } = compile(read('a.meow.toml'));
      expect(diagnostics).toEqual([]);
      expect(JSON.stringify(program)).toContain(`echo ${place}`);
    }
  });

  test('beside the file that names it, wherever that was found', () => {
    write('a.meow.toml', leadsTo('one'));
    write('.meow/templates/one.meow.toml', leadsTo('sub/two'));
    write('.meow/templates/sub/two.meow.toml', leadsTo('./three'));
    write('.meow/templates/sub/three.meow.toml', says('three'));
    write('three.meow.toml', says('wrong'));
    expect(filesOf('a.meow.toml')).toEqual([
      '.meow/templates/one.meow.toml',
      '.meow/templates/sub/two.meow.toml',
      '.meow/templates/sub/three.meow.toml',
    ]);
  });

  test('only there, where it is named by a path', () => {
    write('a.meow.toml', leadsTo('./tools'));
    write('.meow/templates/tools.meow.toml', says('no'));
    expect(compile(read('a.meow.toml')).diagnostics).toMatchObject([
      { code: 'unknown-template', hint: 'There is no file ./tools.meow.toml, relative to this one.' },
    ]);
  });

  test('in the library at last', () => {
    const [name = expect.fail()] = readdirSync(join(import.meta.dirname, '../../lib'))
      .filter((file) => file.endsWith('.meow.toml'))
      .map((file) => file.replace('.meow.toml', ''));
    write('a.meow.toml', leadsTo(`lib/${name}#x`));
    expect(filesOf('a.meow.toml')).toEqual([expect.stringMatching(`/lib/${name}.meow.toml$`)]);
    write('lib/x.meow.toml', '');
    write(`.meow/templates/lib/${name}.meow.toml`, says('mine', 'x'));
    expect(filesOf('a.meow.toml')).toEqual([`.meow/templates/lib/${name}.meow.toml`]);
  });

  test('not among folders', () => {
    write('a.meow.toml', leadsTo('tools'));
    write('tools.meow.toml/x', '');
    write('.meow/workflows/tools/journal.jsonl', '');
    expect(filesOf('a.meow.toml')).toEqual([]);
  });
});

test('files may lead to one another', () => {
  const branch = (template: string): string =>
    `[main]\n[[main.steps]]\nid = "b"\nexecutor = "branch"\ncondition = "true"\non_true = { template = "${template}" }\n`;
  write('a.meow.toml', branch('b'));
  write('b.meow.toml', branch('a#main'));
  const { program, diagnostics } = compile(read('a.meow.toml'));
  expect(diagnostics).toEqual([]);
  expect(Object.keys(program?.blocks ?? {})).toEqual(['main', 'b.meow.toml#main']);
});

test('a file that cannot be read as TOML tells of it once, however many lead to it', () => {
  write('a.meow.toml', `${leadsTo('b')}${leadsTo('b#x').replace('[main]\n', '').replace('go', 'again')}`);
  write('b.meow.toml', '[main\n');
  const source = read('a.meow.toml');
  for (const diagnostics of [compile(source).diagnostics, validateMeow(source)]) {
    expect(diagnostics).toMatchObject([{ code: 'syntax', span: { file: 'b.meow.toml' } }]);
  }
});

test('a file whose workflow nobody enters may be as wrong as it likes', () => {
  write('a.meow.toml', `${says('fine')}${leadsTo('b').replaceAll('main', 'other')}`);
  write('b.meow.toml', '[main\n');
  expect(compile(read('a.meow.toml')).diagnostics).toEqual([]);
});

test('a template that is named on the command line is read, and entered', () => {
  write('a.meow.toml', `${leadsTo('{{kind}}')}[main.variables]\nkind = { required = true }\n`);
  write('tools.meow.toml', says('tool', 'x'));
  const values = { kind: 'tools#x' };
  const source = read('a.meow.toml', values);
  const { program } = compileMeow({ ...source, given: ['kind'], values });
  expect(program?.blocks['main']?.steps[0]?.routes['done']).toMatchObject({
    target: { names: { 'tools#x': 'tools.meow.toml#x', main: 'main', '.main': 'main' } },
  });
});

test('a variable of the type file has the text of the file', () => {
  const steps = says('{{note}} {{other}}');
  write(
    'a.meow.toml',
    `${steps}[main.variables]\nnote = { type = "file" }\nother = { type = "file", default = "b.txt" }\n`,
  );
  write('notes/a.txt', 'first\n');
  write('b.txt', 'second');
  const { program, fileVariables } = compile(read('a.meow.toml'));
  const given = { texts: new Map([['note', 'notes/a.txt']]), values: new Map(), references: new Map() };
  const run = { id: 'r', at: 0, cwd: project.cwd, fileVariables };
  expect(resolveVariables(given, program ?? expect.fail(), run)).toEqual({
    variables: { note: 'first\n', other: 'second' },
    files: { note: join(project.cwd, 'notes/a.txt'), other: join(project.cwd, 'b.txt') },
  });
  rmSync(join(project.cwd, 'b.txt'));
  expect(() => resolveVariables(given, program ?? expect.fail(), run)).toThrow('cannot read b.txt (ENOENT)');
});

describe('a run is refused that starts an agent we cannot start', () => {
  const spawn = (rest: string): string => `[main]\n[[main.steps]]\nid = "s"\nexecutor = "spawn"\nagent = "a"\n${rest}`;
  const start = (text: string, forced: string | null = null, fallback = 'missing'): void => {
    write('a.meow.toml', text);
    const adapters = { forced, fallback: () => fallback };
    const { program } = compileMeow({
      ...read('a.meow.toml'),
      given: [],
      adapters,
    });
    refuseAdapters(program ?? expect.fail(), new Adapters(project), { channel: null, permissions: null });
  };

  test('by its own name, that of the workflow, or none', () => {
    expect(() => start(spawn('adapter = "nobody"'))).toThrow(
      'step s cannot start its agent: there is no adapter "nobody"',
    );
    expect(() => start(spawn('').replace('[main]', '[main]\ndefault_adapter = "none"'))).toThrow('adapter "none"');
    expect(() => start(spawn(''))).toThrow('adapter "missing"');
    expect(() => start(spawn('adapter = "sim"'), 'nobody')).toThrow('adapter "nobody"');
  });

  test('and not one whose agents are simulated', () => {
    start(spawn('adapter = "sim"'));
    start(spawn('adapter = "nobody"'), 'sim');
    start(spawn(''), null, 'sim');
    start(spawn('').replace('[main]', '[main]\ndefault_adapter = "sim"'));
    start(`${spawn('')}[main.variables]\ndefault_adapter = "sim"\n`);
  });
});
