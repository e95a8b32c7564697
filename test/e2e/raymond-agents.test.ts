// Several agents in one run, and their limits: failures, budgets, limits of the run and of an account.

import { describe, expect, test } from 'vitest';
import { type RunObject, shellStep, until } from '../rig/rig.ts';
import { RaymondRig } from '../fixtures/raymond/rig.ts';

interface WithCost extends RunObject {
  readonly cost: { readonly usd: number | null; readonly tokens: number | null; readonly unknown_turns: number };
  readonly warnings: readonly string[];
}

async function statusOf(ray: RaymondRig): Promise<WithCost> {
  return (await ray.rig.status('r')) as WithCost;
}

describe('workers', () => {
  test('keep their attributes for life, and are named after their parents and states', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<fork next="NEXT.md" item="one" colour="red">WORKER-BEE.md</fork>',
      'NEXT.md': '<fork next="LAST.md" item="two" colour="blue">WORKER-BEE.md</fork>',
      'WORKER-BEE.md': '{{item}} {{colour}} {{agent_id}} <call return="AFTER.md">CHILD.md</call>',
      'CHILD.md': 'called {{item}} <result>x</result>',
      'AFTER.md': 'after {{item}} {{result}} <fork next="DONE.md" item="inner">DONE.md</fork>',
      'DONE.md': 'done {{item}} {{colour}} <result>x</result>',
      'LAST.md': '<result>end</result>',
    });
    expect(await ray.run('flow')).toMatchObject({ code: 0, stderr: '' });
    const prompts = Object.fromEntries(
      ray.turns().map(({ step }) => [step, ray.prompt(step).replace(/ ?<.*/, '')] as const),
    );
    expect(prompts).toEqual({
      'main.1.START': '',
      'main.2.NEXT': '',
      'main.3.LAST': '',
      'main_worker1.1.WORKER-BEE': 'one red main_worker1',
      'main_worker1.2.CHILD': 'called one',
      'main_worker1.3.AFTER': 'after one x',
      'main_worker1.4.DONE': 'done one red',
      'main_worker1_done1.1.DONE': 'done inner red',
      'main_worker2.1.WORKER-BEE': 'two blue main_worker2',
      'main_worker2.2.CHILD': 'called two',
      'main_worker2.3.AFTER': 'after two x',
      'main_worker2.4.DONE': 'done two blue',
      'main_worker2_done1.1.DONE': 'done inner blue',
    });
  });

  test('keep their own names, whatever variables and attributes are called', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '{{workflow_id}} {{agent_id}} {{visit}} <fork next="END.md" agent_id="x" visit="8">WORKER.md</fork>',
      'WORKER.md': '{{workflow_id}} {{agent_id}} {{visit}} <goto>SCRIPT.sh</goto>',
      'SCRIPT.sh': 'echo "$RAYMOND_WORKFLOW_ID $RAYMOND_AGENT_ID $MEOW_AGENT" > seen; echo "<result>x</result>"',
      'END.md': '<result>end</result>',
    });
    const { code } = await ray.run('flow', '--var', 'workflow_id=w', '--var', 'agent_id=a', '--meta', 'visit=9');
    expect(code).toBe(0);
    expect(ray.prompt('main.1.START')).toMatch(/^r main 1 /);
    expect(ray.prompt('main_worker1.1.WORKER')).toMatch(/^r main_worker1 1 /);
    expect(ray.rig.read('seen')).toBe('r main_worker1 main_worker1\n');
  });

  test('may be in the same Conductor workflow at once, each separately', async () => {
    await using ray = await RaymondRig.setup();
    ray.rig.write('.meow/config.toml', '[validators.ok]\ncommand = "sleep 0.2"\n');
    const routes = ['completed', 'error', 'killed_timeout', 'killed_idle', 'killed_policy'];
    ray.rig.write(
      'check.yaml',
      `workflow_id: check
version: 1
description: x
entry_step: check
steps:
  - id: check
    opcode: RUN_VALIDATION
    run: [ok]
    routes: { ${routes.map((route) => `${route}: STOP`).join(', ')} }
`,
    );
    ray.folder('flow', {
      'START.sh': `echo '<fork next="CALL">CALL</fork><fork next="CALL">CALL</fork>'`,
      'CALL.sh': `echo '<call-workflow return="END">../check.yaml</call-workflow>'`,
      'END.sh': `echo '<result>end</result>'`,
    });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    const { steps } = await ray.rig.status('r');
    const checks = Object.keys(steps).filter((id) => id.includes('check#'));
    expect(checks.toSorted()).toEqual(['check#1', 'main_call1.check#1', 'main_call2.check#1']);
  });

  test('one answer may start several, with a goto that agrees or without one', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': 'Begin.',
      'NEXT.md': 'Next.',
      'W.md': '<result>{{n}}</result>',
      'V.md': '<result>v</result>',
    });
    ray.answers(
      {
        to: 'Begin',
        says: '<fork next="NEXT.md" n="1">W.md</fork>\n<fork next="NEXT.md" n="2">W</fork><fork next="NEXT">V.md</fork>',
      },
      { to: 'Next', says: '<fork n="4">W.md</fork><goto>V.md</goto>' },
    );
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(
      ray
        .turns()
        .map(({ step }) => step)
        .toSorted(),
    ).toEqual(['main.1.START', 'main.2.NEXT', 'main.3.V', 'main_v3.1.V', 'main_w1.1.W', 'main_w2.1.W', 'main_w4.1.W']);
  });

  test('may be workflows of another language, also several of the same', async () => {
    await using ray = await RaymondRig.setup();
    ray.rig.write(
      'tools.meow.toml',
      `[main]\n[main.variables]\nitem = {}\n${shellStep('keep', 'echo {{item}} >> kept')}`,
    );
    ray.folder('flow', {
      'START.md': '<fork-workflow next="NEXT.md" item="1">../tools.meow.toml</fork-workflow>',
      'NEXT.md': '<fork-workflow next="LAST.md" item="2">../tools.meow.toml</fork-workflow>',
      'LAST.md': '<function-workflow return="END.md" input="3">../tools.meow.toml</function-workflow>',
      'END.md': '<result>end</result>',
    });
    expect(await ray.run('flow', '--var', 'item=3')).toMatchObject({ code: 0, stderr: '' });
    expect(ray.rig.read('kept').trim().split('\n').toSorted()).toEqual(['1', '2', '3']);
    const steps = Object.keys((await ray.rig.status('r')).steps).filter((step) => step.endsWith('.keep'));
    expect(steps.toSorted()).toEqual(['main.3.LAST.keep', 'main_toolsm1.keep', 'main_toolsm2.keep']);
  });

  test('forks with different next states are rejected with a reminder', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.', 'NEXT.md': '<result>x</result>', 'W.md': '<result>w</result>' });
    ray.answers(
      { to: 'Begin', says: '<fork next="NEXT.md">W.md</fork><fork next="W.md">W.md</fork>' },
      { to: 'same', says: '<fork next="NEXT.md">W.md</fork><goto>W.md</goto>', times: 1 },
      { to: 'same', says: '<result>so be it</result>' },
    );
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(0);
    expect(stdout.match(/the forks of the answer do not continue at the same state/g)).toHaveLength(2);
  });

  test('--max-agents limits how many work at once; the others wait', async () => {
    await using ray = await RaymondRig.setup();
    const forks = Array.from({ length: 6 }, (_, n) => `<fork next="NEXT.md" n="${n}">WORKER.md</fork>`);
    ray.folder('flow', { 'START.md': forks.join('\n'), 'WORKER.md': 'Work.', 'NEXT.md': '<result>end</result>' });
    ray.answers({ to: 'Work', says: '<result>worked</result>', after: 'go' });
    const live = ray.rig.start('run', 'flow', '--id', 'r', '--max-agents', '2');
    const begun = (): number => ray.turns().filter(({ step }) => step.includes('WORKER')).length;
    await until(() => begun() >= 1 && ray.turns().length === 3, 'two agents to work');
    const { counts } = await ray.rig.status('r');
    expect(counts).toMatchObject({ running: 2, pending: 5 });
    ray.rig.write('go', '');
    expect(await live.ended).toMatchObject({ code: 0 });
    expect(begun()).toBe(6);
  });

  test('one of five fails: four finish, the run fails, and meow resume retries only that one', async () => {
    await using ray = await RaymondRig.setup();
    const forks = [1, 2, 3, 4, 5].map((n) => `<fork next="NEXT.md" n="${n}">WORKER.md</fork>`);
    ray.folder('flow', {
      'START.md': forks.join('\n'),
      'WORKER.md': 'Work on {{n}}. <goto>FINISH.md</goto>',
      'FINISH.md': 'Finish {{n}}. <result>{{n}}</result>',
      'NEXT.md': '<result>end</result>',
    });
    ray.answers({ to: 'Work on 3', says: 'out of memory', exit: 9, times: 1 });
    const failed = await ray.run('flow');
    expect(failed.code).toBe(1);
    expect(failed.stdout).toMatch(/^failed in .*: 10 done, 1 failed$/m);
    expect(failed.stdout).toContain('failed: main_worker3.1.WORKER (exit 9): out of memory');
    const before = ray.turns().length;
    expect(before).toBe(11);

    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
    expect(
      ray
        .turns()
        .slice(before)
        .map(({ step }) => step),
    ).toEqual(['main_worker3.1.WORKER', 'main_worker3.2.FINISH']);
    expect(ray.prompt('main_worker3.2.FINISH')).toMatch('Finish 3.');
    expect((await ray.rig.status('r')).counts).toEqual({ pending: 0, running: 0, done: 12, failed: 0, skipped: 0 });
  });

  test('main may end before its workers, and may fail without stopping them', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<fork next="NEXT.md">WORKER.md</fork>',
      'WORKER.md': 'Work.',
      'WORKED.md': '<result>worked</result>',
      'NEXT.md': 'Next.',
    });
    ray.answers({ to: 'Next', says: 'no', exit: 1 }, { to: 'Work', says: '<goto>WORKED.md</goto>', after: 'go' });
    const live = ray.rig.start('run', 'flow', '--id', 'r');
    await ray.rig.decided('r', 'step-failed main.2.NEXT');
    ray.rig.write('go', '');
    expect(await live.ended).toMatchObject({ code: 1 });
    expect(ray.rig.decisions('r')).toContain('step-done main_worker1.2.WORKED');
  });
});

