// Agents and steps that try to pass a gate of a run: with the commands that people use, and with messages of their own.

import { execFileSync } from 'node:child_process';
import { createConnection } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ConductorRig, gate, work } from '../fixtures/conductor/rig.ts';
import { RaymondRig } from '../fixtures/raymond/rig.ts';
import { decisionKey, proven } from '../rig/decision.ts';
import { Rig, shellStep, until } from '../rig/rig.ts';

const HINT = '  a person must decide, in a terminal outside of the run\n';
const OWN = `meow: a run cannot decide its own gates\n${HINT}`;
const OTHER = `meow: steps and agents of a run cannot decide gates\n${HINT}`;
const APPROVAL = { type: 'approval', gate_id: 'review', approved: true, by: 'ada' } as const;

function asking(flags = ''): string {
  return shellStep('gate', `meow await-approval review ${flags} > said; echo $? > status`);
}

/** A run `g` that waits for the gate `review` after a step has made an attack. */
async function attacked(script: string, flags = ''): Promise<{ rig: Rig; run: ReturnType<Rig['start']> }> {
  const rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${asking(flags)}${shellStep('attack', `${script}; touch attacked`)}`);
  const run = rig.start('run', 'w.meow.toml', '--id', 'g');
  await rig.appears('attacked');
  await rig.decided('g', 'gate-asked gate');
  return { rig, run };
}

/** Ends the run as a person would. */
async function decidedByPerson(rig: Rig, run: ReturnType<Rig['start']>): Promise<void> {
  expect(rig.decisions('g')).not.toContain('gate-decided');
  expect(await rig.meow('reject', 'g', 'review')).toMatchObject({ code: 0 });
  expect((await run.ended).code).toBe(0);
  expect(rig.read('status')).toBe('1\n');
}

/** Sends a line to the socket of the run `g`. */
function tell(rig: Rig, message: object): Promise<unknown> {
  return new Promise((resolve) => {
    const connection = createConnection(rig.path('.meow/workflows/g/sock'));
    connection.write(`${JSON.stringify(message)}\n`);
    connection.setEncoding('utf8').once('data', (line: string) => {
      connection.destroy();
      resolve(JSON.parse(line));
    });
  });
}

async function warnings(rig: Rig): Promise<readonly string[]> {
  const { stdout } = await rig.meow('status', 'g', '--json');
  return (JSON.parse(stdout) as { warnings: readonly string[] }).warnings;
}

function markOf(rig: Rig): string {
  const [first = ''] = rig.read('.meow/workflows/g/journal.jsonl').split('\n');
  return (JSON.parse(first) as { input: { request: { mark: string } } }).input.request.mark;
}

describe('with commands', () => {
  test.each([
    ['approve', 'meow approve g review --as ada'],
    ['reject', 'meow reject g review --as ada'],
    ['answer', 'meow answer g review yes --as ada'],
    ['without its marker in the environment', 'env -u MEOW_RUN meow approve g review'],
    ['without any of its variables', 'env -i PATH="$PATH" HOME="$HOME" meow approve g review'],
    ['with the name of an agent', 'meow approve g review --as agent:worker'],
    [
      'without its variables, in a session of its own',
      'env -i PATH="$PATH" HOME="$HOME" setsid -w meow approve g review',
    ],
  ])('a step cannot decide a gate of its own run: %s', async (_how, command) => {
    const { rig, run } = await attacked(`${command} 2> refusal; echo $? > code`);
    await using _ = rig;
    expect([rig.read('refusal'), rig.read('code')]).toEqual([OWN, '2\n']);
    await decidedByPerson(rig, run);
  });

  test('a step cannot decide a gate of another run', async () => {
    const { rig, run } = await attacked('true');
    await using _ = rig;
    rig.write('other.meow.toml', `[main]\n${shellStep('a', 'meow approve g review 2> refusal; echo $? > code')}`);
    await rig.meow('run', 'other.meow.toml', '--id', 'other');
    expect([rig.read('refusal'), rig.read('code')]).toEqual([OTHER, '2\n']);
    await decidedByPerson(rig, run);
  });

  test('a step that claims to be an agent cannot decide a gate that does not list it', async () => {
    const { rig, run } = await attacked('MEOW_AGENT=worker meow approve g review 2> refusal', '--approver ada');
    await using _ = rig;
    expect(rig.read('refusal')).toBe(OWN);
    expect(rig.decisions('g')).not.toContain('gate-decided');
    expect(await rig.meow('approve', 'g', 'review', '--as', 'ada')).toMatchObject({ code: 0 });
    await run.ended;
  });

  test('steps do not learn the path of the key', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `[main]\n${shellStep('a', 'env > variables', 'env = { MEOW_DECISION_KEY = "/x" }')}`);
    const key = { MEOW_DECISION_KEY: rig.path('a key') };
    expect(await rig.meowWith(key, 'run', 'w.meow.toml')).toMatchObject({ code: 0 });
    expect(rig.read('variables')).not.toContain('MEOW_DECISION_KEY');
  });
});

describe('with messages', () => {
  test('a message without a proof decides nothing on the socket, and the run warns of it', async () => {
    const { rig, run } = await attacked('true');
    await using _ = rig;
    const message = 'a decision about gate review was refused: it has no valid proof that a person made it';
    expect(await tell(rig, APPROVAL)).toEqual({ type: 'error', code: 'refused', message });
    expect(await tell(rig, { ...APPROVAL, id: 'again' })).toMatchObject({ type: 'error' });
    expect(await warnings(rig)).toEqual([message]);
    await decidedByPerson(rig, run);
  });

  test('a message without a proof decides nothing in the inbox, before the gate is asked and after', async () => {
    await using rig = await Rig.setup();
    const text = JSON.stringify(APPROVAL);
    const attack = `echo '${text}' > $MEOW_INBOX/early.tell; while [ -e $MEOW_INBOX/early.tell ]; do sleep 0.02; done`;
    const steps = [shellStep('attack', attack), asking().replace('\n\n', '\nneeds = ["attack"]\n')];
    rig.write('w.meow.toml', `[main]\n${steps.join('')}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'g');
    await rig.decided('g', 'gate-asked gate');
    rig.write('.meow/workflows/g/inbox/late.tell', text);
    await until(() => !rig.exists('.meow/workflows/g/inbox/late.tell'), 'the message to be handled');
    expect(await warnings(rig)).toHaveLength(1);
    await decidedByPerson(rig, run);
  });

  test('a message without a proof decides nothing that was left while no engine ran', async () => {
    const { rig, run } = await attacked('true');
    await using _ = rig;
    run.kill('SIGKILL');
    await run.ended;
    rig.write('.meow/workflows/g/inbox/a.tell', JSON.stringify(APPROVAL));
    // It does not stand in the way of a person either.
    expect(await rig.meow('reject', 'g', 'review')).toMatchObject({ code: 0 });
    expect((await rig.meow('resume', 'g')).code).toBe(0);
    expect(rig.read('status')).toBe('1\n');
    expect(await warnings(rig)).toHaveLength(1);
  });

  test('a proof that was used decides no later question, and no other one', async () => {
    await using rig = await Rig.setup();
    const again = shellStep('again', 'meow await-approval review; echo $? > status', 'needs = ["gate"]');
    rig.write('w.meow.toml', `[main]\n${asking()}${again}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'g');
    await rig.decided('g', 'gate-asked gate');
    const key = decisionKey(`${rig.home}/.meow/decision.key`);
    const message = proven(APPROVAL, { run: 'g', mark: markOf(rig), asking: 1, key });
    for (const other of [
      proven(APPROVAL, { run: 'other', mark: markOf(rig), asking: 1, key }),
      proven(APPROVAL, { run: 'g', mark: 'other', asking: 1, key }),
      proven(APPROVAL, { run: 'g', mark: markOf(rig), asking: 1, key: new Uint8Array(32) }),
      { ...message, by: 'grace' },
      { ...message, notes: 'with pleasure' },
      { ...message, approved: false },
      { ...message, gate_id: 'other' },
    ]) {
      expect(await tell(rig, other)).toMatchObject({ type: 'error', code: 'refused' });
    }
    expect(await tell(rig, message)).toMatchObject({ type: 'ack' });
    await rig.decided('g', 'gate-asked again');
    expect(await tell(rig, message)).toMatchObject({ type: 'error', code: 'refused' });
    expect(await tell(rig, { ...message, id: 'another' })).toMatchObject({ type: 'error', code: 'refused' });
    await rig.meow('reject', 'g', 'review');
    await run.ended;
    expect(rig.read('status')).toBe('1\n');
  });

  test('nobody replaces the question of a step, or hides it behind another', async () => {
    const waits = 'touch attacked; while [ ! -e ended ]; do sleep 0.02; done';
    const { rig, run } = await attacked(waits, '--prompt "May it be deleted?"');
    await using _ = rig;
    const ask = { type: 'await_approval', gate_id: 'review', prompt: 'Is it sunny?' };
    expect(await tell(rig, { ...ask, step: 'gate' })).toMatchObject({ type: 'error', code: 'refused' });
    void tell(rig, { ...ask, step: 'attack' });
    await rig.decided('g', 'gate-asked attack');
    const questions = JSON.parse((await rig.meow('gates', '--json')).stdout) as unknown;
    expect(questions).toMatchObject([{ prompt: 'gate: May it be deleted?\nattack: Is it sunny?' }]);
    rig.write('ended', '');
    await decidedByPerson(rig, run);
  });
});

describe('agents that a gate lists', () => {
  test('an agent decides a gate of a MEOW workflow in its session', async () => {
    await using rig = await Rig.setup();
    rig.write('.meow/adapters/judge/adapter.toml', '[adapter]\nname = "judge"\n[headless]\ncommand = "sh ./judge"\n');
    rig.write('judge', `${opened('g')}; meow approve g review --notes fine && meow done`);
    const agent = 'executor = "agent"\nagent = "judge"\nprompt = "Judge it."\nneeds = ["start"]\n';
    const spawn = '[[main.steps]]\nid = "start"\nexecutor = "spawn"\nagent = "judge"\nadapter = "judge"\n';
    const steps = `${spawn}[[main.steps]]\nid = "judge"\n${agent}`;
    rig.write('w.meow.toml', `[main]\n${asking('--approver agent:judge')}${steps}`);
    expect(await rig.meow('run', 'w.meow.toml', '--id', 'g')).toMatchObject({ code: 0 });
    expect([rig.read('status'), rig.read('said')]).toEqual(['0\n', 'fine\n']);
    expect((await rig.meow('trace', 'g')).stdout).toContain('gate review approved by agent:judge: fine');
  });

  test('the agent of a lane decides what another lane asks, and no other agent does', async () => {
    await using ray = await RaymondRig.setup();
    const decide = (file: string): string => `meow answer r yes 2> ${file}; echo $? > ${file}.code`;
    ray.folder('flow', {
      'START.md': 'Begin.',
      'ASK.md': 'Ask.',
      'END.md': 'It said {{input}}.',
      // Both wait until the gate is open.
      'OTHER.sh': `${opened('r')}; ${decide('other')}; echo '<result>tried</result>'`,
      'JUDGE.sh': `while [ ! -e other.code ]; do sleep 0.02; done; ${decide('judge')}; echo '<result>said</result>'`,
    });
    ray.answers(
      { to: 'Begin.', says: '<fork next="ASK.md">JUDGE.sh</fork><fork next="ASK.md">OTHER.sh</fork>' },
      { to: 'Ask.', says: '<ask next="END.md" approver="agent:main_judge1">Go on?</ask>' },
      { to: 'It said yes.', says: '<result>ended</result>' },
    );
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect([ray.rig.read('other'), ray.rig.read('other.code')]).toEqual([OWN, '2\n']);
    expect(ray.rig.read('judge.code')).toBe('0\n');
    const decided = ray.journal().flatMap(({ decisions }) => decisions.filter(({ kind }) => kind === 'gate-decided'));
    expect(decided).toMatchObject([{ verdict: { by: 'agent:main_judge1', proof: { kind: 'agent' } } }]);
  });

  test('the agent of a Conductor step decides a gate that lists the step', async () => {
    await using made = await ConductorRig.setup();
    made.workflow({
      implement: work('ask'),
      ask: gate({ gate_approved: 'yes', gate_rejected: 'STOP' }, { approvers: ['agent:implement'] }),
      yes: work('other'),
      other: gate({ gate_approved: 'STOP', gate_rejected: 'STOP' }, { approvers: ['agent:implement'] }),
    });
    const meow = 'meow approve r';
    made.agents({
      implement: `${meow} ask > $AGENT_FOLDER/said`,
      yes: `${meow} other 2> $AGENT_FOLDER/refused || true`,
    });
    const run = made.rig.start('run', 'w.yaml', '--id', 'r');
    await made.rig.decided('r', 'gate-asked other#1');
    expect(made.rig.read('.agent/said')).toContain('the decision is stored until one does');
    expect(made.rig.read('.agent/refused')).toBe(OWN);
    expect(await made.rig.meow('approve', 'r', 'other')).toMatchObject({ code: 2 });
    await made.rig.meow('stop', 'r');
    await run.ended;
  });
});

/** A shell command that waits until the run has asked for a gate. The pattern does not match itself, which is in the journal. */
function opened(run: string): string {
  return `while ! grep -q 'kind[^.]:[^.]gate-asked' .meow/workflows/${run}/journal.jsonl; do sleep 0.02; done`;
}

describe('signatures', () => {
  function makeKey(rig: Rig, name: string): string {
    const file = `${rig.home}/${name}`;
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', file]);
    return rig.read(`../home/${name}.pub`).trim();
  }

  test('only a signature of an allowed signer passes a gate that needs one', async () => {
    await using rig = await Rig.setup();
    rig.write('.meow/allowed_signers', `carol ${makeKey(rig, 'carol')}\n`);
    const mallory = makeKey(rig, 'mallory');
    rig.write('w.meow.toml', `[main]\n${asking('--approver ssh:carol --approver bob')}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'g');
    await rig.decided('g', 'gate-asked gate');
    const approve = (...flags: readonly string[]) => rig.meow('approve', 'g', 'review', ...flags);
    const [carols, mallorys] = [`${rig.home}/carol`, `${rig.home}/mallory`];
    expect((await approve('--as', 'carol')).stderr).toContain('gate review needs a signature');
    expect((await approve('--as', 'bob')).stderr).toContain('gate review needs a signature');
    expect((await approve('--as', 'carol', '--sign', mallorys)).stderr).toContain('its signature is not one of carol');
    expect((await approve('--as', 'bob', '--sign', carols)).stderr).toContain('its signature is not one of bob');
    // The engine knows the signers that it began with.
    rig.write('.meow/allowed_signers', `carol ${mallory}\n`);
    expect((await approve('--as', 'carol', '--sign', mallorys)).stderr).toContain(
      'has changed since the engine started',
    );
    expect((await rig.meow('gates')).stdout).toContain('ssh:carol, bob');
    expect(await approve('--as', 'carol', '--sign', carols, '--notes', 'fine')).toMatchObject({ code: 0 });
    expect((await run.ended).code).toBe(0);
    expect(rig.read('said')).toBe('fine\n');
    expect(rig.read('.meow/workflows/g/journal.jsonl')).toContain('BEGIN SSH SIGNATURE');
  });

  test('a signature is left for a run without an engine', async () => {
    await using rig = await Rig.setup();
    rig.write('keys/signers', `carol ${makeKey(rig, 'id')}\n`);
    rig.write('.meow/config.toml', '[gates]\nallowed_signers = "keys/signers"\n');
    rig.write('w.meow.toml', `[main]\n${asking('--approver ssh:carol')}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'g');
    await rig.decided('g', 'gate-asked gate');
    run.kill('SIGKILL');
    await run.ended;
    const sign = ['--as', 'carol', '--sign', `${rig.home}/id`];
    expect((await rig.meow('approve', 'g', 'review', ...sign)).stdout).toContain('takes effect when you run');
    expect((await rig.meow('resume', 'g')).code).toBe(0);
    expect(rig.read('status')).toBe('0\n');
  });

  test('a list of signers that appears while the engine runs does not count', async () => {
    await using rig = await Rig.setup();
    rig.write('w.meow.toml', `[main]\n${asking('--approver ssh:carol')}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'g');
    await rig.decided('g', 'gate-asked gate');
    rig.write('.meow/allowed_signers', `carol ${makeKey(rig, 'mallory')}\n`);
    const sign = ['--as', 'carol', '--sign', `${rig.home}/mallory`];
    expect((await rig.meow('approve', 'g', 'review', ...sign)).stderr).toContain('is read again on meow resume');
    expect(rig.decisions('g')).not.toContain('gate-decided');
    await rig.meow('stop', 'g');
    await run.ended;
  });

  test('a process that has left the run and has the key of the user cannot pass a gate that needs a signature', async () => {
    await using rig = await Rig.setup();
    decisionKey(`${rig.home}/.meow/decision.key`);
    rig.write('.meow/allowed_signers', `carol ${makeKey(rig, 'carol')}\n`);
    rig.write('attack', 'meow approve g review --as carol 2> refusal; echo $? > code');
    // Its parent has ended, and it has neither a variable nor an ancestor of the run.
    const waits = `(${opened('g')}; sh attack) < /dev/null > /dev/null 2>&1 &`;
    rig.write('escape', waits);
    const orphan = 'env -i PATH="$PATH" HOME="$HOME" setsid sh escape';
    rig.write('w.meow.toml', `[main]\n${asking('--approver ssh:carol')}${shellStep('attack', orphan)}`);
    const run = rig.start('run', 'w.meow.toml', '--id', 'g');
    await rig.appears('code');
    await until(() => rig.read('code') !== '', 'the attack to end');
    expect([rig.read('refusal'), rig.read('code')]).toEqual([expect.stringContaining('needs a signature'), '2\n']);
    const sign = ['--as', 'carol', '--sign', `${rig.home}/carol`];
    expect(await rig.meow('approve', 'g', 'review', ...sign)).toMatchObject({ code: 0 });
    expect((await run.ended).code).toBe(0);
  });
});
