// `meow cost`, prices, and the costs of simulated agents.

import { expect, test } from 'vitest';

import { Rig } from '../rig/rig.ts';

const agentStep = (id: string, needs: string): string =>
  `[[main.steps]]\nid = "${id}"\nexecutor = "agent"\nagent = "x"\nprompt = "${id}"\nneeds = ["${needs}"]\n`;
const WORKFLOW = `[[main.steps]]\nid = "worker"\nexecutor = "spawn"\nagent = "x"\nadapter = "sim"\n${agentStep('a', 'worker')}${agentStep('b', 'a')}${agentStep('c', 'b')}`;
const rule = (step: string, cost: string): string =>
  `[[on]]\nstep = "${step}"\ndo = [{ cost = { ${cost} } }, { done = true }]\n`;
const SCRIPT = `${rule('a', 'input = 1000000, cached = 1000000, output = 1000000')}${rule('b', 'usd = 0.4, tokens = 100')}${rule('c', '')}`;

interface Costs {
  readonly by: string;
  readonly since: string | null;
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly total: Readonly<Record<string, unknown>>;
}

async function costsOf(rig: Rig, ...args: readonly string[]): Promise<Costs> {
  const { stdout, code } = await rig.meow('cost', ...args, '--json');
  expect(code).toBe(0);
  return JSON.parse(stdout) as Costs;
}

test('turns are summed by every key; unknown is null, and prices of the configuration count apart', async () => {
  await using rig = await Rig.setup();
  rig.write('.meow/config.toml', '[prices]\n"sim/*" = { input = 1, cached = 0.1, output = 2 }\n');
  rig.write('w.meow.toml', WORKFLOW);
  rig.write('w.sim.toml', SCRIPT);
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'r1')).code).toBe(0);
  const { by, since, rows, total } = await costsOf(rig, '--by', 'step');
  expect([by, since]).toEqual(['step', null]);
  const none = { total: null, in: null, out: null, cached: null };
  expect(rows).toEqual([
    {
      key: 'a',
      turns: 1,
      tokens: { total: 3_000_000, in: 1_000_000, out: 1_000_000, cached: 1_000_000 },
      usd: 3.1,
      known_usd: 3.1,
      computed_usd: 3.1,
      unknown_turns: 0,
      agent_ms: expect.any(Number),
    },
    {
      key: 'b',
      turns: 1,
      tokens: { ...none, total: 100 },
      usd: 0.4,
      known_usd: 0.4,
      computed_usd: 0,
      unknown_turns: 0,
      agent_ms: expect.any(Number),
    },
    {
      key: 'c',
      turns: 1,
      tokens: none,
      usd: null,
      known_usd: 0,
      computed_usd: 0,
      unknown_turns: 1,
      agent_ms: expect.any(Number),
    },
  ]);
  expect(total).toMatchObject({ turns: 3, usd: null, known_usd: 3.5, computed_usd: 3.1, unknown_turns: 1 });
  const today = new Date().toLocaleDateString('en-CA');
  const keys = { run: 'r1', workflow: 'w.meow.toml#main', agent: 'x', adapter: 'sim', model: null, day: today };
  for (const [name, key] of Object.entries(keys)) {
    const found = await costsOf(rig, 'r1', '--by', name);
    expect(found.rows.map((row) => row['key'])).toEqual([key]);
    expect(found.rows[0]).toMatchObject({ turns: 3, known_usd: 3.5 });
  }
  const { total: nothing } = await costsOf(rig, '--since', '0s');
  expect(nothing).toMatchObject({ turns: 0, usd: 0, known_usd: 0, tokens: { total: 0 } });
  expect((await costsOf(rig, '--all', '--since', '7d')).total).toMatchObject({ turns: 3 });
});

test('a turn of a state machine has the model that its agent reports: it names none', async () => {
  await using rig = await Rig.setup();
  rig.write('flow/START.md', '<result>done</result>');
  rig.write('flow.sim.toml', '[[on]]\nstep = "*"\ndo = [{ cost = { usd = 0.5 } }, { say = "<result>ok</result>" }]\n');
  expect((await rig.meow('run', 'flow', '--adapter', 'sim')).code).toBe(0);
  const { rows } = await costsOf(rig, '--by', 'model');
  expect(rows).toMatchObject([{ key: null, known_usd: 0.5 }]);
});

test.each([
  [['--since', '2026-02-30'], 'neither a time nor a date'],
  [['--by', 'runs'], 'did you mean run?'],
  [['nope'], 'there is no run nope'],
  [['--all', 'r1'], '--all means all runs of all projects'],
])('meow cost %s is refused', async (args, message) => {
  await using rig = await Rig.setup();
  const { code, stderr } = await rig.meow('cost', ...args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
});