describe('the return stack', () => {
  const FLOW = {
    'START.md': '<call return="BACK.md">LOOK.md</call>',
    'LOOK.md': '<call return="FOUND.md">DEEP.md</call>',
    'DEEP.md': '<reset>AFRESH.md</reset>',
    'AFRESH.md': '<result>from afresh</result>',
    'FOUND.md': '<result>found {{result}}</result>',
    'BACK.md': '<result>back {{result}}</result>',
  };

  test('is dropped by a reset, with a warning', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', FLOW);
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(0);
    expect(stdout).toContain('main: a reset dropped 2 pending return(s)');
    expect(ray.turns().map(({ step }) => step)).toEqual([
      'main.1.START',
      'main.2.LOOK',
      'main.3.DEEP',
      'main.4.AFRESH',
    ]);
    expect((await statusOf(ray)).warnings).toEqual(['main: a reset dropped 2 pending return(s)']);
  });

  test.each([
    ['the front matter of the first state', { 'START.md': `---\nreset: keep-stack\n---\n${FLOW['START.md']}` }],
    ['workflow.yaml', { 'workflow.yaml': 'reset: keep-stack\n' }],
  ])('is kept if %s says keep-stack', async (_where, more) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { ...FLOW, ...more });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(0);
    expect(stdout).not.toContain('dropped');
    expect(ray.turns().map(({ step, session }) => `${step} ${session}`)).toEqual([
      'main.1.START fresh',
      'main.2.LOOK fork main.1.START',
      'main.3.DEEP fork main.2.LOOK',
      'main.4.AFRESH fresh',
      'main.5.FOUND resume main.2.LOOK',
      'main.6.BACK resume main.1.START',
    ]);
    expect(ray.prompt('main.6.BACK')).toBe('<result>back found from afresh</result>');
  });
});

