// The session of each turn, tag by tag, as the agent's program sees it: new, continued, or forked, and its history.
// Then the same with the engine killed at every append to its journal, at two moments of each; and again with the
// agents killed too, as in a power failure: an interrupted turn restarts as its tag says.

import { beforeAll, describe, expect, test } from 'vitest';
import { forEveryAppend, SWEEP_MS } from '../rig/crash-sweep.ts';
import { until } from '../rig/rig.ts';
import { RaymondRig } from '../fixtures/raymond/rig.ts';

/** Turns as `STEP: SESSION [HISTORY]`, by step. */
type Seen = Readonly<Record<string, string>>;

const FIRST = 'main.1.START';

describe('the session of the next state', () => {
  test.each<{ tag: string; states: Readonly<Record<string, string>>; seen: Seen }>([
    {
      tag: 'goto: the same',
      states: {
        'START.md': '<goto>NEXT.md</goto>',
        'NEXT.md': '<goto>LAST.md</goto>',
        'LAST.md': '<result>end</result>',
      },
      seen: {
        [FIRST]: 'fresh []',
        'main.2.NEXT': `resume ${FIRST} [${FIRST}]`,
        'main.3.LAST': `resume ${FIRST} [${FIRST} main.2.NEXT]`,
      },
    },
    {
      tag: 'reset: a new one, which a goto then continues',
      states: {
        'START.md': '<reset>NEXT.md</reset>',
        'NEXT.md': '<goto>LAST.md</goto>',
        'LAST.md': '<result>end</result>',
      },
      seen: { [FIRST]: 'fresh []', 'main.2.NEXT': 'fresh []', 'main.3.LAST': 'resume main.2.NEXT [main.2.NEXT]' },
    },
    {
      tag: 'call: a fork, and on return the caller’s own, without its history',
      states: {
        'START.md': '<call return="BACK.md">LOOK.md</call>',
        'LOOK.md': '<goto>MORE.md</goto>',
        'MORE.md': '<result>found</result>',
        'BACK.md': '<result>end {{result}}</result>',
      },
      seen: {
        [FIRST]: 'fresh []',
        'main.2.LOOK': `fork ${FIRST} [${FIRST}]`,
        'main.3.MORE': `resume main.2.LOOK [${FIRST} main.2.LOOK]`,
        'main.4.BACK': `resume ${FIRST} [${FIRST}]`,
      },
    },
    {
      tag: 'call within a call: each returns to its own caller',
      states: {
        'START.md': '<call return="BACK.md">LOOK.md</call>',
        'LOOK.md': '<call return="FOUND.md">DEEP.md</call>',
        'DEEP.md': '<result>deep</result>',
        'FOUND.md': '<result>found {{result}}</result>',
        'BACK.md': '<result>end {{result}}</result>',
      },
      seen: {
        [FIRST]: 'fresh []',
        'main.2.LOOK': `fork ${FIRST} [${FIRST}]`,
        'main.3.DEEP': `fork main.2.LOOK [${FIRST} main.2.LOOK]`,
        'main.4.FOUND': `resume main.2.LOOK [${FIRST} main.2.LOOK]`,
        'main.5.BACK': `resume ${FIRST} [${FIRST}]`,
      },
    },
    {
      tag: 'function: a new one, and on return the caller’s own',
      states: {
        'START.md': '<function return="BACK.md">JUDGE.md</function>',
        'JUDGE.md': '<result>yes</result>',
        'BACK.md': '<result>end</result>',
      },
      seen: { [FIRST]: 'fresh []', 'main.2.JUDGE': 'fresh []', 'main.3.BACK': `resume ${FIRST} [${FIRST}]` },
    },
    {
      tag: 'fork: a new one for the worker, its own for the parent',
      states: {
        'START.md': '<fork next="NEXT.md">WORKER.md</fork>',
        'WORKER.md': '<goto>DONE.md</goto>',
        'DONE.md': '<result>worked</result>',
        'NEXT.md': '<result>end</result>',
      },
      seen: {
        [FIRST]: 'fresh []',
        'main.2.NEXT': `resume ${FIRST} [${FIRST}]`,
        'main_worker1.1.WORKER': 'fresh []',
        'main_worker1.2.DONE': 'resume main_worker1.1.WORKER [main_worker1.1.WORKER]',
      },
    },
    {
      tag: 'ask: the same, whether or not somebody answers',
      states: {
        'START.md': '<ask next="NEXT.md" timeout="10ms" timeout_next="LATE.md">who?</ask>',
        'LATE.md': '<result>end</result>',
        'NEXT.md': '<result>end</result>',
      },
      seen: { [FIRST]: 'fresh []', 'main.3.LATE': `resume ${FIRST} [${FIRST}]` },
    },
    {
      tag: 'a script has none, and passes on its input',
      states: {
        'START.md': '<goto>CHECK.sh</goto>',
        'CHECK.sh': `echo '<call return="BACK.sh">LOOK.md</call>'`,
        'LOOK.md': '<goto>FIND.sh</goto>',
        'FIND.sh': 'echo "<result>found</result>"',
        'BACK.sh': 'echo "<goto>LAST.md</goto>"',
        'LAST.md': '<result>end</result>',
      },
      seen: {
        [FIRST]: 'fresh []',
        'main.3.LOOK': `fork ${FIRST} [${FIRST}]`,
        'main.6.LAST': `resume ${FIRST} [${FIRST}]`,
      },
    },
    {
      tag: 'call-workflow: a fork, and on return the caller’s own',
      states: {
        'START.md': '<call-workflow return="BACK.md">../other</call-workflow>',
        'BACK.md': '<result>end</result>',
        '../other/START.md': '<goto>LAST.md</goto>',
        '../other/LAST.md': '<result>found</result>',
      },
      seen: {
        [FIRST]: 'fresh []',
        'main.2.other-START': `fork ${FIRST} [${FIRST}]`,
        'main.3.other-LAST': `resume main.2.other-START [${FIRST} main.2.other-START]`,
        'main.4.BACK': `resume ${FIRST} [${FIRST}]`,
      },
    },
    {
      tag: 'function-workflow: a new one, and on return the caller’s own',
      states: {
        'START.md': '<function-workflow return="BACK.md">../other</function-workflow>',
        'BACK.md': '<result>end</result>',
        '../other/START.md': '<result>found</result>',
      },
      seen: { [FIRST]: 'fresh []', 'main.2.other-START': 'fresh []', 'main.3.BACK': `resume ${FIRST} [${FIRST}]` },
    },
    {
      tag: 'fork-workflow: a new one for the worker, its own for the parent',
      states: {
        'START.md': '<fork-workflow next="NEXT.md">../other</fork-workflow>',
        'NEXT.md': '<result>end</result>',
        '../other/START.md': '<result>found</result>',
      },
      seen: {
        [FIRST]: 'fresh []',
        'main.2.NEXT': `resume ${FIRST} [${FIRST}]`,
        'main_other1.1.other-START': 'fresh []',
      },
    },
    {
      tag: 'reset-workflow: a new one',
      states: {
        'START.md': '<reset-workflow>../other</reset-workflow>',
        '../other/START.md': '<goto>LAST.md</goto>',
        '../other/LAST.md': '<result>found</result>',
      },
      seen: {
        [FIRST]: 'fresh []',
        'main.2.other-START': 'fresh []',
        'main.3.other-LAST': 'resume main.2.other-START [main.2.other-START]',
      },
    },
  ])('$tag', async ({ states, seen }) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', states);
    expect(await ray.run('flow')).toMatchObject({ code: 0, stderr: '' });
    expect(seenIn(ray)).toEqual(seen);
  });

  test.each([
    ['call', '<call return="LAST.md">NEXT.md</call>', `fork ${FIRST}`],
    ['function', '<function return="LAST.md">NEXT.md</function>', 'fresh'],
    ['reset', '<reset>NEXT.md</reset>', 'fresh'],
    ['goto', '<goto>NEXT.md</goto>', `resume ${FIRST}`],
  ])('%s: a turn that was running during a power failure restarts in the same way', async (_tag, start, session) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': start, 'NEXT.md': 'Work.', 'LAST.md': '<result>end</result>' });
    ray.answers({ to: 'Work', says: '<result>worked</result>', after: 'go' });
    const live = ray.rig.start('run', 'flow', '--id', 'r');
    await ray.rig.decided('r', 'step-started main.2.NEXT');
    await until(() => ray.turns().length === 2, 'the turn to begin');
    await ray.rig.killAll();
    await live.ended;
    ray.rig.write('go', '');
    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
    const next = ray.turns().filter(({ step }) => step === 'main.2.NEXT');
    expect(next.map((turn) => turn.session)).toEqual([session, session]);
  });

  test('a reminder goes to the session that it is about', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<call return="BACK.md">LOOK.md</call>',
      'LOOK.md': 'Look around.',
      'BACK.md': '<result>end</result>',
    });
    ray.answers({ to: 'Look around', says: 'I did.' }, { to: 'could not be followed', says: '<result>found</result>' });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.turns().map(({ step, session }) => `${step} ${session}`)).toEqual([
      `${FIRST} fresh`,
      `main.2.LOOK fork ${FIRST}`,
      'main.2.LOOK resume main.2.LOOK',
      `main.3.BACK resume ${FIRST}`,
    ]);
  });
});

