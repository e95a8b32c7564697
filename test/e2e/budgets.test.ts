// Budgets over all runs of a user, with real processes.

import { expect, test } from 'vitest';

import { Rig, until } from '../rig/rig.ts';

const TURNS = ['a', 'b', 'c', 'd'];
const STEPS = TURNS.map(
  (id, index) =>
    `[[main.steps]]\nid = "${id}"\nexecutor = "agent"\nagent = "x"\nprompt = "${id}"\nneeds = ["${index === 0 ? 'worker' : (TURNS[index - 1] ?? '')}"]\n`,
).join('');
const PROGRAM = `[[main.steps]]\nid = "worker"\nexecutor = "spawn"\nagent = "x"\nadapter = "sim"\nchannel = "headless"\n${STEPS}`;
const SCRIPT = '[[on]]\ndo = [{ cost = { usd = 0.4, tokens = 10 } }, { done = true }]\n';

async function spentUsd(rig: Rig): Promise<number> {
  const { stdout } = await rig.meow('cost', '--json');
  return (JSON.parse(stdout) as { total: { known_usd: number } }).total.known_usd;
}

function budgets(rig: Rig, text: string): void {
  rig.write('../home/.meow/config.toml', `[budget]\n${text}\n`);
}

test('ten runs at once with a budget of 5 dollars for the day spend at most that, and say why they are paused', async () => {
  await using rig = await Rig.setup();
  budgets(rig, 'day_usd = 5');
  rig.write('w.meow.toml', PROGRAM);
  rig.write('w.sim.toml', SCRIPT);
  const ids = Array.from({ length: 10 }, (_, index) => `r${index}`);
  const ended = await Promise.all(ids.map((id) => rig.meow('run', 'w.meow.toml', '--id', id)));
  const spent = await spentUsd(rig);
  expect(spent).toBeLessThanOrEqual(5);
  expect(spent).toBeGreaterThan(3);
  expect(ended.every(({ code }) => code === 0 || code === 3)).toBe(true);
  const paused = ids.find((_, index) => ended[index]?.code === 3) ?? '';
  const { stdout } = await rig.meow('status', paused, '--json');
  const { pause } = JSON.parse(stdout) as { pause: Readonly<Record<string, unknown>> };
  expect(pause).toMatchObject({ reason: 'budget', budget: 'day_usd', limit: 5, needed: expect.any(Number) });
  expect(String(pause['command'])).toMatch(new RegExp(`^meow resume ${paused} --extra-usd \\d+\\.\\d\\d$`));
  const [, ...resume] = String(pause['command']).split(' ');
  const resumed = await rig.meow(...resume);
  expect([0, 3]).toContain(resumed.code);
  expect(await spentUsd(rig)).toBeGreaterThan(spent);
});

test('a run killed between the reservation and the turn reserves nothing for ever, and its turn is admitted again', async () => {
  await using rig = await Rig.setup();
  budgets(rig, 'day_usd = 0.5');
  rig.write('w.meow.toml', PROGRAM);
  rig.write('w.sim.toml', SCRIPT);
  // The journal with the reservation is durable, and nothing has started.
  const appends = await reservingAppend(rig);
  await rig.meowKilledAt(`${appends}:durable`, 'run', 'w.meow.toml', '--id', 'killed');
  expect(rig.decisions('killed')).toContain('usage-reserved a');
  // All of the budget is there for another run.
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'other')).code).toBe(3);
  expect(await spentUsd(rig)).toBe(0.4);
  // Which has spent it: the turn of the first run is not admitted.
  expect((await rig.meow('resume', 'killed')).code).toBe(3);
  expect(await spentUsd(rig)).toBe(0.4);
  expect((await rig.meow('resume', 'killed', '--extra-usd', '10')).code).toBe(0);
  expect(await spentUsd(rig)).toBe(2);
  await until(() => rig.processes().length === 0, 'the processes to end');
});

/** Its program reports costs of 0.8 dollars while it runs, then runs `end`. */
function streamingAgent(rig: Rig, end: string): void {
  const spends = (usd: number): string => `echo '{"type":"step_finish","part":{"cost":${usd},"tokens":{"total":9}}}'`;
  rig.write('work.sh', [spends(0.4), spends(0.2), spends(0.2), end].join('\n'));
  rig.write(
    '.meow/adapters/streaming/adapter.toml',
    `[adapter]\nname = "streaming"\n[headless]\ncommand = "sh ${rig.folder}/work.sh"\nreader = "opencode"\nsession_id = "none"\n`,
  );
  const spawn = `[[main.steps]]\nid = "w"\nexecutor = "spawn"\nagent = "x"\nadapter = "streaming"\nchannel = "headless"\n`;
  rig.write(
    'w.meow.toml',
    `${spawn}[[main.steps]]\nid = "a"\nexecutor = "agent"\nagent = "x"\nprompt = "a"\nneeds = ["w"]\n`,
  );
  rig.write('flow/START.md', 'work');
}

const OVERSPENT = 'the agent was stopped: its turn has cost more than its budget and its reservation allow';

test.each([['w.meow.toml'], ['flow', '--adapter', 'streaming']])(
  'a turn of %s above its budget and its overrun is stopped while it runs',
  async (...args) => {
    await using rig = await Rig.setup();
    budgets(rig, 'run_usd = 0.7\noverrun = 0.2');
    streamingAgent(rig, 'exec sleep 3600');
    const { code, stdout } = await rig.meow('run', ...args, '--id', 'r');
    expect(stdout).toContain(OVERSPENT);
    expect(code).toBe(1);
    expect(await spentUsd(rig)).toBe(0.8);
  },
);

test('a turn above its budget goes on within its overrun', async () => {
  await using rig = await Rig.setup();
  budgets(rig, 'run_usd = 0.7\noverrun = 0.7');
  streamingAgent(rig, 'sleep 1');
  const { code } = await rig.meow('run', 'w.meow.toml', '--id', 'r');
  expect(code).toBe(0);
  expect(await spentUsd(rig)).toBe(0.8);
});

/** The number of the append with the first reservation. */
async function reservingAppend(rig: Rig): Promise<number> {
  for (let append = 1; append < 20; append += 1) {
    const id = `try${append}`;
    await rig.meowKilledAt(`${append}:durable`, 'run', 'w.meow.toml', '--id', id);
    if (rig.decisions(id).includes('usage-reserved a')) return append;
  }
  throw new Error('no run reserves anything');
}