describe('a budget in workflow.yaml', () => {
  test('counts unless the command line has another', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'workflow.yaml': 'default_budget: 0.5\n', 'START.md': 'Begin.', 'NEXT.md': 'End.' });
    ray.answers({ to: 'Begin', says: '<goto>NEXT.md</goto>', usd: 0.6 }, { to: 'End', says: '<result>end</result>' });
    const paused = await ray.run('flow');
    expect(paused).toMatchObject({ code: 3, stdout: expect.stringContaining('the budget of $0.5 is spent ($0.60)') });
    expect(await ray.rig.meow('resume', 'r', '--budget-usd', '5')).toMatchObject({ code: 0 });
    expect(await ray.rig.meow('run', 'flow', '--budget-usd', '1', '--id', 'other')).toMatchObject({ code: 0 });
  });
});

describe('budgets', () => {
  const LOOP = { 'START.md': 'Go round. <goto>START.md</goto>' };

  test('$1.00 at $0.20 a turn: the run pauses after five turns; with more budget it continues, and the sums are right', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { ...LOOP, 'END.md': '<result>end</result>' });
    ray.answers(
      { to: 'Go round', says: '<goto>START.md</goto>', usd: 0.2, tokens: 100, times: 8 },
      { to: 'Go round', says: '<goto>END.md</goto>', usd: 0.2, tokens: 100 },
    );
    const paused = await ray.run('flow', '--budget-usd', '1.00');
    expect(paused.code).toBe(3);
    expect(paused.stdout).toContain('the budget of $1 is spent ($1.00)');
    expect(paused.stdout).toContain('meow resume r --budget-usd N');
    expect(paused.stdout).toMatch(/^paused in \S+ for \$1\.00: /m);
    expect((await ray.rig.meow('list')).stdout).toMatch(/ COST .*\nr +paused .* \$1\.00 /);
    expect(ray.turns()).toHaveLength(5);
    expect(await statusOf(ray)).toMatchObject({ status: 'paused', cost: { usd: 1, tokens: 500, unknown_turns: 0 } });

    // Without a larger budget, nothing more is spent.
    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 3 });
    expect(ray.turns()).toHaveLength(5);

    expect(await ray.rig.meow('resume', 'r', '--budget-usd', '5')).toMatchObject({ code: 0 });
    const status = await statusOf(ray);
    expect(status.cost.usd).toBeCloseTo(1.8);
    expect(status.cost.tokens).toBe(900);
    expect(ray.turns().at(-1)).toMatchObject({ step: 'main.10.END', session: 'resume main.1.START' });
  });

  test('with several working agents, running turns may finish, and nothing new starts', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<fork next="WORK.md">WORK.md</fork><fork next="WORK.md">WORK.md</fork>',
      'WORK.md': 'Work. <goto>WORK.md</goto>',
    });
    ray.answers({ to: 'Work', says: '<goto>WORK.md</goto>', tokens: 400 });
    const paused = await ray.run('flow', '--budget-tokens', '1000');
    expect(paused.code).toBe(3);
    // One turn that exceeds the budget, and two that ran in parallel.
    expect((await statusOf(ray)).cost.tokens).toBeLessThanOrEqual(2000);
    expect(ray.turns().length).toBeLessThanOrEqual(6);
  });

  test('a limit stays in force if meow resume does not change it', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', LOOP);
    ray.answers({ to: 'Go round', says: '<goto>START.md</goto>', usd: 0.5 });
    expect(await ray.run('flow', '--budget-usd', '1')).toMatchObject({ code: 3 });
    expect(await ray.rig.meow('resume', 'r', '--max-agents', '3')).toMatchObject({ code: 3 });
    expect(ray.turns()).toHaveLength(2);
  });

  test('--max-transitions pauses with a clear message, and can be raised', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', LOOP);
    const paused = await ray.run('flow', '--max-transitions', '4');
    expect(paused.code).toBe(3);
    expect(paused.stdout).toContain('the limit of 4 transitions is reached');
    expect(paused.stdout).toContain('meow resume r --max-transitions N');
    const made = ray.turns().length;
    expect(made).toBe(4);
    expect(await ray.rig.meow('resume', 'r', '--max-transitions', '6')).toMatchObject({ code: 3 });
    expect(ray.turns()).toHaveLength(6);
  });

  test('reminders are included in the cost', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.' });
    ray.answers({ to: '', says: 'hm', usd: 0.25, times: 2 }, { to: '', says: '<result>x</result>', usd: 0.25 });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect((await statusOf(ray)).cost.usd).toBe(0.75);
  });

  test('a turn without a price is counted as unknown', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.' });
    ray.answers({ to: '', says: '<result>x</result>', usd: null, tokens: 7 });
    expect(await ray.run('flow', '--budget-usd', '1')).toMatchObject({ code: 0 });
    expect((await statusOf(ray)).cost).toEqual({ usd: null, tokens: 7, unknown_turns: 1 });
  });
});