describe.each<{ ids: 'chosen' | 'told'; flow: Flow; sample: number }>([
  { ids: 'chosen', flow: 'one folder', sample: 0 },
  { ids: 'told', flow: 'one folder', sample: 1 },
  { ids: 'chosen', flow: 'several folders', sample: 2 },
])('$flow, with $ids session ids', ({ ids, flow, sample }) => {
  let calm: Awaited<ReturnType<typeof sweep>>;
  beforeAll(async () => {
    calm = await sweep(ids, flow, null, false);
  });

  test.each([
    ['torn', 0],
    ['durable', 2],
  ])(
    'killed at every append (%s), each turn runs once, in the same session',
    { timeout: SWEEP_MS },
    async (moment, shift) => {
      await forEveryAppend(sample + shift, async (count) => {
        const { killed, turns } = await sweep(ids, flow, `${count}:${moment}`, false);
        if (killed) expect(turns, `killed at append ${count}`).toEqual(calm.turns);
        return killed;
      });
    },
  );

  test('killed with its agents at every append, a turn restarts as its tag says', {
    timeout: SWEEP_MS,
  }, async () => {
    await forEveryAppend(sample + 3, async (count) => {
      const { killed, turns } = await sweep(ids, flow, `${count}:durable`, true);
      if (!killed) return false;
      // A turn that continues a session was prompted twice; every other turn knows nothing of the previous attempt.
      const others = turns.filter((turn) => !calm.turns.includes(turn));
      const repeated = others.filter((turn) => calm.turns.includes(toldOnce(turn)));
      expect(others, `killed at append ${count}`).toEqual(repeated);
      expect([...new Set(turns.map(toldOnce))].toSorted(), `killed at append ${count}`).toEqual(calm.turns);
      return true;
    });
  });
});

