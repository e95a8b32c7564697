// Turns in such quick succession that a process next to the engine starts their programs and records their ends
// (drivers/spawner.ts). They behave like other turns, whichever process is killed.

import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { until } from '../rig/rig.ts';
import { RaymondRig } from '../fixtures/raymond/rig.ts';

/** The helper starts the eleventh turn, which runs until a file `go` exists. */
const FLOW = {
  'START.md': '---\nmax_visits: 10\nthen: WAIT.md\n---\n<goto>START.md</goto>',
  'WAIT.md': 'Wait.',
  'LAST.md': '<result>end</result>',
};
const WAITING = 'main.11.WAIT';

async function waiting(ray: RaymondRig): Promise<{ readonly engine: number; readonly helper: number }> {
  await until(() => ray.turns().some(({ step }) => step === WAITING), 'the turn to begin');
  const engine = ray.rig.enginePid('r');
  const [helper] = children(engine).filter((pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('perl'));
  if (helper === undefined) expect.fail('there is no helper');
  return { engine, helper };
}

function children(pid: number): readonly number[] {
  const told = readdirSync(`/proc/${pid}/task`).map((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8'),
  );
  return (told.join(' ').match(/\d+/g) ?? []).map(Number);
}

async function setup(): Promise<RaymondRig> {
  const ray = await RaymondRig.setup();
  ray.folder('flow', FLOW);
  ray.answers({ to: 'Wait.', says: '<goto>LAST.md</goto>', after: 'go' });
  return ray;
}

test('a turn survives the death of its engine, and its end is found', async () => {
  await using ray = await setup();
  const live = ray.rig.start('run', 'flow', '--id', 'r');
  const { engine } = await waiting(ray);
  process.kill(engine, 'SIGKILL');
  await live.ended;
  ray.rig.write('go', '');
  const status = `.meow/workflows/r/steps/${WAITING}.1.status`;
  await until(() => /^exit 0$/m.test(ray.rig.read(status)), 'the end to be recorded');
  await until(() => ray.rig.processes().length === 0, 'the helper to end');
  expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
  expect(ray.turns().map(({ step }) => step)).toEqual([
    ...Array.from({ length: 10 }, (_, n) => `main.${n + 1}.START`),
    WAITING,
    'main.12.LAST',
  ]);
});

test('a turn survives the death of the helper, and restarts if nobody saw its end', async () => {
  await using ray = await setup();
  const live = ray.rig.start('run', 'flow', '--id', 'r');
  const { helper } = await waiting(ray);
  process.kill(helper, 'SIGKILL');
  ray.rig.write('go', '');
  expect(await live.ended).toMatchObject({ code: 0 });
  const told = ray.turns().filter(({ step }) => step === WAITING);
  expect(told.map(({ session }) => session)).toEqual(['resume main.1.START', 'resume main.1.START']);
  await until(() => ray.rig.processes().length === 0, 'all to end');
});

test('a stopped turn is killed with all its processes, and restarts', async () => {
  await using ray = await setup();
  const live = ray.rig.start('run', 'flow', '--id', 'r');
  await waiting(ray);
  live.kill('SIGINT');
  expect(await live.ended).toMatchObject({ code: 130 });
  await until(() => ray.rig.processes().length === 0, 'all to end');
  ray.rig.write('go', '');
  expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
});

test.each([
  ['nothing but words', 'sh', ''],
  ['a text for a shell', 'FROM=shell sh', 'shell'],
])('its program has the adapter’s environment, and its exit code counts: %s', async (_what, start, from) => {
  await using ray = await RaymondRig.setup();
  const { rig } = ray;
  rig.write(
    'agent.sh',
    'read -r prompt; echo "$MEOW_STEP ${HELD-none} ${GIVEN-none} ${FROM-} $PWD"; echo oh >&2; exit 3',
  );
  const text = rig.read('.meow/adapters/fake/adapter.toml');
  const environment = '[environment]\nHELD = ""\nGIVEN = "it\'s\\n$HOME"\n';
  const other = text.replace('"fake"', '"other"').replace('[environment]\n', environment);
  const command = `command = "${start} ${rig.path('agent.sh')} {{session_id}}"`;
  rig.write('.meow/adapters/other/adapter.toml', other.replace(/^command = .*$/m, command));
  ray.folder('flow', { ...FLOW, 'WAIT.md': '<reset adapter="other">LAST.md</reset>' });
  const { code, stdout } = await rig.meowWith({ HELD: 'x', FROM: '' }, 'run', 'flow', '--id', 'r');
  expect(code).toBe(1);
  expect(stdout).toContain('failed: main.12.LAST (exit 3): oh');
  const said = rig.read('.meow/workflows/r/steps/main.12.LAST.1.stdout');
  expect(said).toBe(`main.12.LAST none it's\n$HOME ${from} ${rig.folder}\n`);
});