describe('a usage limit', () => {
  test('parks the agent until it resets, shows until when, uses up no retry, and lets others work', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<fork next="NEXT.md">WORKER.md</fork>',
      'WORKER.md': '---\nretries: 0\n---\nWork.',
      'NEXT.md': '<result>end</result>',
    });
    ray.answers(
      { to: 'Work', says: 'resets soon', limitUntil: Date.now() + 2_000, times: 1 },
      { to: 'Work', says: '<result>worked</result>' },
    );
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(0);
    expect(stdout).toMatch(/main_worker1\.1\.WORKER +failed: the agent has reached a usage limit: .*resets soon/);
    expect((await ray.rig.status('r')).steps['main_worker1.1.WORKER']).toMatchObject({ status: 'done', attempt: 2 });
  });

  test('without a known end parks the agent; others work to their end, and then the run pauses', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<fork next="NEXT.md">WORKER.md</fork>',
      'WORKER.md': '---\nretries: 0\n---\nWork.',
      'NEXT.md': '<goto>LAST.md</goto>',
      'LAST.md': '<result>end</result>',
    });
    ray.answers({ to: 'Work', says: 'no more today', limitUntil: null, times: 2 });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(3);
    expect(stdout).toMatch(/WORKER +parked: the agent has reached a usage limit: no more today — continues on resume/);
    expect(stdout).toContain('(main_worker1.1.WORKER: the agent has reached a usage limit: no more today)');
    expect(stdout).toMatch(/^next: meow resume r$/m);
    const status = await ray.rig.status('r');
    expect(status).toMatchObject({ status: 'paused', counts: { done: 3, failed: 0, pending: 1 } });
    expect(status.steps['main_worker1.1.WORKER']).toMatchObject({ error: { type: 'limit_reached' } });
    expect((await ray.rig.meow('why', 'r', 'main_worker1.1.WORKER')).stdout).toContain('usage limit: no more today');
    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 3 });
    ray.answers({ to: 'Work', says: '<result>worked</result>' });
    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
    expect(ray.turns().filter(({ step }) => step === 'main_worker1.1.WORKER')).toMatchObject([
      { session: 'fresh' },
      { session: 'resume main_worker1.1.WORKER' },
      { session: 'resume main_worker1.1.WORKER' },
    ]);
  });

  test('that parks an agent is tried again by the next engine, also if others were still working', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<fork next="NEXT.md">WORKER.md</fork>',
      'WORKER.md': 'Work.',
      'NEXT.md': 'Wait.',
    });
    ray.answers(
      { to: 'Work', says: 'no more today', limitUntil: null, times: 1 },
      { to: 'Work', says: '<result>worked</result>' },
      { to: 'Wait', says: '<result>end</result>', after: 'go' },
    );
    const live = ray.rig.start('run', 'flow', '--id', 'r');
    await ray.rig.decided('r', 'step-parked main_worker1.1.WORKER');
    await ray.rig.decided('r', 'step-started main.2.NEXT');
    live.kill('SIGKILL');
    await live.ended;
    const resumed = ray.rig.start('resume', 'r');
    await ray.rig.decided('r', 'step-done main_worker1.1.WORKER');
    ray.rig.write('go', '');
    expect(await resumed.ended).toMatchObject({ code: 0 });
  });

  test.each([Date.now() + 86_400_000, null])('with --no-wait the agent fails, and so does the run', async (until) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.' });
    ray.answers({ to: '', says: 'resets tomorrow', limitUntil: until });
    const { code, stdout } = await ray.run('flow', '--no-wait');
    expect(code).toBe(1);
    expect(stdout).toContain('usage limit');
    expect(ray.turns()).toHaveLength(1);
  });

  test('that a program reports in words is recognized by the adapter’s patterns', async () => {
    const wording = `
[[limits]]
pattern = 'Claude AI usage limit reached\\|(\\d+)'
reset = "epoch"
`;
    await using ray = await RaymondRig.setup('chosen', wording);
    ray.folder('flow', { 'START.md': 'Begin.' });
    const reset = Math.ceil(Date.now() / 1000) + 1;
    ray.answers(
      { to: '', says: `Claude AI usage limit reached|${reset}`, exit: 1, times: 1 },
      { to: '', says: '<result>end</result>' },
    );
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(Date.now() / 1000).toBeGreaterThanOrEqual(reset);
  });

  test('a parked agent stays parked after its engine was killed', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.' });
    ray.answers({ to: '', says: 'later', limitUntil: Date.now() + 3_600_000, times: 1 });
    const live = ray.rig.start('run', 'flow', '--id', 'r');
    await ray.rig.decided('r', 'step-failed-once main.1.START');
    live.kill('SIGKILL');
    await live.ended;
    const resumed = ray.rig.start('resume', 'r');
    await ray.rig.decided('r', 'run-resumed');
    expect((await ray.rig.meow('why', 'r', 'main.1.START')).stdout).toContain('It waits for its next attempt, at ');
    await ray.rig.meow('stop', 'r');
    await resumed.ended;
    expect(ray.turns()).toHaveLength(1);
  });
});

