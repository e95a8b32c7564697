import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';

import { checkProgram } from '../ir/check.ts';
import { Adapters } from './adapters.ts';
import { type CompileRequest, compileWorkflow, validateWorkflow } from './compile.ts';
import type { Project } from './project.ts';
import { readSettings } from './sources.ts';

const base = realpathSync(mkdtempSync(join(tmpdir(), 'meow-compile-')));
afterAll(() => rmSync(base, { recursive: true, force: true }));

let count = 0;

/** A project with these files, and a request to compile one of them. */
function request(reference: string, files: Readonly<Record<string, string>>): CompileRequest {
  const cwd = join(base, String((count += 1)));
  const meow = join(cwd, '.meow');
  const project: Project = { cwd, meow, exists: true, runs: join(meow, 'workflows'), shared: join(cwd, 'home/.meow') };
  for (const [file, text] of Object.entries({ '.meow/config.toml': '[validators.ok]\ncommand = "true"\n', ...files })) {
    mkdirSync(dirname(join(cwd, file)), { recursive: true });
    writeFileSync(join(cwd, file), text);
  }
  const { config } = readSettings(project);
  return { project, reference, language: null, config, adapters: new Adapters(project), adapter: null };
}

const says = (more = ''): string => `[main]\n[[main.steps]]\nid = "say"\nexecutor = "shell"\ncommand = "true"\n${more}`;
const enters = (template: string): string =>
  `[main]\n[[main.steps]]\nid = "go"\nexecutor = "expand"\ntemplate = "${template}"\n`;
const calls = (path: string): string => `echo '<call-workflow return="END.sh">${path}</call-workflow>'\n`;
const conducts = (to: string): string => `workflow_id: c
version: 1
description: Enters another workflow.
entry_step: begin
steps:
  - id: begin
    opcode: RUN_VALIDATION
    run: [ok]
    routes: { completed: ${to}, error: STOP, killed_timeout: STOP, killed_idle: STOP, killed_policy: STOP }
`;

describe('a route that cannot enter what it names is refused', () => {
  test.each([
    ['./gone.yaml', 'missing-target', 'there is no workflow ./gone.yaml'],
    ['./notes.txt', 'missing-target', 'there is no workflow ./notes.txt'],
    ['./broken.meow.toml', 'missing-target', expect.stringContaining('broken.meow.toml has problems: ')],
    ['"./fine.meow.toml#gone"', 'missing-target', expect.stringContaining('fine.meow.toml has problems: ')],
    [
      './needs.meow.toml',
      'missing-input',
      './needs.meow.toml needs the variable "tag", and the route does not pass it',
    ],
    ['./c.yaml', 'duplicate-id', expect.stringContaining('./c.yaml has a step "begin" as well')],
    ['{ to: ./fine.meow.toml, return: gone }', 'missing-target', expect.stringContaining('leads to no step: "gone"')],
    ['{ to: STOP, return: begin }', 'unknown-key', 'the route "completed" has no key "return"'],
  ])('%s', (route, code, message) => {
    const files = {
      'c.yaml': conducts(route),
      'notes.txt': 'x',
      'fine.meow.toml': says(),
      'broken.meow.toml': says().replace('shell', 'shall'),
      'needs.meow.toml': says('[main.variables]\ntag = { required = true }\n'),
    };
    expect(validateWorkflow(request('c.yaml', files)).diagnostics).toMatchObject([{ code, message }]);
  });

  test('an evaluation may enter what it allows, and only where a step of another opcode may stand', () => {
    const routes = (unsafe: string): string =>
      `routes: { success: ./fine.meow.toml, partial: begin, blocked: STOP, unsafe: ${unsafe}, needs_human: STOP }`;
    const text = (unsafe: string, allowed: string): string =>
      `${conducts('judge')}  - id: judge
    opcode: EVALUATE
    evaluator: { command: "true" }
    allowed_next_steps: [begin${allowed}]
    ${routes(unsafe)}
`;
    const codes = (c: string): readonly string[] =>
      validateWorkflow(request('c.yaml', { 'c.yaml': c, 'fine.meow.toml': says() })).diagnostics.map(
        ({ code }) => code,
      );
    expect(codes(text('STOP', ', ./fine.meow.toml'))).toEqual([]);
    expect(codes(text('STOP', ''))).toEqual(['target-not-allowed']);
    expect(codes(text('./fine.meow.toml', ', ./fine.meow.toml'))).toEqual(['illegal-target']);
  });
});

