import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import type { JsonMap } from '../../src/base/json.ts';
import { type Live, Rig, type RunObject } from '../rig/rig.ts';
import { KINDS, parsed } from '../rig/schema-kinds.ts';

const TEMPLATES = join(import.meta.dirname, '../../lib/init');

test('init creates an example that is valid and runs, and overwrites nothing', async () => {
  await using rig = await Rig.setup();
  const { stdout, code } = await rig.meow('init');
  expect(stdout).toBe(`wrote .meow/config.toml
wrote .meow/.gitignore
wrote .meow/templates/hello.meow.toml
wrote .meow/templates/hello.test.toml
wrote .meow/schemas (for editors)

Run the example:    meow run hello
Run its tests:      meow test .meow/templates
Read and change it: .meow/templates/hello.meow.toml
`);
  expect(code).toBe(0);
  expect((await rig.meow('validate', 'hello')).stdout).toBe('no problems\n');
  const run = await rig.meow('run', 'hello', '--var', "name=O'Hara", '--id', 'h');
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  expect((await rig.meow('logs', 'h', 'report')).stdout).toMatch(/^hello, O'Hara\nthere are \d+ files here\n$/);

  rig.write('.meow/config.toml', 'shell = "bash"\n');
  expect((await rig.meow('init')).stdout).toContain('kept  .meow/config.toml (exists)\n');
  expect(rig.read('.meow/config.toml')).toBe('shell = "bash"\n');
});

test.each(readdirSync(TEMPLATES).flatMap((file) => /^(.*)\.meow\.toml$/.exec(file)?.[1] ?? []))(
  'the files of the template %s name their schemas, which accept them',
  async (template) => {
    await using rig = await Rig.setup();
    expect((await rig.meow('init', '--template', template)).code).toBe(0);
    const files = ['config.toml', ...readdirSync(rig.path('.meow/templates')).map((file) => `templates/${file}`)];
    for (const file of files) {
      const text = rig.read(`.meow/${file}`);
      const [, location = ''] = /^#:schema (\S+)\n/.exec(text) ?? [];
      const schema = JSON.parse(rig.read(join('.meow', dirname(file), location))) as JsonMap;
      const accepts = new Ajv({ strict: false }).compile(schema);
      accepts(parsed('toml', text));
      expect([file, accepts.errors]).toEqual([file, null]);
    }
  },
);

test('init writes the schemas that meow schema prints, and replaces those of another version', async () => {
  await using rig = await Rig.setup();
  await rig.meow('init');
  const names = readdirSync(rig.path('.meow/schemas')).map((file) => file.replace(/\.json$/, ''));
  expect(names.toSorted()).toEqual(Object.keys(KINDS).toSorted());
  for (const name of names) {
    expect(rig.read(`.meow/schemas/${name}.json`)).toBe((await rig.meow('schema', name)).stdout);
  }
  expect((await rig.meow('init')).stdout).toContain('kept  .meow/schemas (for editors)\n');
  const schema = rig.read('.meow/schemas/sim.json');
  rig.write('.meow/schemas/sim.json', '{}');
  expect((await rig.meow('init')).stdout).toContain('wrote .meow/schemas (for editors)\n');
  expect(rig.read('.meow/schemas/sim.json')).toBe(schema);
});

test('init keeps only the files of runs out of git', async () => {
  await using rig = await Rig.setup();
  await rig.meow('init');
  await rig.meow('run', 'hello', '--id', 'h');
  rig.write('.meow/workflows/mine.meow.toml', '');
  rig.write('.meow/worktrees/w/file', '');
  expect((await rig.shell('git status --porcelain -uall')).stdout).toBe(
    [
      '.gitignore',
      'config.toml',
      ...Object.keys(KINDS)
        .toSorted()
        .map((name) => `schemas/${name}.json`),
      'templates/hello.meow.toml',
      'templates/hello.test.toml',
      'workflows/mine.meow.toml',
    ]
      .map((file) => `?? .meow/${file}\n`)
      .join(''),
  );
});

test('init reports why it cannot write', async (context) => {
  await using rig = await Rig.setup();
  const result = await rig.onDisk('ro', 'meow init');
  if (result === null) context.skip('nothing may be mounted here');
  expect(result).toEqual({
    stdout: '',
    stderr: `meow: cannot write ${rig.path('disk/.meow/config.toml')}: the file system is read-only (EROFS: ${rig.path('disk/.meow')})
  mount it writable, or run from a project that is
`,
    code: 2,
  });
});

test('init leaves no partial file on a full disk', async (context) => {
  await using rig = await Rig.setup();
  const result = await rig.onDisk('size=64k', '{ head -c 90000 /dev/zero > fill; meow init; } ; echo $?; find .meow');
  if (result === null) context.skip('nothing may be mounted here');
  expect(result).toMatchObject({ stdout: '2\n.meow\n', code: 0 });
  expect(result?.stderr).toContain('the disk is full');
});

test('an unknown template prints the list', async () => {
  await using rig = await Rig.setup();
  const { stdout, stderr, code } = await rig.meow('init', '--template', 'helo');
  expect({ stdout, code }).toEqual({ stdout: '', code: 2 });
  expect(stderr).toBe(`meow: unknown template "helo"
  did you mean hello? the templates are:
    hello      Shell steps in parallel and in sequence; no agents.
    gate       An agent writes; a person approves, or sends it back with a reason.
    parallel   A plan, one agent for each part in parallel, and a join.
    recovery   An agent crashes, another hangs, and a fresh one does the work.
    work-loop  One agent does task after task until none is left.
`);
  expect(rig.exists('.meow')).toBe(false);
});

describe('a template with agents runs immediately, with simulated agents', () => {
  /** Creates the template, validates it, and starts it. */
  async function begin(rig: Rig, template: string): Promise<Live> {
    const { stdout } = await rig.meow('init', '--template', template);
    expect(stdout).toContain(`wrote .meow/templates/${template}.sim.toml\n`);
    expect((await rig.meow('validate', template)).stdout).toBe('no problems\n');
    return rig.start('run', template, '--id', 't');
  }

  /** Runs it to the end. */
  async function run(rig: Rig, template: string): Promise<RunObject> {
    const live = await begin(rig, template);
    expect(await live.ended).toMatchObject({ stderr: '', code: 0 });
    expect(await rig.left()).toEqual([]);
    return rig.status('t');
  }

  test('work-loop: does every task of the list', async () => {
    await using rig = await Rig.setup();
    rig.write('TASKS', "it's $(first)\nsecond\n");
    const { counts } = await run(rig, 'work-loop');
    expect(rig.read('DONE')).toBe("1: it's $(first)\n2: second\n");
    expect(rig.read('TASKS')).toBe('');
    expect(counts).toMatchObject({ failed: 0, skipped: 0 });
  });

  test('work-loop: creates a sample list if there is none', async () => {
    await using rig = await Rig.setup();
    await run(rig, 'work-loop');
    expect(rig.read('DONE')).toBe('1: write a poem\n2: let it rhyme\n3: read it aloud\n');
  });

  test('parallel: starts an agent for each part of the plan, two at a time', async () => {
    await using rig = await Rig.setup();
    const { steps } = await run(rig, 'parallel');
    expect(['0', '1', '2'].map((part) => steps[`build.${part}.work`]?.status)).toEqual(['done', 'done', 'done']);
    const decisions = rig.decisions('t');
    const third = decisions.indexOf('step-started build.2.start');
    expect(
      decisions.slice(0, third).filter((made) => /^step-done build\.[01]\.stop$/.test(made)).length,
    ).toBeGreaterThan(0);
    expect((await rig.meow('logs', 't', 'show')).stdout).toBe('Three parts, and they fit.\n');
  });

  test('gate: a rejection sends the text back, an approval publishes it', async () => {
    await using rig = await Rig.setup();
    const live = await begin(rig, 'gate');
    await rig.decided('t', 'gate-asked draft.1.until');
    await rig.meow('reject', 't', 'review', '--reason', 'too short');
    await rig.decided('t', 'gate-asked draft.2.until');
    expect((await rig.meow('show', 't', 'draft.2.write')).stdout).toContain('so far: too short');
    expect((await rig.meow('approve', 't', 'review', '--as', 'Ann')).code).toBe(0);
    expect((await live.ended).code).toBe(0);
    expect((await rig.meow('logs', 't', 'publish')).stdout).toBe('Version 2 is out. (Draft 2)\napproved by Ann\n');
  });

  test('recovery: does the work after a crash and a hang', async () => {
    await using rig = await Rig.setup();
    const { steps } = await run(rig, 'recovery');
    expect(steps['work']?.status).toBe('failed');
    expect(steps['work.recover.1.retry']?.status).toBe('failed');
    expect((await rig.meow('logs', 't', 'show')).stdout).toBe('It was a quiet month.\n');
  });

  test('every template is tested', () => {
    const names = readdirSync(TEMPLATES).flatMap((file) => /^(.*)\.sim\.toml$/.exec(file)?.[1] ?? []);
    const tried = readFileSync(import.meta.filename, 'utf8').matchAll(/(?:run|begin)\(rig, '([\w-]+)'\)/g);
    expect([...new Set([...tried].map(({ 1: name = '' }) => name))].toSorted()).toEqual(names.toSorted());
  });
});

test('help lists every command, and each has its own help', async () => {
  await using rig = await Rig.setup();
  const { stdout, stderr, code } = await rig.meow('help');
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(await rig.meow()).toEqual({ stdout, stderr: '', code: 0 });
  expect((await rig.meow('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  for (const name of [
    'run',
    'resume',
    'stop',
    'status',
    'list',
    'show',
    'trace',
    'logs',
    'why',
    'init',
    'validate',
    'graph',
  ]) {
    expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'));
  }
  expect((await rig.meow('help', 'run')).stdout).toMatch(
    /^Usage: meow run PATH\[#WORKFLOW\] \[FLAGS\]\n[^]*Examples:\n/,
  );
  expect((await rig.meow('logs', '--help')).stdout).toMatch(/^Usage: meow logs ID \[STEP\]/);
});
