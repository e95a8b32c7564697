// A run keeps the workflow that it began with. If the text has changed since, resuming says so.

import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ConductorRig, gate, validate, work } from '../fixtures/conductor/rig.ts';
import { Rig, shellStep } from '../rig/rig.ts';

const WORKFLOW = `[main]
${shellStep('check', 'test -e fixed && echo checked >> ran')}
[[main.steps]]
id = "rest"
executor = "expand"
template = "./rest"
needs = ["check"]
`;
const REST = `[main]\n${shellStep('end', 'echo as it began >> ran')}`;
const GOES_ON = 'it continues with the workflow that it started with; to use the new text: meow resume r --reload\n';

async function failed(): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  rig.write('rest.meow.toml', REST);
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r')).code).toBe(1);
  return rig;
}

test('an unchanged workflow is not mentioned, wherever the run is resumed from', async () => {
  await using rig = await failed();
  rig.write('w.meow.toml', WORKFLOW);
  rig.write('below/fixed', '');
  expect(await rig.meowIn(rig.path('below'), 'resume', 'r')).toMatchObject({ stderr: '', code: 1 });
});

test('a changed file is named in one line on stderr, and the run goes on as it began', async () => {
  await using rig = await failed();
  rig.write('rest.meow.toml', REST.replace('as it began', 'changed'));
  rig.write('fixed', '');
  const { stderr, code } = await rig.meow('resume', 'r', '--json');
  expect(stderr).toBe(`meow: rest.meow.toml has changed since the run began; ${GOES_ON}`);
  expect(code).toBe(0);
  expect(rig.read('ran')).toBe('checked\nas it began\n');
  expect((await rig.meow('resume', 'r')).stderr, 'nothing is resumed').not.toContain('has changed');
});

test('several changed or deleted files are named together, also by a detached resume', async () => {
  await using rig = await failed();
  rig.write('w.meow.toml', `${WORKFLOW}\n# more\n`);
  rmSync(rig.path('rest.meow.toml'));
  const said = `meow: w.meow.toml and rest.meow.toml have changed since the run began; ${GOES_ON}`;
  expect((await rig.meow('resume', 'r')).stderr).toBe(said);
  expect(await rig.meow('resume', 'r', '--detach')).toMatchObject({ stderr: said, stdout: 'r\n', code: 0 });
});

test('states of a folder count, and other files in it do not', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.md', 'Begin.\n<goto>NEXT.md</goto>');
  rig.write('flow/NEXT.md', '<ask next="END.md">Go on?</ask>');
  rig.write('flow/END.md', '<result>over</result>');
  rig.write('flow.sim.toml', '[[on]]\ndo = [{ say = "<ask next=\\"END.md\\">Go on?</ask>" }]\n');
  expect((await rig.meow('run', 'flow', '--adapter', 'sim', '--id', 'r', '--no-wait')).code).toBe(3);
  rig.write('flow/notes.txt', 'notes');
  expect((await rig.meow('resume', 'r', '--no-wait')).stderr).toBe('');
  rig.write('flow/END.md', '<result>changed</result>');
  expect((await rig.meow('resume', 'r', '--no-wait')).stderr).toContain('meow: flow/END.md has changed');
});

test('prompts of a repository workflow count, and files that name its validators do not', async () => {
  const prompt = '---\nprompt_id: do.it\nversion: 1\nrole: task\n---\nDo it.\n';
  await using made = await ConductorRig.setup({
    'prompts/do.it.v1.md': prompt,
    'package.json': '{ "scripts": { "test": "true" } }',
  });
  const { rig } = made;
  made.workflow({
    ask: gate({ gate_approved: 'work', gate_rejected: 'STOP' }),
    work: { ...work('check'), prompt: 'do.it.v1' },
    check: validate('STOP', ['tests']),
  });
  expect(await made.run('--no-wait')).toMatchObject({ stderr: '', code: 3 });
  rig.write('package.json', '{ "scripts": { "test": "false" } }');
  expect((await rig.meow('resume', 'r', '--no-wait')).stderr).toBe('');
  rig.write('prompts/do.it.v1.md', `${prompt}Well.\n`);
  expect((await rig.meow('resume', 'r', '--no-wait')).stderr).toContain('meow: prompts/do.it.v1.md has changed');
});

test('a changed script takes effect, and a line of its own says so', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.md', '<goto>WORK.sh</goto>');
  rig.write('flow/WORK.sh', `test -e fixed && echo '<result>old</result>'`);
  rig.write('flow.sim.toml', '[[on]]\ndo = [{ say = "<goto>WORK.sh</goto>" }]\n');
  expect((await rig.meow('run', 'flow', '--adapter', 'sim', '--id', 'r')).code).toBe(1);
  rig.write('flow/WORK.sh', `echo '<result>new</result>'`);
  rig.write('flow/START.md', '<goto>OTHER.sh</goto>');
  const { stderr, stdout } = await rig.meow('resume', 'r');
  expect(stderr).toBe(
    `meow: flow/START.md has changed since the run began; ${GOES_ON}` +
      'meow: flow/WORK.sh has changed since the run began; scripts are read when they run, so the new text takes effect\n',
  );
  expect(stdout).toMatch(/^result: new$/m);
});

test('a changed script of simulated agents is named, and the run goes on with the one it began with', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.md', '<goto>NEXT.md</goto>');
  rig.write('flow/NEXT.md', '<ask next="END.md">Go on?</ask>');
  rig.write('flow/END.md', '<result>over</result>');
  const script = (says: string): string => `[[on]]\ndo = [{ say = ${JSON.stringify(says)} }]\n`;
  rig.write('flow.sim.toml', script('<ask next="END.md">Go on?</ask>'));
  expect((await rig.meow('run', 'flow', '--adapter', 'sim', '--id', 'r', '--no-wait')).code).toBe(3);
  rig.write('flow.sim.toml', script('<result>other</result>'));
  expect((await rig.meow('resume', 'r', '--no-wait')).stderr).toBe(
    `meow: flow.sim.toml has changed since the run began; ${GOES_ON}`,
  );
});
