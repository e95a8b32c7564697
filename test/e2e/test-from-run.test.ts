// `meow test --from RUN`: a run becomes a test that passes at once, and fails when the workflow loses a step.

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

/** Runs a workflow, makes a test of the run, and runs the test. */
async function repeated(rig: Rig, id: string, ...args: readonly string[]): Promise<void> {
  const run = await rig.meow('run', ...args, '--id', id);
  expect(run.code, run.stderr).toBeLessThan(2);
  expect(await rig.meow('test', '--from', id, '-o', `${id}.test.toml`)).toMatchObject({ stderr: '', code: 0 });
  const { stdout, code } = await rig.meow('test', `${id}.test.toml`);
  expect({ stdout, code }).toMatchObject({ code: 0 });
}

test.each([
  ['hello.meow.toml'],
  ['pipeline.meow.toml'],
  ['download.meow.toml'],
  ['agents/recovery.meow.toml', '--adapter', 'sim'],
  ['agents/headless-loop.meow.toml', '--adapter', 'sim'],
  ['raymond/ralph', '--adapter', 'sim'],
  ['raymond/release', '--adapter', 'sim'],
  ['raymond/research', '--adapter', 'sim', '--var', 'input=Where?'],
])('a run of %s', async (path, ...flags) => {
  await using rig = await Rig.setup();
  await repeated(rig, `from-${process.pid}`, join(EXAMPLES, path), ...flags);
});

test('decisions about one gate, in their order', async () => {
  await using rig = await Rig.setup();
  await rig.meow('init', '--template', 'gate');
  const run = rig.shell('meow run gate --id g >/dev/null');
  const decide = async (draft: string, ...decision: readonly string[]): Promise<void> => {
    const ready = `until grep -qs "${draft}" ANNOUNCEMENT.md && meow gates | grep -q review; do sleep 0.1; done`;
    await rig.shell(`${ready}; meow ${decision[0]} g review ${decision.slice(1).join(' ')}`);
  };
  await decide('Draft 1', 'reject', '--reason', "'too short'");
  await decide('Draft 2', 'approve', '--notes', 'fine');
  expect((await run).code).toBe(0);

  const { stdout } = await rig.meow('test', '--from', 'g', '--name', 'as it was', '-o', 'g.test.toml');
  expect(stdout).toBe('wrote g.test.toml\n');
  expect(rig.read('g.test.toml')).toContain('notes = "too short"');
  expect(await rig.meow('test', 'g.test.toml')).toMatchObject({ code: 0 });
});

test('the test fails when a step of the workflow is removed', async () => {
  await using rig = await Rig.setup();
  const step = (id: string): string => `[[main.steps]]\nid = "${id}"\nexecutor = "shell"\ncommand = "echo ${id}"\n`;
  rig.write('w.meow.toml', `[main]\nname = "w"\n\n${step('one')}\n${step('two')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'w');
  await rig.meow('test', '--from', 'w', '-o', 'w.test.toml');
  expect(rig.read('w.test.toml')).not.toContain('workflow =');
  expect(await rig.meow('test')).toMatchObject({ code: 0 });

  rig.write('w.meow.toml', `[main]\nname = "w"\n\n${step('one')}`);
  const { stdout, code } = await rig.meow('test');
  expect(code).toBe(1);
  expect(stdout).toContain('no step two exists');
});

test('an existing file is kept, and an unknown run is refused', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', '[main]\nname = "w"\n\n[[main.steps]]\nid = "one"\nexecutor = "shell"\ncommand = "true"\n');
  await rig.meow('run', 'w.meow.toml', '--id', 'w');
  rig.write('w.test.toml', 'mine');
  expect(await rig.meow('test', '--from', 'w', '-o', 'w.test.toml')).toMatchObject({ code: 2 });
  expect(rig.read('w.test.toml')).toBe('mine');
  expect(await rig.meow('test', '--from', 'nothing')).toMatchObject({ stdout: '', code: 2 });
  expect(await rig.meow('test', '--name', 'x')).toMatchObject({ stdout: '', code: 2 });
});
