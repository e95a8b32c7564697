// `meow schedule`: what it accepts, refuses and shows. What `meow serve` makes of it is in serve.test.ts.

import { expect, test } from 'vitest';

import { Rig, shellStep } from '../rig/rig.ts';

const HELLO = shellStep('hello', 'echo hello');

test('a schedule is added, shown, paused, started by hand and removed', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HELLO);
  const added = await rig.meow(
    'schedule',
    'add',
    'nightly',
    '30 2 * * *',
    'w.meow.toml',
    '--timezone',
    'Europe/Berlin',
  );
  expect(added.stderr).toBe('');
  expect(added.stdout).toMatch(/^added schedule nightly; next: \S+ \(Europe\/Berlin\)\n.*until meow serve is running/);
  const next = await rig.meow(
    'schedule',
    'next',
    'nightly',
    '--from',
    '2026-03-28T12:00:00Z',
    '--count',
    '2',
    '--json',
  );
  expect(JSON.parse(next.stdout)).toEqual({
    name: 'nightly',
    timezone: 'Europe/Berlin',
    slots: ['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z'],
  });
  expect((await rig.meow('schedule', 'pause', 'nightly')).code).toBe(0);
  const run = (await rig.meow('schedule', 'run', 'nightly')).stdout.trim();
  expect(run).toMatch(/^nightly-\d{8}T\d{6}Z$/);
  expect((await rig.meow('status', run, '--watch')).code).toBe(0);
  const listed = JSON.parse((await rig.meow('schedule', 'list', '--json')).stdout) as readonly unknown[];
  expect(listed).toEqual([
    {
      name: 'nightly',
      cron: '30 2 * * *',
      timezone: 'Europe/Berlin',
      path: 'w.meow.toml',
      paused: true,
      next: null,
      last: { run, slot: expect.any(String) as string, status: 'done' },
      problem: null,
    },
  ]);
  expect((await rig.status(run)).meta).toMatchObject({ schedule: 'nightly' });
  expect((await rig.meow('schedule', 'remove', 'nightly')).code).toBe(0);
  expect((await rig.meow('schedule', 'list', '--json')).stdout).toBe('[]\n');
});

test('what is wrong with a schedule is refused when it is added, with a hint', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HELLO);
  rig.write('broken.meow.toml', '[[main.steps]]\nid = "a"\nexecutor = "shel"\n');
  const add = (...args: readonly string[]): ReturnType<Rig['meow']> => rig.meow('schedule', 'add', ...args);
  const cases = [
    [['n', '61 * * * *', 'w.meow.toml'], /is not a cron line: .*61\n {2}Five fields/],
    [['n', '0 0 30 2 *', 'w.meow.toml'], /never comes/],
    [['n', '0 3 * * *', 'w.meow.toml', '--timezone', 'Mars/X'], /no time zone "Mars\/X"/],
    [['n', '0 3 * * *', 'gone.meow.toml'], /no file gone.meow.toml/],
    [['n', '0 3 * * *', 'broken.meow.toml'], /broken.meow.toml:3:\d+: error/],
    [['N!', '0 3 * * *', 'w.meow.toml'], /cannot be the name of a schedule/],
    [['n', '0 3 * * *'], /needs a name, a cron line and a workflow/],
    [['n', '0 3 * * *', 'w.meow.toml', '--budget-usd', '-1'], /--budget-usd/],
    [['n', '0 3 * * *', 'w.meow.toml', '--overlap', 'maybe'], /overlap/],
  ] as const;
  for (const [args, why] of cases) {
    const { stderr, code } = await add(...args);
    expect({ args, code }).toEqual({ args, code: 2 });
    expect(stderr).toMatch(why);
  }
  expect(rig.exists('.meow/schedules')).toBe(false);
  expect((await rig.meow('schedule', 'frobnicate')).stderr).toContain('meow schedule cannot "frobnicate"');
});

test('a problem that appears later is shown, and the other schedules are too', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', HELLO);
  rig.write('.meow/schedules/bad.toml', 'cron = "0 3 * * *"\npath = "gone.meow.toml"\n');
  rig.write('.meow/schedules/hook.toml', 'path = "w.meow.toml"\n[trigger]\nhook = "h"\n');
  rig.write('.meow/schedules/ok.toml', 'cron = "0 3 * * *"\ntimezone = "UTC"\npath = "w.meow.toml"\n');
  const { stdout, code } = await rig.meow('schedule', 'list', '--json');
  expect(code).toBe(0);
  const problems = (JSON.parse(stdout) as { name: string; problem: string | null }[]).map(({ name, problem }) => [
    name,
    problem,
  ]);
  expect(problems).toEqual([
    ['bad', 'there is no file gone.meow.toml'],
    ['hook', '.meow/schedules/hook.toml:2:1: a hook has no "secret"'],
    ['ok', null],
  ]);
});