type Flow = keyof typeof FLOWS;

/**
 * All tags within a folder; several forks at once, and all tags that enter other workflows, from prompts and scripts.
 */
const FLOWS = {
  'one folder': {
    'START.md': '<goto>CHECK.sh</goto>',
    'CHECK.sh': 'echo "<goto>CALL.md</goto>"',
    'CALL.md': '<call return="FUNCTION.md">LOOK.md</call>',
    'LOOK.md': '<goto>FOUND.md</goto>',
    'FOUND.md': '<result>found</result>',
    'FUNCTION.md': '<function return="FORK.md">JUDGE.md</function>',
    'JUDGE.md': '<result>judged</result>',
    'FORK.md': '<fork next="ASK.md" item="one">WORKER.md</fork>',
    'WORKER.md': '{{item}} <goto>WORKED.md</goto>',
    'WORKED.md': '{{item}} <result>worked</result>',
    'ASK.md': '<ask next="NEVER.md" timeout="10ms" timeout_next="LATE.md">who?</ask>',
    'NEVER.md': '<result>never</result>',
    'LATE.md': '<reset>LAST.md</reset>',
    'LAST.md': '<result>end</result>',
  },
  'several folders': {
    'START.md': '<goto>SEND.sh</goto>',
    'SEND.sh': `echo '<fork next="CALL.md" item="a">WORK.md</fork><fork next="CALL.md" item="b">WORK.md</fork>'`,
    'WORK.md': '{{item}} <result>worked</result>',
    'CALL.md': '<call-workflow return="FUNCTION.sh">../other</call-workflow>',
    'FUNCTION.sh': `echo '<function-workflow return="FORK.md">../other</function-workflow>'`,
    'FORK.md': '<fork-workflow next="LEAVE.md">../other</fork-workflow>',
    'LEAVE.md': '<reset-workflow>../last</reset-workflow>',
    '../other/START.md': '<goto>FOUND.md</goto>',
    '../other/FOUND.md': '<result>found</result>',
    '../last/START.md': '<result>end</result>',
  },
} satisfies Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Runs the flow, kills it as requested, then resumes it to the end. */
async function sweep(
  ids: 'chosen' | 'told',
  flow: Flow,
  killAt: string | null,
  withAgents: boolean,
): Promise<{ readonly killed: boolean; readonly turns: readonly string[] }> {
  await using ray = await RaymondRig.setup(ids);
  const { rig } = ray;
  ray.folder('flow', FLOWS[flow]);
  const order = ['run', 'flow', '--id', 'r'];
  const first = killAt === null ? await rig.meow(...order) : await rig.meowKilledAt(killAt, ...order);
  const killed = first.code === 137;
  if (killed) {
    if (withAgents) await rig.killAll();
    const again = await rig.meow('resume', 'r');
    if (again.stderr.includes('never began')) expect((await rig.meow(...order)).code).toBe(0);
    else if (!again.stderr.includes('is done')) expect(again, `killed at ${killAt}`).toMatchObject({ code: 0 });
  } else {
    expect(first).toMatchObject({ code: 0, stderr: '' });
  }
  await until(() => rig.processes().length === 0, 'all to end');
  return { killed, turns: ray.turns().map(shown).toSorted() };
}