describe('time limits', () => {
  test.each(['timeout', 'idle_timeout'])(
    'an agent that is silent for its %s is killed with all its processes',
    async (key) => {
      await using ray = await RaymondRig.setup();
      ray.folder('flow', { 'START.md': `---\n${key}: 1s\n---\nBegin.` });
      ray.answers({ to: '', says: '', hangs: true });
      const { code, stdout } = await ray.run('flow');
      expect(code).toBe(1);
      expect(stdout).toContain('failed: main.1.START (timeout, attempt 2): the agent gave no sign of life for 1.0s');
      expect(await ray.rig.left()).toEqual([]);
    },
  );

  test.each(['timeout', 'total_timeout'])('a visit that exceeds its %s is tried once more', async (key) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': `---\n${key}: 1s\n---\nBegin.` });
    ray.answers({ to: '', says: '', hangs: true, times: 1 }, { to: '', says: '<result>end</result>' });
    expect(await ray.run('flow')).toMatchObject({ code: 0, stderr: '' });
    expect(ray.turns()).toHaveLength(2);
    expect(await ray.rig.left()).toEqual([]);
  });

  test('a turn that exceeds its total time is killed', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': '---\ntotal_timeout: 1s\n---\nBegin.' });
    ray.answers({ to: '', says: '', hangs: true });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(1);
    expect(stdout).toContain('failed: main.1.START (timeout, attempt 2): timed out after 1.0s');
    expect(await ray.rig.left()).toEqual([]);
  });
});

