// What a rejection does to a run.

import { expect, test } from 'vitest';
import { type Live, Rig, until } from '../rig/rig.ts';

function deploy(keys = ''): string {
  return `[main]
[[main.steps]]
id = "review"
executor = "branch"
condition = "meow await-approval review --prompt 'Deploy; now?' 2>&1"
${keys}

[[main.steps]]
id = "deploy"
executor = "shell"
command = "touch deployed"
needs = ["review"]
`;
}

async function begin(rig: Rig, workflow: string): Promise<Live> {
  rig.write('w.meow.toml', workflow);
  const live = rig.start('run', 'w.meow.toml', '--id', 'r');
  await rig.decided('r', 'gate-asked review');
  return live;
}

async function reject(rig: Rig, live: Live): Promise<number | null> {
  expect((await rig.meow('reject', 'r', 'review', '--reason', 'not on a Friday', '--as', 'ada')).code).toBe(0);
  return (await live.ended).code;
}

test('a rejection fails the step, and the steps behind the gate do not run', async () => {
  await using rig = await Rig.setup();
  expect(await reject(rig, await begin(rig, deploy('on_true = { inline = [] }')))).toBe(1);
  expect(rig.exists('deployed')).toBe(false);
  const { steps, error } = await rig.status('r');
  expect(error).toEqual({
    type: 'gate_rejected',
    message: 'gate review was rejected by ada: not on a Friday',
    step: 'review',
  });
  expect(steps['review']?.outputs).toMatchObject({ outcome: 'false', decided_by: 'ada', reason: 'not on a Friday' });
  expect(steps['deploy']?.status).toBe('skipped');
});

test('a resume asks again after a rejection, and an approval then counts', async () => {
  await using rig = await Rig.setup();
  expect(await reject(rig, await begin(rig, deploy()))).toBe(1);
  const resumed = rig.start('resume', 'r');
  const asked = (): number => rig.decisions('r').filter((decision) => decision === 'gate-asked review').length;
  await until(() => asked() === 2, 'the gate to be asked again');
  expect((await rig.meow('approve', 'r', 'review', '--as', 'ada')).code).toBe(0);
  expect((await resumed.ended).code).toBe(0);
  expect(rig.exists('deployed')).toBe(true);
});

test('an empty on_false says that the run goes on after a rejection', async () => {
  await using rig = await Rig.setup();
  expect(await reject(rig, await begin(rig, deploy('on_false = { inline = [] }')))).toBe(0);
  expect(rig.exists('deployed')).toBe(true);
});

test('a workflow that recovers a rejection knows who decided, and why', async () => {
  await using rig = await Rig.setup();
  const recovery = `
[fix]
[[fix.steps]]
id = "say"
executor = "shell"
command = "echo {{_failed_step.error_type}}: {{_failed_step.error_message}}"
`;
  expect(await reject(rig, await begin(rig, deploy('on_error = ".fix"') + recovery))).toBe(0);
  expect((await rig.meow('logs', 'r', 'review.recover.1.say')).stdout).toBe(
    'gate_rejected: gate review was rejected by ada: not on a Friday\n',
  );
});

test('validate names a gate without on_false', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', deploy());
  const { stdout, stderr } = await rig.meow('validate', 'w.meow.toml');
  expect(stdout + stderr).toContain('gate-without-on-false');
});