describe('an adapter that cannot fork replays', () => {
  const FLOW = {
    'START.md': 'The word is miau. <goto>MORE.md</goto>',
    'MORE.md': '<call return="BACK.md">LOOK.md</call>',
    'LOOK.md': 'Look for it.',
    'DEEP.md': '<call return="FOUND.md">DEEPER.md</call>',
    'DEEPER.md': 'Dive.',
    'FOUND.md': '<result>found {{result}}</result>',
    'BACK.md': '<result>end {{result}}</result>',
  };
  /** A new session that starts with the transcript replaces a fork. */
  const seen = {
    [FIRST]: 'fresh []',
    'main.2.MORE': `resume ${FIRST} [${FIRST}]`,
    'main.3.LOOK': 'fresh []',
    'main.4.DEEP': 'resume main.3.LOOK [main.3.LOOK]',
    'main.5.DEEPER': 'fresh []',
    'main.6.FOUND': 'resume main.3.LOOK [main.3.LOOK main.4.DEEP]',
    'main.7.BACK': `resume ${FIRST} [${FIRST} main.2.MORE]`,
  };
  const setup = async (ids: 'chosen' | 'told', look = {}): Promise<RaymondRig> => {
    const ray = await RaymondRig.setup(ids, 'replay = true\n');
    const toml = ray.rig.read('.meow/adapters/fake/adapter.toml');
    ray.rig.write('.meow/adapters/fake/adapter.toml', toml.replace(/^fork = .*\n/m, ''));
    ray.folder('flow', FLOW);
    ray.answers(
      { to: 'Dive.', says: '<result>deep</result>' },
      { to: 'Look for it.', says: '<goto>DEEP.md</goto>', ...look },
    );
    return ray;
  };

  test.each(['chosen', 'told'] as const)('the transcript of the caller for a call (ids are %s)', async (ids) => {
    await using ray = await setup(ids);
    expect(await ray.rig.meow('validate', 'flow')).toMatchObject({ code: 0 });
    expect(await ray.run('flow')).toMatchObject({ code: 0, stderr: '' });
    expect(seenIn(ray)).toEqual(seen);
    const line = '='.repeat(72);
    const [, transcript = '', now] = ray.prompt('main.3.LOOK').split(`${line}\n`);
    expect(transcript.split('[You were told]\n').slice(1)).toEqual([
      `${FLOW['START.md']}\n\n[You answered]\n${FLOW['START.md']}\n\n`,
      `${FLOW['MORE.md']}\n\n[You answered]\n${FLOW['MORE.md']}\n`,
    ]);
    expect(now).toBe(`\n${FLOW['LOOK.md']}`);
    expect(ray.prompt('main.5.DEEPER')).toContain('The word is miau.');
    expect(ray.prompt('main.5.DEEPER')).toContain('Look for it.');
    expect(ray.prompt('main.7.BACK')).not.toContain('The word is miau.');
  });

  test('the same transcript again after an interruption', async () => {
    await using ray = await setup('chosen', { after: 'go' });
    const live = ray.rig.start('run', 'flow', '--id', 'r');
    await ray.rig.appears('.agent/prompts/main.3.LOOK');
    const told = ray.prompt('main.3.LOOK');
    await ray.rig.killAll();
    await live.ended;
    ray.rig.write('go', '');
    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
    expect(ray.prompt('main.3.LOOK')).toBe(told);
    expect(seenIn(ray)).toEqual(seen);
  });
});

function seenIn(ray: RaymondRig): Seen {
  return Object.fromEntries(ray.turns().map((turn) => [turn.step, shown(turn).slice(turn.step.length + 2)]));
}

function shown({ step, session, history }: ReturnType<RaymondRig['turns']>[number]): string {
  return `${step}: ${session} [${history.join(' ')}]`;
}

/** The turn as it would be without an interrupted attempt. */
function toldOnce(turn: string): string {
  const [, before = '', history = ''] = /^(.*)\[(.*)\]$/.exec(turn) ?? [];
  const step = turn.slice(0, turn.indexOf(':'));
  const told = history.split(' ').filter((each, index, all) => each !== step && all.indexOf(each) === index);
  return `${before}[${told.join(' ')}]`;
}
