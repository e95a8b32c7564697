// Workflows of one language as parts of one of another: one run, one journal, one graph.

import { expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

const STEP = (id: string, executor: string, rest: string): string =>
  `[[main.steps]]\nid = "${id}"\nexecutor = "${executor}"\n${rest}\n`;

/** States that are scripts need no agent. */
function writeMachine(rig: Rig): void {
  rig.write('shout/START.sh', 'echo "<goto input=\\"$word!\\">END.sh</goto>"\n');
  rig.write('shout/END.sh', 'echo "<result>$RAYMOND_INPUT</result>"\n');
}

test('a MEOW workflow expands a folder of states, and has what it hands back as the output `result`', async () => {
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

test('a branch and a foreach enter states as well, each iteration a machine of its own', async () => {
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

test('what is wrong with the states is said where they are named', async () => {
  await using rig = await Rig.setup();
  rig.write('bad/START.md', '---\nallowed_targets: {goto: [NOWHERE.md]}\n---\nGo on.\n');
  rig.write('w.meow.toml', `[main]\n${STEP('a', 'expand', 'template = "./bad"')}`);
  const { stdout, code } = await rig.meow('validate', 'w.meow.toml');
  expect(code).toBe(1);
  expect(stdout).toContain('w.meow.toml:5:12: error foreign-workflow: bad has problems: ');
  expect(stdout).toContain('meow validate bad');
});

test('a state calls a MEOW workflow, and goes on when that is done', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.sh', `echo '<call-workflow return="END.sh">../build.meow.toml</call-workflow>'\n`);
  rig.write('flow/END.sh', 'echo "<result>built</result>"\n');
  rig.write('build.meow.toml', `[main]\n${STEP('make', 'shell', `command = "echo x > made"`)}`);
  expect(await rig.meow('run', 'flow', '--id', 'c')).toMatchObject({ code: 0 });
  expect(rig.read('made')).toBe('x\n');
  expect(await rig.status('c')).toMatchObject({ result: 'built' });
});

test('what a workflow calls its data is no name of ours: it arrives as it is written', async () => {
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

test('a state calls a Conductor workflow, and is told how that ended, which is not the end of the run', async () => {
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