describe('time limits of scripts', () => {
  test('a script that prints now and then outlives its timeout, a silent one does not', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'workflow.yaml': 'timeout: 2s\n',
      'START.sh': 'for i in 1 2 3 4 5; do echo $i; sleep 0.6; done; echo "<goto>NEXT.sh</goto>"',
      'NEXT.sh': 'sleep 600; echo "<result>end</result>"',
    });
    const { code, stdout } = await ray.run('flow');
    expect({ code, stdout }).toEqual({
      code: 1,
      stdout: expect.stringContaining('main.2.NEXT (timeout, attempt 2): it was silent'),
    });
    expect(await ray.rig.left()).toEqual([]);
  });
});

describe('several parallel runs of one project', () => {
  test('are independent: each has its own sessions, state and end', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': 'For {{who}}. <call return="NEXT.md">LOOK.md</call>',
      'LOOK.md': 'Look for {{who}}. <result>found {{who}}</result>',
      'NEXT.md': 'Wait with {{result}}.',
    });
    const ids = ['a', 'b', 'c', 'd'];
    for (const id of ids) ray.answers({ to: `Wait with found ${id}`, says: `<result>end ${id}</result>`, after: 'go' });
    const live = ids.map((id) => ray.rig.start('run', 'flow', '--id', id, '--var', `who=${id}`));
    for (const id of ids) await ray.rig.decided(id, 'step-started main.3.NEXT');
    process.kill(ray.rig.enginePid('a'), 'SIGKILL');
    await live[0]?.ended;
    ray.rig.write('go', '');
    for (const each of live.slice(1)) expect(await each.ended).toMatchObject({ code: 0 });
    expect(await ray.rig.meow('resume', 'a')).toMatchObject({ code: 0 });
    const ended = await Promise.all(ids.map((id) => ray.rig.status(id)));
    expect(ended).toMatchObject(ids.map((id) => ({ id, status: 'done', result: `end ${id}`, vars: { who: id } })));
    const sessions = ended.flatMap(({ steps }) => Object.values(steps).map(({ outputs }) => outputs['session_id']));
    expect(new Set(sessions).size).toBe(2 * ids.length);
    expect(ray.turns().map(({ history }) => history)).toEqual(expect.arrayContaining([['main.1.START']]));
    expect(ray.turns()).toHaveLength(3 * ids.length);
  });
});
