// Gates of Conductor runs: only people pass them, also while no engine runs, and some do not wait.

import { expect, test } from 'vitest';
import { until } from '../rig/rig.ts';
import { ConductorRig, events, gate, leadsTo, validate, work } from '../fixtures/conductor/rig.ts';

const END = { opcode: 'STOP' };
const OPEN = 'gate-asked ask#1';

/** A gate as the first step; nothing here needs a repository. */
async function asking(more: Readonly<Record<string, unknown>> = {}, config = ''): Promise<ConductorRig> {
  const made = await ConductorRig.setup({}, config);
  made.workflow({
    ask: gate({ gate_approved: 'yes', gate_rejected: 'no', gate_timed_out: 'late' }, { timeout: '1h', ...more }),
    yes: END,
    no: { opcode: 'STOP', verdict: 'failure', reason: 'somebody said no' },
    late: { opcode: 'STOP', verdict: 'failure', reason: 'nobody came' },
  });
  return made;
}

async function killedAtGate(made: ConductorRig): Promise<void> {
  const live = made.rig.start('run', 'w.yaml', '--id', 'r');
  await made.rig.decided('r', OPEN);
  live.kill('SIGKILL');
  await live.ended;
}

test('section 5: an open gate survives kill -9, and an approver decides it while no engine runs', async () => {
  await using made = await asking({ approvers: ['ada', 'grace'], reason: 'Is it good?' });
  const { rig } = made;
  await killedAtGate(made);
  expect((await rig.meow('gates')).stdout).toMatch(/^r +ask +ask#1 .*Is it good\?/m);
  const refused = await rig.meow('approve', 'r', 'ask', '--as', 'bob');
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('bob may not decide gate ask: its approvers are ada, grace');
  expect(await rig.meow('approve', 'r', 'ask', '--as', 'grace', '--notes', 'fine')).toMatchObject({ code: 0 });
  expect((await rig.meow('reject', 'r', 'ask', '--as', 'ada')).code, 'the first decision stands').toBe(2);
  expect(await rig.meow('resume', 'r')).toMatchObject({ code: 0 });
  expect(await made.outcomes()).toEqual(['ask#1 gate_approved', 'yes#1 completed']);
  expect(made.artifact('ask/1/gate_request.json')).toMatchObject({
    step_id: 'ask',
    reason: 'Is it good?',
    approvers: ['ada', 'grace'],
  });
  expect(made.artifact('ask/1/gate_outcome.json')).toMatchObject({
    outcome: 'gate_approved',
    decided_by: 'grace',
    notes: 'fine',
    decided_at: expect.stringMatching(/Z$/),
  });
});

test('a text is not an approval: meow answer leaves the gate open, with and without its name', async () => {
  await using made = await asking();
  const { rig } = made;
  await killedAtGate(made);
  for (const words of [['no, not yet'], ['ask', 'no, not yet']]) {
    expect(await rig.meow('answer', 'r', ...words)).toEqual({
      stdout: '',
      stderr:
        'meow: gate ask asks for approval, and takes no answer\n' +
        '  decide: meow approve r ask --notes TEXT, or meow reject r ask --reason TEXT\n',
      code: 2,
    });
  }
  expect(await rig.status('r')).toMatchObject({ gates: [{ id: 'ask', status: 'open' }] });
});

test('section 5: a decision by anybody else is refused, also while the engine runs', async () => {
  await using made = await asking({ approvers: ['ada'] });
  const live = made.rig.start('run', 'w.yaml', '--id', 'r');
  await made.rig.decided('r', OPEN);
  expect(await made.rig.meow('approve', 'r', 'ask', '--as', 'bob')).toMatchObject({ code: 2 });
  expect(await made.rig.meow('reject', 'r', 'ask', '--as', 'ada', '--reason', 'not yet')).toMatchObject({ code: 0 });
  expect(await live.ended).toMatchObject({ code: 1 });
  expect(await made.outcomes()).toEqual(['ask#1 gate_rejected', 'no#1 completed']);
  expect(made.artifact('ask/1/gate_outcome.json')).toMatchObject({ outcome: 'gate_rejected', decided_by: 'ada' });
});

test('section 5: a gate times out, even while no engine runs', async () => {
  await using made = await asking({ timeout: '1s' });
  await killedAtGate(made);
  const { stdout, code } = await made.rig.meow('resume', 'r');
  expect(code).toBe(1);
  expect(stdout).toContain('nobody came');
  expect(await made.outcomes()).toEqual(['ask#1 gate_timed_out', 'late#1 completed']);
  expect(made.artifact('ask/1/gate_outcome.json')).toMatchObject({ outcome: 'gate_timed_out', decided_by: null });
  expect(events(made.rig).map(({ event_type: type }) => type)).toContain('gate_timed_out');
});

test.each(['queue_for_review', 'requires_daily_review'])('%s does not wait, and stays listed', async (type) => {
  await using made = await ConductorRig.setup();
  const { rig } = made;
  made.agents({ work: 'while [ ! -e "$AGENT_FOLDER/go" ]; do sleep 0.02; done; echo done' });
  made.workflow({
    note: { opcode: 'GATE', gate: type, reason: 'Look at it some day.', routes: { completed: 'work' } },
    work: work('STOP'),
  });
  const live = rig.start('run', 'w.yaml', '--id', 'r');
  await rig.decided('r', 'step-started work#1');
  expect((await rig.meow('gates')).stdout).toMatch(/^r +note +note#1 .*Look at it some day\./m);
  expect(await rig.meow('approve', 'r', 'note', '--as', 'ada')).toMatchObject({ code: 0 });
  expect((await rig.meow('gates')).stdout).not.toMatch('note');
  rig.write('.agent/go', '');
  expect(await live.ended).toMatchObject({ code: 0 });
  expect(await made.outcomes()).toEqual(['note#1 completed', 'work#1 completed', 'STOP#1 completed']);
  expect(events(rig)).toContainEqual(expect.objectContaining({ event_type: 'gate_approved', visit: 'note#1' }));
});

test('a gate that is visited again needs a new decision', async () => {
  await using made = await ConductorRig.setup();
  const { rig } = made;
  made.workflow({
    ask: gate({ gate_approved: 'STOP', gate_rejected: 'again' }),
    again: validate('ask', ['check']),
  });
  rig.write('.meow/config.toml', '[validators.check]\ncommand = "true"\n');
  const live = rig.start('run', 'w.yaml', '--id', 'r');
  await rig.decided('r', OPEN);
  await rig.meow('reject', 'r', 'ask');
  await rig.decided('r', 'gate-asked ask#2');
  expect((await rig.meow('gates')).stdout).toMatch(/^r +ask +ask#2 /m);
  await rig.meow('approve', 'r', 'ask');
  expect(await live.ended).toMatchObject({ code: 0 });
  const decided = events(rig).filter(({ event_type: type }) => type.startsWith('gate_'));
  expect(decided.map(({ event_type: type, visit }) => `${type} ${visit}`)).toEqual([
    'gate_requested ask#1',
    'gate_rejected ask#1',
    'gate_requested ask#2',
    'gate_approved ask#2',
  ]);
});

test('a command reminds people of open gates repeatedly until somebody decides', async () => {
  const remind = 'echo "$MEOW_WORKFLOW $MEOW_GATE $MEOW_STEP $MEOW_GATE_PROMPT" >> .agent/reminded';
  await using made = await asking(
    { reason: 'Is it good?' },
    `[gates]\nremind = ${JSON.stringify(remind)}\nremind_every = "50ms"\n`,
  );
  const { rig } = made;
  const told = (): readonly string[] =>
    rig.exists('.agent/reminded') ? rig.read('.agent/reminded').split('\n').slice(0, -1) : [];
  const live = rig.start('run', 'w.yaml', '--id', 'r');
  await until(() => told().length > 2, 'three reminders');
  await rig.meow('approve', 'r', 'ask');
  expect(await live.ended).toMatchObject({ code: 0, stderr: '' });
  expect(new Set(told())).toEqual(new Set(['r ask ask#1 Is it good?']));
});

test('a failing reminder command is reported once, and blocks nothing', async () => {
  await using made = await asking({}, '[gates]\nremind = "exit 3"\nremind_every = "20ms"\n');
  const live = made.rig.start('run', 'w.yaml', '--id', 'r');
  await live.line(/the command that reminds of gates failed: exit code 3/);
  await made.rig.meow('approve', 'r', 'ask');
  const { code, stdout, stderr } = await live.ended;
  expect(code).toBe(0);
  expect((stdout + stderr).match(/reminds of gates/g)).toHaveLength(1);
});

test('a validator that finished while no engine ran does not run again', async () => {
  await using made = await ConductorRig.setup({}, '[validators.slow]\ncommand = "sh slow.sh"\n');
  const { rig } = made;
  rig.write(
    'slow.sh',
    `echo ran >> ${rig.path('.agent/ran')}; while [ ! -e ${rig.path('.agent/go')} ]; do sleep 0.02; done; exit 3`,
  );
  made.workflow({
    check: { opcode: 'RUN_VALIDATION', run: ['slow'], routes: leadsTo('STOP', 'seen') },
    seen: { ...END, verdict: 'success' },
  });
  const live = rig.start('run', 'w.yaml', '--id', 'r');
  await rig.appears('.agent/ran');
  live.kill('SIGKILL');
  await live.ended;
  rig.write('.agent/go', '');
  await until(() => rig.processes().length === 0, 'the validator to end');
  expect(await rig.meow('resume', 'r')).toMatchObject({ code: 0 });
  expect(rig.read('.agent/ran')).toBe('ran\n');
  expect(await made.outcomes()).toEqual(['check#1 error', 'seen#1 completed']);
  const { steps } = await rig.status('r');
  expect(steps['check#1']?.outputs['validators']).toEqual([
    expect.objectContaining({ id: 'slow', outcome: 'error', exit_code: 3 }),
  ]);
});
