// `meow prove` as its user sees it: what it prints, and how it ends.

import { writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { Rig, shellStep } from '../rig/rig.ts';

const WORKFLOW = `[main]
${shellStep('a', 'true')}
${shellStep('b', 'true', 'needs = ["a"]')}
`;

test.each([
  ['everything is explored', 0, [], /^proven$/m],
  ['a bound is reached first', 3, ['--states', '2'], /^explored 2 states, but not everything: more than 2 states/m],
])('%s: exit %i', async (_, code, flags, expected) => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  const proved = await rig.meow('prove', 'w.meow.toml', ...flags);
  expect(proved.stdout).toMatch(expected);
  expect(proved.code).toBe(code);
});

test.each([
  ['a flag that is no number', ['--states', 'many']],
  ['a price that is none', ['--price', 'claude']],
  ['a file that does not exist', ['#other']],
])('%s is wrong usage', async (_, args) => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  const [first = '', ...rest] = args;
  const path = first.startsWith('#') ? ['nothing.meow.toml'] : ['w.meow.toml', first, ...rest];
  expect(await rig.meow('prove', ...path)).toMatchObject({ code: 2, stdout: '' });
});

test('a broken claim says why, and exits with 1', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  rig.write('w.test.toml', '[[claim]]\nalone = "*"\n[[claim]]\nat_most = { visits = { "*" = 1 } }\n');
  const { stdout, code } = await rig.meow('prove', 'w.meow.toml');
  expect(code).toBe(1);
  expect(stdout).toContain('holds    alone *');
  expect(stdout).toContain('BROKEN   at most 1 visit of *');
  expect(stdout).toContain('Here the run has 2 visits of *, and the claim allows 1.');
});

test('an interrupted proof prints what was found so far, and exits with 130', async () => {
  await using rig = await Rig.setup();
  const names = Array.from({ length: 14 }, (_, index) => `s${index}`);
  // Each asks for the status of the others, so that every order matters.
  const asks = names.map((name) => shellStep(name, `meow step-status ${name} --is done`, 'on_error = "continue"'));
  const works = names.map((name) => shellStep(`w${name}`, 'true', 'on_error = "continue"'));
  rig.write('w.meow.toml', `[main]\n${[...asks, ...works].join('\n')}`);
  // Who reads the claims handles the signal, and has not begun to explore.
  expect((await rig.shell('mkfifo w.test.toml')).code).toBe(0);
  const live = rig.start('prove', 'w.meow.toml', '--states', '10000000');
  await writeFile(rig.path('w.test.toml'), '[[claim]]\nends = true\n');
  live.kill('SIGINT');
  const { stdout, code } = await live.ended;
  expect(stdout).toMatch(/^explored \d+ states, but not everything: it was interrupted$/m);
  expect(stdout).toContain('unknown  ends');
  expect(code).toBe(130);
});

test('the price of a turn is that of past runs, unless it is given', async () => {
  await using rig = await Rig.setup();
  rig.write('w/START.md', 'Say <result>ok</result>');
  rig.write('w.sim.toml', '[[on]]\ndo = [{ cost = { usd = 0.5 } }, { say = "<result>ok</result>" }]\n');
  const worst = async (...flags: readonly string[]): Promise<unknown> => {
    const { stdout } = await rig.meow('prove', 'w', '--json', ...flags);
    const {
      worst: { usd },
      prices,
    } = JSON.parse(stdout) as { worst: { usd: unknown }; prices: unknown }; // prettier-ignore
    return { usd, prices };
  };
  const adapter = 'sim';
  rig.write('.meow/config.toml', '[agents]\ndefault_adapter = "sim"\n');
  expect(await worst()).toEqual({ usd: 'unknown', prices: [{ adapter, usd: null, from: null }] });
  expect((await rig.meow('run', 'w')).code).toBe(0);
  const from = 'the average of 1 turn in 1 run of this project';
  expect(await worst()).toEqual({ usd: 1.5, prices: [{ adapter, usd: 0.5, from }] });
  expect(await worst('--price', 'sim=0.1')).toEqual({ usd: 0.3, prices: [{ adapter, usd: 0.1, from: '--price' }] });
});