test('what is internal stays so, however it is named', () => {
  const { diagnostics } = validateWorkflow(
    request('a.meow.toml', {
      'a.meow.toml': enters('./b.meow.toml'),
      'b.meow.toml': `internal = true\n${says()}`.replace('internal = true\n[main]', '[main]\ninternal = true'),
    }),
  );
  expect(diagnostics).toMatchObject([{ code: 'internal-workflow' }]);
});

test('a state may call one workflow of a MEOW file', () => {
  const files = {
    'states/START.sh': calls('../b.meow.toml#beta'),
    'states/END.sh': 'echo "<result>x</result>"\n',
    'b.meow.toml': says().replaceAll('main', 'beta'),
  };
  const { program, diagnostics } = compileWorkflow(request('states', files), null);
  expect(diagnostics).toEqual([]);
  expect(program?.machines['main']?.workflows).toEqual({ '../b.meow.toml#beta': 'b.meow.toml#beta' });
});

test('a folder without a start is no template', () => {
  const files = { 'a.meow.toml': enters('build'), 'build/notes.md': 'x' };
  expect(validateWorkflow(request('a.meow.toml', files)).diagnostics).toMatchObject([{ code: 'unknown-template' }]);
});

test('one workflow that is entered in two ways is there twice: its failure means another thing', () => {
  const wanted = request('a.meow.toml', {
    'a.meow.toml': `${enters('./c.yaml')}${enters('./states').replace('[main]\n', '').replace('go', 'also')}`,
    'states/START.sh': calls('../c.yaml'),
    'states/END.sh': 'echo "<result>x</result>"\n',
    'c.yaml': conducts('STOP'),
  });
  const { program, diagnostics } = compileWorkflow(wanted, null);
  expect(diagnostics).toEqual([]);
  expect(checkProgram(program ?? expect.fail())).toEqual([]);
  const ends = Object.values(program?.blocks ?? {}).flatMap(({ name, steps }) =>
    /STOP!/.test(name) ? [[name, steps[0]?.routes['done']?.kind]] : [],
  );
  expect(ends).toEqual([
    ['c.yaml#STOP!', 'fail'],
    ['c.yaml#STOP!_2', 'return'],
  ]);
});

test('what is wrong with a workflow in a circle is told, and what names it is refused too', () => {
  const wanted = request('states', {
    'states/START.sh': `${calls('../a.meow.toml')}${calls('../b.meow.toml')}`,
    'states/END.sh': 'echo "<result>x</result>"\n',
    // Each enters the other through states of its own; a has a mistake.
    'a.meow.toml': `${enters('./to-b')}[[main.steps]]\nid = "x"\nexecutor = "shall"\n`,
    'b.meow.toml': enters('./to-a'),
    'to-a/START.sh': calls('../a.meow.toml'),
    'to-a/END.sh': 'echo "<result>x</result>"\n',
    'to-b/START.sh': calls('../b.meow.toml'),
    'to-b/END.sh': 'echo "<result>x</result>"\n',
  });
  const { program, diagnostics } = compileWorkflow(wanted, null);
  expect(diagnostics.map(({ message }) => message)).toContainEqual(expect.stringContaining('a.meow.toml has problems'));
  // A script may say something else: the run begins all the same, and nothing in it names what is not there.
  expect(program === null ? [] : checkProgram(program)).toEqual([]);
});

test('a validator may have a name that every object has', () => {
  const text = conducts('STOP').replace('[ok]', '[constructor]');
  const { diagnostics } = validateWorkflow(request('c.yaml', { 'c.yaml': text }));
  expect(diagnostics.map(({ message }) => message)).toEqual(['there is no validator "constructor"']);
});
