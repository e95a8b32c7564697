// Outcomes that kill agents and validators: all descendants are killed with them, also those in other sessions and
// those that ignore SIGTERM.

import { describe, expect, test } from 'vitest';
import { isAlive, until } from '../rig/rig.ts';
import { ConductorRig, leadsTo, work } from '../fixtures/conductor/rig.ts';

/** A child, one that ignores signals, and one in its own session, each with a child; all write their pids to a file. */
function family(pids: string): string {
  const child = `echo $$ >> ${pids}; sleep 60 & echo $! >> ${pids}; wait`;
  return [
    `sh -c '${child}' &`,
    `sh -c 'trap "" TERM INT HUP; ${child}' &`,
    `setsid sh -c '${child}' < /dev/null > /dev/null 2>&1 &`,
    `while [ "$(wc -l < ${pids})" -lt 6 ]; do sleep 0.02; done 2> /dev/null`,
  ].join('\n');
}

async function setup(config = ''): Promise<ConductorRig> {
  const made = await ConductorRig.setup({ 'kept.txt': 'kept\n' }, config);
  made.rig.write('.agent/pids', '');
  return made;
}

/** Repeats with longer limits, in seconds, until one is long enough to start all processes. */
async function withLimit(test: (seconds: number) => Promise<'ended' | 'too-early'>): Promise<void> {
  for (const seconds of [1, 5, 25]) if ((await test(seconds)) === 'ended') return;
  expect.fail('there was never time to start all of them');
}

/** Waits until all started processes are gone. */
async function familyEnds(made: ConductorRig): Promise<'ended' | 'too-early'> {
  const pids = made.rig.read('.agent/pids').split('\n').slice(0, -1).map(Number);
  await until(() => !pids.some(isAlive), 'the last of them to end');
  return pids.length === 6 ? 'ended' : 'too-early';
}

const ROUTES = { ...leadsTo('end'), killed_timeout: 'late', killed_idle: 'idle', killed_policy: 'policy' };
const END = { opcode: 'STOP', verdict: 'success' };
const ENDS = { end: END, late: END, idle: END, policy: END };

describe.concurrent('an agent', () => {
  test.each([
    ['killed_timeout', 'late', (seconds: number) => ({ timeout: seconds }), 'sleep 60'],
    ['killed_idle', 'idle', (seconds: number) => ({ idle_timeout: seconds }), 'sleep 60'],
    ['killed_policy', 'policy', () => ({}), 'echo mine > kept.txt; echo done'],
  ])('%s: is killed with all its descendants', (outcome, next, limitsOf, last) =>
    withLimit(async (seconds) => {
      await using made = await setup('[policy.keep]\nforbidden_paths = ["kept.txt"]\n');
      made.agents({ work: `${family('"$AGENT_FOLDER/pids"')}\n${last}` });
      made.workflow({ work: work('end', { limits: limitsOf(seconds), policy: 'keep', routes: ROUTES }), ...ENDS });
      expect(await made.run()).toMatchObject({ code: 0 });
      expect(await made.outcomes()).toEqual([`work#1 ${outcome}`, `${next}#1 completed`]);
      expect(made.artifact('work/1/manifest.json')).toMatchObject({ opcode: 'RUN_AGENT', outcome });
      return await familyEnds(made);
    }),
  );

  test('killed_policy: its budget is spent', async () => {
    await using made = await setup();
    made.rig.write('w.sim.toml', '[[on]]\ndo = [{ say = "dear" }, { cost = { usd = 3, tokens = 10 } }]\n');
    made.workflow({ work: work('end', { agent: 'sim', limits: { max_cost_usd: 2 }, routes: ROUTES }), ...ENDS });
    expect(await made.run()).toMatchObject({ code: 0 });
    expect(await made.outcomes()).toEqual(['work#1 killed_policy', 'policy#1 completed']);
    expect((await made.rig.status('r')).steps['work#1']).toMatchObject({ error: { type: 'budget_spent' } });
  });
});

describe.concurrent('a validator', () => {
  const script = { id: 'check', kind: 'script', entrypoint: 'check.sh' };

  test.each([
    ['killed_timeout', 'late', (seconds: number) => [{ timeout: seconds }, {}] as const],
    ['killed_idle', 'idle', (seconds: number) => [{}, { idle_timeout: seconds }] as const],
  ])('%s: is killed with all its descendants', (outcome, next, limitsOf) =>
    withLimit(async (seconds) => {
      await using made = await setup('[conductor]\nallowed_entrypoints = ["check.sh"]\n');
      made.rig.write('check.sh', `${family(made.rig.path('.agent/pids'))}\nsleep 60\n`);
      const [own, limits] = limitsOf(seconds);
      const run = [{ ...script, ...own }];
      made.workflow({ check: { opcode: 'RUN_VALIDATION', run, limits, routes: ROUTES }, ...ENDS });
      expect(await made.run()).toMatchObject({ code: 0 });
      expect(await made.outcomes()).toEqual([`check#1 ${outcome}`, `${next}#1 completed`]);
      return await familyEnds(made);
    }),
  );

  test('killed_policy: is not started without permission', async () => {
    await using made = await setup();
    made.rig.write('check.sh', `touch ${made.rig.path('.agent/ran')}\n`);
    made.workflow({ check: { opcode: 'RUN_VALIDATION', run: [script], routes: ROUTES }, ...ENDS });
    expect(await made.run()).toMatchObject({ code: 0 });
    expect(await made.outcomes()).toEqual(['check#1 killed_policy', 'policy#1 completed']);
    expect(made.rig.exists('.agent/ran')).toBe(false);
  });

  test('all validators run, and the worst outcome is that of the step', async () => {
    await using made = await setup(
      '[validators.late]\ncommand = "sleep 60"\ntimeout = "1s"\n[validators.fine]\ncommand = "true"\n[validators.bad]\ncommand = "exit 3"\n',
    );
    made.workflow({
      check: { opcode: 'RUN_VALIDATION', run: ['bad', 'late', script, 'fine'], routes: ROUTES },
      ...ENDS,
    });
    expect(await made.run()).toMatchObject({ code: 0 });
    expect(await made.outcomes()).toEqual(['check#1 killed_timeout', 'late#1 completed']);
    const { steps } = await made.rig.status('r');
    const validators = steps['check#1']?.outputs['validators'] as readonly { id: string; outcome: string }[];
    expect(validators.map(({ id, outcome }) => `${id} ${outcome}`)).toEqual([
      'bad error',
      'late killed_timeout',
      'check killed_policy',
      'fine completed',
    ]);
  });
});
