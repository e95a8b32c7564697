// What the page of `meow ui` can do besides deciding gates: steer a run, and start one from a form.

import { expect, test } from 'vitest';
import type { Done, Refusal, WorkflowsDocument } from '../../src/web/protocol.ts';
import { Rig, shellStep, until, waitingStep } from '../rig/rig.ts';
import { type Response, Ui } from '../rig/ui.ts';

const G = { project: 'project', run: 'g' };

test('a run is paused when its step has finished, resumed, stopped and retried', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${waitingStep('one')}${waitingStep('two', 'needs = ["one"]')}`);
  const first = rig.start('run', 'w.meow.toml', '--id', 'g');
  await rig.appears('one.began');
  await using ui = await Ui.start(rig);
  expect(await done(ui.post('/do/pause', G))).toEqual({ note: 'g pauses when its running steps have finished' });
  rig.write('one.go', '');
  expect((await first.ended).code).toBe(3);
  expect(await refused(ui.post('/do/pause', G))).toMatchObject({ cure: 'resume it: meow resume g' });

  await done(ui.post('/do/resume', G));
  await rig.appears('two.began');
  await done(ui.post('/do/stop', { ...G, force: true }));
  await until(() => rig.decisions('g').includes('run-ended'), 'the run to stop');
  expect((await rig.status('g')).status).toBe('stopped');

  rig.write('two.go', '');
  await done(ui.post('/do/retry', G));
  await until(() => rig.exists('ran') && rig.read('ran') === 'one\ntwo\n', 'the second step');
  await until(() => rig.decisions('g').filter((each) => each === 'run-ended').length === 3, 'the end of the run');
  expect((await rig.status('g')).status).toBe('done');
  expect(await refused(ui.post('/do/stop', G))).toEqual({
    message: 'run g has ended: it is done',
    cure: 'meow status g shows it',
  });
});

test('workflows are listed with their variables or the places of their mistakes, and start from a form', async () => {
  await using rig = await Rig.setup();
  const step = shellStep('say', 'echo {{name}} {{count}} > said');
  rig.write(
    'greet.meow.toml',
    `[main.variables]\nname = { required = true }\ncount = { type = "int", default = 2 }\n[main]\n${step}`,
  );
  rig.write('bad.meow.toml', '[main]\n[[main.steps]]\nid = "x"\nexecutor = "shel"\n');
  rig.write('pyproject.toml', '[tool]\n');
  rig.write('flow/START.sh', `echo '<result>over</result>'`);
  rig.write(
    '.meow/templates/part.toml',
    `[main]\n${shellStep('a', 'true')}\n[other]\n[[other.steps]]\nid = "b"\nexecutor = "shell"\ncommand = "true"\n`,
  );
  await using ui = await Ui.start(rig, '--project', '.');
  const { workflows } = await ui.json<WorkflowsDocument>('/data/workflows');
  expect(workflows.map(({ path, workflow, language, valid }) => [path, workflow, language, valid])).toEqual([
    ['bad.meow.toml', null, 'meow', false],
    ['flow', null, 'raymond', true],
    ['greet.meow.toml', null, 'meow', true],
    ['.meow/templates/part.toml', 'main', 'meow', true],
    ['.meow/templates/part.toml', 'other', 'meow', true],
  ]);
  expect(workflows[0]?.diagnostics[0]).toMatchObject({ file: 'bad.meow.toml', line: 2, column: 1 });
  expect(workflows[2]?.variables).toMatchObject([
    { name: 'name', required: true, default: null },
    { name: 'count', type: 'integer', required: false, default: 2 },
  ]);

  const form = { project: 'project', path: 'greet.meow.toml', workflow: null };
  const missing = await refused(ui.post('/do/start', { ...form, variables: {} }));
  expect(missing.fields?.['name']).toContain('is required');
  const wrong = await refused(ui.post('/do/start', { ...form, variables: { name: 'ann', count: 'many' } }));
  expect(wrong.fields?.['count']).toContain('"many"');
  for (const path of ['../greet.meow.toml', '/etc/passwd', 'bad.meow.toml', 'pyproject.toml'])
    expect((await refused(ui.post('/do/start', { ...form, path, variables: {} }))).message).toMatch(
      /mistakes|no workflow/,
    );
  expect(rig.exists('.meow/workflows')).toBe(false);

  const { run } = await done(ui.post('/do/start', { ...form, variables: { name: '--id x', count: '3' }, sim: true }));
  expect(run).toMatchObject({ project: 'project' });
  await until(() => rig.exists('said') && rig.read('said') === '--id x 3\n', 'the run');
});

async function done(response: Promise<Response>): Promise<Done> {
  const { status, text } = await response;
  expect([status, text]).toEqual([200, expect.anything()]);
  return JSON.parse(text) as Done;
}

async function refused(response: Promise<Response>): Promise<Refusal> {
  const { status, text } = await response;
  expect([400, 404, 409]).toContain(status);
  return JSON.parse(text) as Refusal;
}
