// Workflows of one language as parts of another: one run, one journal, one graph.

import { describe, expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

const STEP = (id: string, executor: string, rest: string): string =>
  `[[main.steps]]\nid = "${id}"\nexecutor = "${executor}"\n${rest}\n`;

/** States that are scripts need no agent. */
function writeMachine(rig: Rig): void {
  rig.write('shout/START.sh', 'echo "<goto input=\\"$word!\\">END.sh</goto>"\n');
  rig.write('shout/END.sh', 'echo "<result>$RAYMOND_INPUT</result>"\n');
}

test('a MEOW workflow expands a folder of states, and gets its result as the output `result`', async () => {
  await using rig = await Rig.setup();
  writeMachine(rig);
  const shown = `command = 'printf %s {{say.outputs.result}} > said'\nneeds = ["say"]`;
  rig.write(
    'w.meow.toml',
    `[main]\n${STEP('say', 'expand', 'template = "./shout"\nvariables = { word = "miau" }')}${STEP('show', 'shell', shown)}`,
  );
  expect(await rig.meow('validate', 'w.meow.toml')).toMatchObject({ stdout: 'no problems\n', code: 0 });
  expect(await rig.meow('run', 'w.meow.toml', '--id', 'c')).toMatchObject({ stderr: '', code: 0 });
  expect(rig.read('said')).toBe('miau!');
  const { steps } = await rig.status('c');
  expect(Object.keys(steps)).toEqual(['say', 'show', 'say.main.1.shout-START', 'say.main.2.shout-END']);
  expect(steps['say']).toMatchObject({ status: 'done', outputs: { result: 'miau!' } });
});

test('a branch and a foreach can also enter states, with a separate machine for each iteration', async () => {
  await using rig = await Rig.setup();
  writeMachine(rig);
  const each = `items = '["a", "b"]'\nitem_var = "word"\ntemplate = "./shout"`;
  const branch = `condition = "true"\non_true = { template = "shout", variables = { word = "c" } }`;
  rig.write('w.meow.toml', `[main]\n${STEP('each', 'foreach', each)}${STEP('maybe', 'branch', branch)}`);
  expect(await rig.meow('run', 'w.meow.toml', '--id', 'c')).toMatchObject({ stderr: '', code: 0 });
  const { steps } = await rig.status('c');
  expect(steps['maybe']?.outputs).toMatchObject({ result: 'c!' });
  expect(steps['each.1.main.2.shout-END']).toMatchObject({ status: 'done' });
});

test('a round of a loop can be a folder of states, whose result is that of the loop', async () => {
  await using rig = await Rig.setup();
  writeMachine(rig);
  const loop = `until = "test {{round}} = 2"\nmax_rounds = 3\ntemplate = "./shout"\nvariables = { word = "{{round}}" }`;
  const shown = `command = 'printf %s {{say.outputs.result}} > said'\nneeds = ["say"]`;
  rig.write('w.meow.toml', `[main]\n${STEP('say', 'loop', loop)}${STEP('show', 'shell', shown)}`);
  expect(await rig.meow('validate', 'w.meow.toml')).toMatchObject({ stdout: 'no problems\n', code: 0 });
  expect(await rig.meow('run', 'w.meow.toml', '--id', 'c')).toMatchObject({ stderr: '', code: 0 });
  expect(rig.read('said')).toBe('2!');
  expect((await rig.status('c')).steps['say.2.main.2.shout-END']).toMatchObject({ status: 'done' });
});

test('problems of the states are reported where the states are named', async () => {
  await using rig = await Rig.setup();
  rig.write('bad/START.md', '---\nallowed_targets: {goto: [NOWHERE.md]}\n---\nGo on.\n');
  rig.write('w.meow.toml', `[main]\n${STEP('a', 'expand', 'template = "./bad"')}`);
  const { stdout, code } = await rig.meow('validate', 'w.meow.toml');
  expect(code).toBe(1);
  expect(stdout).toContain('w.meow.toml:5:12: error foreign-workflow: bad has problems: ');
  expect(stdout).toContain('meow validate bad');
});

test('a state calls a MEOW workflow, and continues when it is done', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.sh', `echo '<call-workflow return="END.sh">../build.meow.toml</call-workflow>'\n`);
  rig.write('flow/END.sh', 'echo "<result>built</result>"\n');
  rig.write('build.meow.toml', `[main]\n${STEP('make', 'shell', `command = "echo x > made"`)}`);
  expect(await rig.meow('run', 'flow', '--id', 'c')).toMatchObject({ code: 0 });
  expect(rig.read('made')).toBe('x\n');
  expect(await rig.status('c')).toMatchObject({ result: 'built' });
});

