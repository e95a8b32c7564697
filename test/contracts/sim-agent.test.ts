// The simulated agent as a program: its reactions to prompts, good and bad, with a `meow` that records its calls.

import { existsSync, readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import type { Expectation } from '../../src/ir/output.ts';
import { AgentRig, expected, failedWith } from './agent-rig.ts';
import { appears, gone } from './driver-command-rig.ts';

let rig: AgentRig;
afterEach(() => rig.close());

/** An agent `worker` with a script, and a first prompt for the step `task`. */
async function prompted(
  script: string,
  more: { expects?: readonly Expectation[]; prompt?: string } = {},
): Promise<void> {
  rig = new AgentRig({ script });
  await rig.spawned('worker');
  prompt('task', more.prompt ?? 'go', more.expects);
}

function prompt(step: string, text = 'go', expects: readonly Expectation[] = []): void {
  void rig.start(rig.prompting('worker', text, { id: `${step}#1`, expects }));
}

describe('without a script', () => {
  test('it reports a value for every declared output', async () => {
    const expects = [
      expected('title'),
      expected('count', 'number'),
      expected('approved', 'boolean'),
      expected('has_more', 'boolean'),
      expected('tasks', 'json'),
    ];
    await prompted('', { expects });
    const item = { id: 'sim-id', name: 'sim-name', title: 'sim-title', description: 'sim-description' };
    const outputs = { title: 'sim-title', count: 1, approved: true, has_more: false, tasks: [item] };
    await rig.called(`task|done --json ${JSON.stringify(outputs)}`);
  });

  test('it creates the files that it names', async () => {
    await prompted('', { expects: [expected('report', 'file_path')] });
    await rig.called('task|done --json {"report":"sim-worker-report.txt"}');
    expect(readFileSync(rig.path('sim-worker-report.txt'), 'utf8')).toContain('report');
  });

  test('it tries once more when its report is rejected, and then waits', async () => {
    rig = new AgentRig();
    rig.refuseDone(2);
    await rig.spawned('worker');
    prompt('task');
    prompt('next');
    await rig.called('next|done');
    expect(rig.calls()).toEqual(['task|done', 'task|done', 'next|done']);
    expect(rig.transcript('worker')).toContain('not so');
  });
});

describe('with a script', () => {
  test('it prints, writes, runs, emits and reports, with placeholders filled in', async () => {
    await prompted(`
[[on]]
do = [
  { say = "I am {{agent}}" },
  { write = "out/{{step}}.txt", text = "prompt {{n}}\\n" },
  { run = "echo $MEOW_STEP >> ran" },
  { event = "built", data = { step = "{{step}}", count = 2, list = [1] } },
  { done = { file = "out/{{step}}.txt", n = 3, deep = { a = [true] } }, notes = "by {{agent}}" },
]`);
    await rig.called('task|done --json {"file":"out/task.txt","n":3,"deep":{"a":[true]}} --notes by worker');
    expect(rig.calls()[0]).toBe('task|event built --data step=task --data count=2 --data list=[1]');
    expect(rig.transcript('worker')).toContain('I am worker');
    expect(readFileSync(rig.path('out/task.txt'), 'utf8')).toBe('prompt 1\n');
    expect(readFileSync(rig.path('ran'), 'utf8')).toBe('task\n');
  });

  test('it follows the first matching rule, as often as the rule says', async () => {
    await prompted(`
[[on]]
agent = "nobody"
do = [{ done = { rule = 1 } }]
[[on]]
step = "ta*"
prompt = "/^g.$/"
times = 2
do = [{ done = { rule = 2 } }]
[[on]]
prompt = "g"
do = [{ done = { rule = 3 } }]`);
    for (const step of ['tall', 'taut', 'last']) prompt(step);
    prompt('odd', 'x');
    await rig.called('odd|done');
    expect(rig.calls()).toEqual([
      'task|done --json {"rule":2}',
      'tall|done --json {"rule":2}',
      'taut|done --json {"rule":3}',
      'last|done --json {"rule":3}',
      'odd|done',
    ]);
  });

  test('it waits as long as the script says', async () => {
    await prompted('[[on]]\ndo = [{ wait = "30ms" }, { done = true }]');
    await rig.called('task|done');
  });

  test('it opens a gate and continues when the gate is passed', async () => {
    await prompted('[[on]]\ndo = [{ ask = "Shall I?", gate = "shall-{{agent}}" }, { done = true }]');
    await rig.called('task|done');
    expect(rig.calls()).toEqual(['task|await-approval shall-worker --prompt=Shall I?', 'task|done']);
    expect(rig.transcript('worker')).toContain('Shall I?');
  });
});

describe('misbehaving', () => {
  test('it crashes, and remembers that after it is started again', async () => {
    await prompted('[[on]]\ntimes = 1\ndo = [{ crash = 4 }]');
    expect(await rig.start(rig.attending('worker'))).toMatchObject({ failure: { kind: 'agent-crashed', code: 4 } });
    await rig.spawned('worker', { id: '@spawn worker#2', resumeSession: 's' });
    prompt('again');
    await rig.called('again|done');
  });

  test('it is killed by a signal', async () => {
    await prompted('[[on]]\ndo = [{ crash = "SIGTERM" }]');
    expect(await rig.start(rig.attending('worker'))).toMatchObject({ failure: { code: 143 } });
  });

  test('it reports twice, both times for the prompted step', async () => {
    await prompted('[[on]]\nstep = "task"\ndo = [{ done_twice = { a = 1 } }]');
    prompt('next');
    await rig.called('next|done');
    expect(rig.calls()).toEqual(['task|done --json {"a":1}', 'task|done --json {"a":1}', 'next|done']);
  });

  test('it reports wrong outputs, then correct ones', async () => {
    const expects = [expected('n', 'number')];
    await prompted('[[on]]\ndo = [{ wrong = { n = "many" } }, { wrong = true }, { done = true }]', { expects });
    await rig.called('task|done --json {"n":1}');
    expect(rig.calls()).toEqual(['task|done --json {"n":"many"}', 'task|done', 'task|done --json {"n":1}']);
  });

  test('it ignores the prompt', async () => {
    await prompted('[[on]]\nstep = "task"\ndo = [{ ignore = true }]');
    prompt('next');
    await rig.called('next|done');
    expect(rig.calls()).toEqual(['next|done']);
  });

  test('it reaches a limit, says so, and stops there', async () => {
    await prompted('[[on]]\nstep = "task"\ndo = [{ limit = "resets 4:20am" }]');
    prompt('next');
    await rig.called('next|done');
    expect(rig.calls()).toEqual(['next|done']);
    expect(rig.transcript('worker')).toContain('usage limit reached, resets 4:20am');
  });

  test.each(['{ stop = true }', '{ ask = "What now?" }', '{ say = "I am done!" }'])(
    'it stops without a report (%s); prompted again, it continues with the next rule',
    async (action) => {
      rig = new AgentRig({ script: `[[on]]\ndo = [${action}]\n[[on]]\ndo = [{ done = { second = true } }]` });
      rig.primeWith('go on');
      await rig.spawned('worker');
      prompt('task');
      await rig.called('task|done --json {"second":true}');
      expect(rig.calls()).toEqual(['task|prime --format prompt', 'task|done --json {"second":true}']);
    },
  );

  test('it stops without a report, and stays there without a prompt', async () => {
    await prompted('[[on]]\nstep = "task"\ndo = [{ stop = true }]\n[[on]]\nstep = "task"\ndo = [{ done = true }]');
    prompt('next');
    await rig.called('next|done');
    expect(rig.calls()).toEqual(['task|prime --format prompt', 'next|done']);
  });

  test('it asks for its prompt during its work', async () => {
    rig = new AgentRig({ script: '[[on]]\ndo = [{ prime = true }, { done = { a = 1 } }]' });
    rig.primeWith('go on');
    await rig.spawned('worker');
    prompt('task');
    await rig.called('task|done --json {"a":1}');
    expect(rig.calls()[0]).toBe('task|prime --format prompt');
  });
});

describe('an interrupt', () => {
  test('kills the processes of the agent, and drops the rest of the rule', async () => {
    const run = 'sleep 1000 & echo $! > there; wait; echo > late';
    await prompted(`[[on]]\nstep = "task"\ndo = [{ run = "${run}" }, { done = true }]`);
    const pid = Number(await appears(rig.path('there')));
    await rig.start(rig.prompting('worker', 'Escape', { mode: 'fire-forget' }));
    await gone(pid);
    prompt('next');
    await rig.called('next|done');
    expect(rig.calls()).toEqual(['next|done']);
    expect(existsSync(rig.path('late'))).toBe(false);
  });

  test('has no effect on a hard hang', async () => {
    rig = new AgentRig({ script: '[[on]]\ndo = [{ hang = "hard" }]', deliveryMs: 100 });
    await rig.spawned('worker');
    prompt('task');
    await rig.says('worker', 'hangs');
    const key = rig.prompting('worker', 'C-c', { mode: 'fire-forget' });
    expect(await rig.start(key)).toMatchObject(failedWith('not-delivered'));
  });
});