test('data of a workflow may use our key names, and is passed unchanged', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.sh', `echo '<call-workflow return="END.sh">../sub.meow.toml</call-workflow>'\n`);
  rig.write('flow/END.sh', 'echo "<result>told</result>"\n');
  const env = 'env = { block = "plain", steering = "main" }';
  const command = `command = 'printf "%s %s %s" "$block" "$steering" {{place}} > seen'`;
  const place = 'place = { default = { block = "B7", kind = "stop", verdict = "done" } }';
  rig.write('sub.meow.toml', `[main]\n${STEP('say', 'shell', `${command}\n${env}`)}[main.variables]\n${place}\n`);
  expect(await rig.meow('run', 'flow', '--id', 'c')).toMatchObject({ code: 0 });
  expect(rig.read('seen')).toBe('plain main {"block":"B7","kind":"stop","verdict":"done"}');
});

test('a state calls a Conductor workflow and gets its verdict, and the run continues', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.sh', `echo '<call-workflow return="END.sh">../check.yaml</call-workflow>'\n`);
  rig.write('flow/END.sh', 'echo "<result>$RAYMOND_RESULT</result>"\n');
  rig.write('.meow/config.toml', '[validators.ok]\ncommand = "true"\n');
  rig.write(
    'check.yaml',
    `workflow_id: check
version: 1
description: Looks whether all is well.
entry_step: check
steps:
  - id: check
    opcode: RUN_VALIDATION
    run: [ok]
    routes: { completed: STOP, error: STOP, killed_timeout: STOP, killed_idle: STOP, killed_policy: STOP }
`,
  );
  expect(await rig.meow('run', 'flow', '--id', 'c')).toMatchObject({ code: 0 });
  const status = await rig.status('c');
  expect(status).toMatchObject({ result: JSON.stringify({ verdict: 'success', reason: null }) });
  expect(status.steps['check#1']).toMatchObject({ status: 'done', outcome: 'completed' });
});

/** A Conductor workflow whose first step leads to a target, followed by a last step if there is one. */
function conductorText(first: string, target: string, last: string | null): string {
  const step = (id: string, to: string): string =>
    `  - id: ${id}
    opcode: RUN_VALIDATION
    run: [${id}]
    routes: { completed: ${to}, error: STOP, killed_timeout: STOP, killed_idle: STOP, killed_policy: STOP }
`;
  const head = `workflow_id: ${first}\nversion: 1\ndescription: A part.\nentry_step: ${first}\nsteps:\n`;
  return `${head}${step(first, target)}${last === null ? '' : step(last, 'STOP')}`;
}

function writeValidators(rig: Rig, commands: Readonly<Record<string, string>>): void {
  const tables = Object.entries(commands).map(([id, command]) => `[validators.${id}]\ncommand = "${command}"\n`);
  rig.write('.meow/config.toml', tables.join(''));
}

describe('every language can enter every language, and continues afterwards', () => {
  /** The entered workflow creates the file `inner`. */
  const INNER = {
    meow: {
      path: 'inner.meow.toml',
      files: { 'inner.meow.toml': `[main]\n${STEP('work', 'shell', 'command = "echo meow > inner"')}` },
    },
    raymond: { path: 'inner', files: { 'inner/START.sh': 'echo raymond > inner-file\necho "<result>x</result>"\n' } },
    conductor: { path: 'inner.yaml', files: { 'inner.yaml': conductorText('work', 'STOP', null) } },
  };
  /** The entering workflow creates the file `outer` afterwards. */
  const OUTER = {
    meow: (path: string) => ({
      run: 'outer.meow.toml',
      files: {
        'outer.meow.toml': `[main]\n${STEP('enter', 'expand', `template = "./${path}"`)}${STEP('after', 'shell', `command = "echo meow > outer"\nneeds = ["${path.endsWith('.toml') ? 'enter.*' : 'enter'}"]`)}`,
      },
    }),
    raymond: (path: string) => ({
      run: 'outer',
      files: {
        'outer/START.sh': `echo '<call-workflow return="END.sh">../${path}</call-workflow>'\n`,
        'outer/END.sh': 'echo raymond > outer-file\necho "<result>y</result>"\n',
      },
    }),
    conductor: (path: string) => ({
      run: 'outer.yaml',
      files: { 'outer.yaml': conductorText('begin', `{ to: ./${path}, return: after }`, 'after') },
    }),
  };
  /** Files that states create do not have the names of their folders. */
  const left = (where: 'inner' | 'outer', language: string): string =>
    language === 'raymond' ? `${where}-file` : where;
  const IDS: Readonly<Record<string, string>> = {
    'meow > meow': 'enter.work',
    'meow > raymond': 'enter.main.1.inner-START',
    'meow > conductor': 'enter.work#1',
    'raymond > meow': 'main.1.START.work',
    'raymond > raymond': 'main.2.inner-START',
    'raymond > conductor': 'work#1',
    'conductor > meow': 'begin#1.next.work',
    'conductor > raymond': 'main.2.inner-START',
    'conductor > conductor': 'work#1',
  };

  test.each(
    (['meow', 'raymond', 'conductor'] as const).flatMap((from) =>
      (['meow', 'raymond', 'conductor'] as const).map((to) => ({ name: `${from} > ${to}`, from, to })),
    ),
  )('$name', async ({ name, from, to }) => {
    await using rig = await Rig.setup();
    writeValidators(rig, { work: 'echo conductor > inner', begin: 'true', after: 'echo conductor > outer' });
    const { run, files } = OUTER[from](INNER[to].path);
    for (const [file, text] of Object.entries({ ...INNER[to].files, ...files })) rig.write(file, text);
    expect(await rig.meow('validate', run)).toMatchObject({ stdout: 'no problems\n', code: 0 });
    expect(await rig.meow('run', run, '--id', 'c')).toMatchObject({ stderr: '', code: 0 });
    expect(rig.read(left('inner', to))).toBe(`${to}\n`);
    expect(rig.read(left('outer', from))).toBe(`${from}\n`);
    const { steps } = await rig.status('c');
    expect(steps[IDS[name] ?? '']).toMatchObject({ status: 'done' });
  });
});

describe('a Conductor workflow that ends with a failure', () => {
  const setup = async (): Promise<Rig> => {
    const rig = await Rig.setup();
    writeValidators(rig, { work: 'false', begin: 'true', after: 'echo x > after' });
    rig.write('inner.yaml', conductorText('work', 'STOP', null));
    return rig;
  };

  test('fails the MEOW step that entered it, which may continue', async () => {
    await using rig = await setup();
    const after = STEP('after', 'shell', 'command = "echo x > after"\nneeds = ["enter"]');
    const enter = (more: string): string => STEP('enter', 'expand', `template = "./inner.yaml"\n${more}`);
    rig.write('w.meow.toml', `[main]\n${enter('')}${after}`);
    expect(await rig.meow('run', 'w.meow.toml', '--id', 'c')).toMatchObject({ code: 1 });
    const { steps } = await rig.status('c');
    expect(steps['enter']).toMatchObject({ status: 'failed', error: { type: 'child_failed' } });
    expect(steps['enter.STOP#1']).toMatchObject({
      status: 'failed',
      error: { message: 'the workflow ended as a failure' },
    });
    expect(rig.exists('after')).toBe(false);
    rig.write('w.meow.toml', `[main]\n${enter('on_error = "continue"')}${after}`);
    expect(await rig.meow('run', 'w.meow.toml', '--id', 'd')).toMatchObject({ code: 0 });
    expect(rig.exists('after')).toBe(true);
  });

  test('fails the Conductor run that entered it', async () => {
    await using rig = await setup();
    rig.write('outer.yaml', conductorText('begin', '{ to: ./inner.yaml, return: after }', 'after'));
    expect(await rig.meow('run', 'outer.yaml', '--id', 'c')).toMatchObject({ code: 1 });
    expect(rig.exists('after')).toBe(false);
    rig.write('outer.yaml', conductorText('begin', './inner.yaml', null));
    expect(await rig.meow('run', 'outer.yaml', '--id', 'd')).toMatchObject({ code: 1 });
  });

  test('reports the failure to the state that called it', async () => {
    await using rig = await setup();
    rig.write('flow/START.sh', `echo '<call-workflow return="END.sh">../inner.yaml</call-workflow>'\n`);
    rig.write('flow/END.sh', 'echo "<result>$RAYMOND_RESULT</result>"\n');
    expect(await rig.meow('run', 'flow', '--id', 'c')).toMatchObject({ code: 0 });
    expect(await rig.status('c')).toMatchObject({ result: JSON.stringify({ verdict: 'failure', reason: null }) });
  });
});

test('workflows of three languages may enter each other in a cycle', async () => {
  await using rig = await Rig.setup();
  writeValidators(rig, { begin: 'echo conductor >> seen' });
  rig.write('a.meow.toml', `[main]\n${STEP('go', 'expand', 'template = "./states"')}`);
  const turn = `echo raymond >> seen
if [ "$(grep -c raymond seen)" -gt 2 ]; then echo "<result>enough</result>"
else echo '<call-workflow return="END.sh">../c.yaml</call-workflow>'; fi
`;
  rig.write('states/START.sh', turn);
  rig.write('states/END.sh', 'echo "<result>back</result>"\n');
  rig.write('c.yaml', conductorText('begin', './a.meow.toml', null));
  expect(await rig.meow('validate', 'a.meow.toml', 'states', 'c.yaml')).toMatchObject({ code: 0 });
  expect(await rig.meow('run', 'a.meow.toml', '--id', 'c')).toMatchObject({ stderr: '', code: 0 });
  expect(rig.read('seen').trim().split('\n')).toEqual(['raymond', 'conductor', 'raymond', 'conductor', 'raymond']);
});

test('a route of a Conductor workflow passes variables, and may enter one workflow of a file', async () => {
  await using rig = await Rig.setup();
  writeValidators(rig, { begin: 'true' });
  const steps = STEP('say', 'shell', "command = 'echo {{tag}} > said'").replaceAll('main', 'release');
  rig.write('build.meow.toml', `[release]\n${steps}[release.variables]\ntag = { required = true }\n`);
  const route = '{ to: "./build.meow.toml#release", variables: { tag: v1 } }';
  rig.write('c.yaml', conductorText('begin', route, null));
  expect(await rig.meow('run', 'c.yaml', '--id', 'c')).toMatchObject({ code: 0 });
  expect(rig.read('said')).toBe('v1\n');
});
