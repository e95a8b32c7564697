import { describe, expect, test } from 'vitest';
import type { Json } from '../base/json.ts';
import { ok } from '../base/result.ts';
import { success } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import { manualClock, fakeRun } from '../../test/kernel-rig/fake-run.ts';
import type { FakeRun } from '../../test/kernel-rig/fake-run.ts';
import { MessageHandler } from './message-handler.ts';
import type { Answer } from './protocol.ts';
import { parseMessage } from './protocol.ts';

function setup(program: readonly string[] = ['a', 'b needs a']) {
  const taken = new Set<string>();
  const run = fakeRun(program);
  const clock = manualClock();
  let ids = 0;
  const handler = new MessageHandler({
    run,
    clock,
    promptText: ({ prompt }) => ok(`shown: ${JSON.stringify(prompt)}`),
    hasAccepted: (agent, effect) => taken.has(`${agent} ${effect}`),
    fileProblem: (path) => (path === 'there.txt' ? null : path === 'src' ? 'is a folder' : 'no such file'),
    newId: () => `made-${++ids}`,
  });
  run.watch((records, state) => handler.observe(records, state));
  const say = (message: object, gone = new AbortController().signal): Promise<Answer | null> => {
    const parsed = parseMessage(JSON.stringify(message), run.id);
    if (!parsed.ok) throw new Error(parsed.error);
    return handler.answer(parsed.value, gone);
  };
  const emit = (type: string, data: Json = {}, agent: string | null = null): Promise<Answer | null> =>
    say({ type: 'event', event_type: type, data, agent });
  return { run, clock, handler, say, emit, taken };
}

/** Whether it is answered without anything happening. */
async function isOpen(answer: Promise<unknown>): Promise<boolean> {
  const nothing = Symbol('nothing');
  const turns = async (): Promise<symbol> => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    return nothing;
  };
  return (await Promise.race([answer, turns()])) === nothing;
}

function fail(run: FakeRun, step: string): Promise<void> {
  return run.submit({
    kind: 'effect-finished',
    effect: `${step}#1`,
    outcome: { kind: 'failure', failure: failure('exit-nonzero', 'no') },
  });
}

const ACK = { kind: 'ack', success: true };

describe('events', () => {
  test('one that was emitted is acknowledged when it is durable, and has an id', async () => {
    const { run, emit } = setup();
    run.hold();
    const answer = emit('ping');
    expect(await isOpen(answer)).toBe(true);
    run.release();
    expect(await answer).toEqual(ACK);
    expect(run.state.events.latest).toMatchObject([{ id: 'made-1', type: 'ping' }]);
  });

  test('a step is handed the first that matches of those since it was ready, and each once (handler/2)', async () => {
    const { run, say, emit } = setup();
    const wait = { type: 'await_event', step: 'a', event_type: 'tool' };
    await emit('other');
    await emit('tool', { n: 1 });
    await emit('tool', { n: 2 });
    expect(await say(wait)).toMatchObject({ kind: 'event-received', event_type: 'tool', data: { n: 1 } });
    expect(run.inputs.at(-1)).toEqual({ kind: 'event-received', step: 'a', event: 2, asking: null, attempt: 1 });
    expect(await say(wait)).toMatchObject({ data: { n: 2 } });
    const third = say(wait);
    expect(await isOpen(third)).toBe(true);
    await emit('tool', { n: 3 });
    expect(await third).toMatchObject({ data: { n: 3 } });
  });

  test('what an attempt that was lost was about to be handed is left for the next one', async () => {
    const { run, say, emit } = setup(['a']);
    await emit('tool', { n: 1 });
    const lost = { kind: 'failure', failure: failure('lost', 'gone without a result') } as const;
    await run.submit({ kind: 'effect-finished', effect: 'a#1', outcome: lost });
    await run.submit({ kind: 'event-received', step: 'a', event: 1, asking: 'q1', attempt: 1 });
    const next = { type: 'await_event', step: 'a', event_type: 'tool', attempt: 2 };
    expect(await say(next)).toMatchObject({ data: { n: 1 } });
  });

  test('a question that is asked again is answered as before: its answer was not heard', async () => {
    const { say, emit } = setup();
    const wait = { type: 'await_event', step: 'a', event_type: 'tool', asking: 'q1' };
    await emit('tool', { n: 1 });
    await emit('tool', { n: 2 });
    expect(await say(wait)).toMatchObject({ data: { n: 1 } });
    expect(await say(wait)).toMatchObject({ data: { n: 1 } });
    expect(await say({ ...wait, asking: 'q2' })).toMatchObject({ data: { n: 2 } });
  });

  test('who stands outside of a step gets what comes from now on', async () => {
    const { run, say, emit } = setup();
    await emit('tool', { n: 1 });
    const answer = say({ type: 'await_event', event_type: 'tool' });
    expect(await isOpen(answer)).toBe(true);
    await emit('tool', { n: 2 });
    expect(await answer).toMatchObject({ data: { n: 2 } });
    expect(run.inputs.at(-1)?.kind).toBe('event-emitted');
  });

  test('several may wait for the same, and each gets it', async () => {
    const { say, emit } = setup();
    const waits = [1, 2, 3].map(() => say({ type: 'await_event', step: 'a', event_type: 'tool' }));
    await emit('tool');
    for (const answer of await Promise.all(waits)) expect(answer).toMatchObject({ kind: 'event-received' });
  });

  test('a filter asks for the sender, the run and the data, as text', async () => {
    const { say, emit } = setup();
    const filter = { agent: 'w', workflow: 'wf-1', n: '3', ok: 'true' };
    const answer = say({ type: 'await_event', step: 'a', event_type: 'tool', filter });
    await emit('tool', { n: 3, ok: true }, 'other');
    await emit('tool', { n: 4, ok: true }, 'w');
    await emit('tool', { ok: true }, 'w');
    expect(await isOpen(answer)).toBe(true);
    await emit('tool', { n: 3, ok: true }, 'w');
    expect(await answer).toMatchObject({ agent: 'w', data: { n: 3 } });
  });

  test('a filter does not find what every object has', async () => {
    const { say, emit } = setup();
    const filter = { constructor: 'function Object() { [native code] }' };
    const answer = say({ type: 'await_event', step: 'a', event_type: 'tool', filter });
    await emit('tool');
    expect(await isOpen(answer)).toBe(true);
  });

  test('programs for another engine are answered in its words', async () => {
    const { say, emit } = setup();
    const answer = say({ type: 'await_event', step: 'a', event_type: 'tool', compat: true });
    await emit('tool');
    expect(await answer).toMatchObject({ kind: 'event-match' });
  });

  test('who waits gives up when its time is over', async () => {
    const { clock, say } = setup();
    const answer = say({ type: 'await_event', step: 'a', event_type: 'tool', timeout_ms: 30_000 });
    await isOpen(answer);
    clock.pass(29_999);
    expect(await isOpen(answer)).toBe(true);
    clock.pass(1);
    expect(await answer).toEqual({ kind: 'timeout', message: 'no matching event tool within 30.0s' });
  });

  test('an event that is not durable is handed to nobody (handler/1)', async () => {
    const { run, say, emit } = setup();
    const answer = say({ type: 'await_event', step: 'a', event_type: 'tool' });
    await isOpen(answer);
    run.hold();
    const emitted = emit('tool');
    await isOpen(emitted);
    expect(await isOpen(answer)).toBe(true);
    run.release();
    expect(await answer).toMatchObject({ kind: 'event-received' });
  });
});

describe('waiting clients are released (handler/3)', () => {
  test.each([
    ['for an event', { type: 'await_event', step: 'a', event_type: 'tool' }],
    ['for a gate', { type: 'await_approval', step: 'a', gate_id: 'review' }],
  ])('when the run begins to fail: %s', async (_what, message) => {
    const { run, say } = setup(['a', 'c']);
    const answer = say(message);
    expect(await isOpen(answer)).toBe(true);
    await fail(run, 'c');
    expect(await answer).toEqual({ kind: 'released', message: 'the run is ending: it is failed' });
    expect(run.inputs.at(-1)).toEqual({ kind: 'wait-released', step: 'a' });
    expect(await say(message)).toMatchObject({ kind: 'released' });
  });

  test('when the attempt that it waits for is over', async () => {
    const { run, say } = setup();
    const answer = say({ type: 'await_event', step: 'a', event_type: 'tool' });
    await isOpen(answer);
    await run.submit({ kind: 'effect-finished', effect: 'a#1', outcome: success() });
    expect(await answer).toEqual({ kind: 'released', message: 'step a no longer waits for this' });
    expect(await say({ type: 'await_event', step: 'a', event_type: 'tool' })).toMatchObject({ kind: 'released' });
  });

  test('when it is of an earlier attempt', async () => {
    const { run, say } = setup(['a retry 2']);
    const answer = say({ type: 'await_event', step: 'a', attempt: 1, event_type: 'tool' });
    await isOpen(answer);
    await fail(run, 'a');
    await run.submit({ kind: 'deadline-passed', timer: 'a retry' });
    expect(await answer).toMatchObject({ kind: 'released' });
    expect(await say({ type: 'await_event', step: 'a', attempt: 1, event_type: 'tool' })).toMatchObject({
      kind: 'released',
    });
  });

  test('when it is gone itself, and then takes no event away', async () => {
    const { run, say, emit } = setup();
    const gone = new AbortController();
    const answer = say({ type: 'await_event', step: 'a', event_type: 'tool' }, gone.signal);
    await isOpen(answer);
    gone.abort();
    expect(await answer).toBeNull();
    await emit('tool');
    expect(run.inputs.map(({ kind }) => kind)).not.toContain('event-received');
  });

  test('without an answer when the engine ends: the next may have what it waits for', async () => {
    const { handler, say } = setup();
    const answer = say({ type: 'await_event', step: 'a', event_type: 'tool' });
    await isOpen(answer);
    handler.close();
    expect(await answer).toBeNull();
    expect(await say({ type: 'ping' })).toBeNull();
  });
});

test('what cannot be made durable is not answered', async () => {
  const { run, emit } = setup();
  run.breakDisk();
  expect(await emit('tool')).toBeNull();
});

test('so many may wait, and no more (handler/4)', async () => {
  const { say } = setup();
  for (let n = 0; n < 4_096; n++) void say({ type: 'await_event', event_type: 'tool' });
  await isOpen(Promise.race([]));
  expect(await say({ type: 'await_event', event_type: 'tool' })).toMatchObject({
    kind: 'error',
    message: 'too many calls are waiting already',
  });
});

describe('gates', () => {
  const WAIT = { type: 'await_approval', step: 'a', gate_id: 'review' };
  const APPROVE = { type: 'approval', gate_id: 'review', approved: true, notes: 'fine', by: 'ann' };
  const REJECT = { type: 'approval', gate_id: 'review', approved: false, reason: 'no tests', by: 'bob' };

  test('what people are asked is kept with the gate', async () => {
    const { run, say } = setup();
    void say({ ...WAIT, prompt: 'Is it good?' });
    await isOpen(Promise.race([]));
    expect(run.inputs).toEqual([{ kind: 'gate-asked', gate: 'review', step: 'a', prompt: 'Is it good?' }]);
  });

  test('a decision reaches the one who waits', async () => {
    const { say } = setup();
    const answer = say(WAIT);
    expect(await isOpen(answer)).toBe(true);
    expect(await say(REJECT)).toEqual(ACK);
    expect(await answer).toEqual({
      kind: 'gate-decided',
      gate: 'review',
      approved: false,
      by: 'bob',
      notes: 'no tests',
      answer: null,
    });
  });

  test('one that nobody has asked for is kept, and said so', async () => {
    const { say } = setup(['a', 'c']);
    void say({ ...WAIT, step: 'c', gate_id: 'other' });
    await isOpen(Promise.race([]));
    expect(await say(APPROVE)).toEqual({
      ...ACK,
      note: 'no step has asked for gate review yet: the decision is stored until one does (open now: other)',
    });
    expect(await say(WAIT)).toMatchObject({ kind: 'gate-decided', approved: true, by: 'ann', notes: 'fine' });
  });

  test('the first decision stands; the same again does no harm', async () => {
    const { say } = setup();
    void say(WAIT);
    await isOpen(Promise.race([]));
    await say(APPROVE);
    expect(await say({ ...APPROVE, by: 'bob' })).toEqual({
      ...ACK,
      note: 'gate review was already approved by ann',
    });
    expect(await say(REJECT)).toEqual({
      kind: 'error',
      message: 'gate review was already approved by ann, and the first decision counts',
      code: 'refused',
    });
  });

  test('an approval that is sent again under its id is acknowledged, and decides nothing when the gate is asked again', async () => {
    const { run, say } = setup(['block ask visit-last', 'ask gate deploy route approved=goto:ask']);
    const approve = { ...APPROVE, gate_id: 'deploy', id: 'm1' };
    expect(await say(approve)).toEqual(ACK);
    expect(run.state.steps.get('ask#2')?.status).toBe('running');
    const before = run.inputs.length;
    expect(await say(approve)).toEqual(ACK);
    expect(run.inputs).toHaveLength(before);
    expect(run.state.steps.has('ask#3')).toBe(false);
    expect(await say({ ...approve, id: 'm2' })).toEqual(ACK);
    expect(run.state.steps.get('ask#3')?.status).toBe('running');
  });

  test('two that decide at once: one of them is told that it was second', async () => {
    const { run, say } = setup();
    void say(WAIT);
    await isOpen(Promise.race([]));
    const [approved, rejected] = [say(APPROVE), say(REJECT)];
    expect(await approved).toEqual(ACK);
    expect(await rejected).toMatchObject({ kind: 'error', code: 'refused' });
    expect(run.state.gates.get('review')?.verdict?.approved).toBe(true);
  });

  test('nobody decides in time', async () => {
    const { run, clock, say } = setup();
    const answer = say({ ...WAIT, timeout_ms: 5_000 });
    await isOpen(answer);
    clock.pass(5_000);
    expect(await answer).toEqual({ kind: 'timeout', message: 'nobody decided gate review within 5.0s' });
    expect(run.inputs.at(-1)).toEqual({ kind: 'gate-expired', gate: 'review', step: 'a' });
  });

  test('a time that was up before the engine came is up, and its step hears of nothing else first', async () => {
    const { run, clock, say } = setup();
    const answer = say({ ...WAIT, deadline: clock.now() - 1 });
    expect(await answer).toMatchObject({ kind: 'timeout' });
    expect(run.inputs.map(({ kind }) => kind)).toEqual(['gate-asked', 'gate-expired']);
  });

  test('a question is answered, and only the open one where none is named', async () => {
    const { say } = setup(['a', 'c']);
    expect(await say({ type: 'answer', text: 'blue' })).toMatchObject({ message: 'run wf-1 has no open gate' });
    const colour = say({ ...WAIT, gate_id: 'colour' });
    await isOpen(colour);
    expect(await say({ type: 'answer', text: 'blue', by: 'ann' })).toEqual(ACK);
    expect(await colour).toMatchObject({ approved: true, answer: 'blue', by: 'ann' });
    void say({ ...WAIT, gate_id: 'one' });
    void say({ ...WAIT, step: 'c', gate_id: 'two' });
    await isOpen(Promise.race([]));
    expect(await say({ type: 'answer', text: 'blue' })).toMatchObject({ kind: 'error', code: 'refused' });
  });

  test('a gate needs a step that asks for it', async () => {
    const { say } = setup();
    expect(await say({ type: 'await_approval', gate_id: 'review' })).toMatchObject({ kind: 'error', code: 'refused' });
    expect(await say({ ...WAIT, step: 'nowhere' })).toMatchObject({ kind: 'error', code: 'refused' });
  });

  test('a run that has failed takes no decision', async () => {
    const { run, say } = setup(['a']);
    await fail(run, 'a');
    expect(await say(APPROVE)).toMatchObject({ kind: 'error', code: 'ended' });
  });
});

describe('reports of agents', () => {
  async function withAgent(): Promise<ReturnType<typeof setup>> {
    const rig = setup(['s spawn w', 'p prompt w wants n needs s']);
    await rig.run.submit({ kind: 'effect-finished', effect: 's#1', outcome: success({}, { session: 'sess-1' }) });
    return rig;
  }

  test('the agent is shown its task, until it has reported', async () => {
    const { say, taken } = await withAgent();
    taken.add('w p#1');
    expect(await say({ type: 'get_prompt', agent: 'w' })).toMatchObject({
      kind: 'prompt',
      step: 'p',
      content: expect.stringContaining('shown: ') as string,
    });
    expect(await say({ type: 'get_prompt', agent: 'nobody' })).toEqual({ kind: 'prompt', content: '' });
    expect(await say({ type: 'step_done', agent: 'w', outputs: { n: '3' } })).toEqual(ACK);
    expect(await say({ type: 'get_prompt', agent: 'w' })).toEqual({ kind: 'prompt', content: '' });
  });

  test('the agent is not shown what is still on its way to it', async () => {
    const { run, say, taken } = setup(['s spawn w', 'p prompt w needs s', 'q prompt w needs p']);
    await run.submit({ kind: 'effect-finished', effect: 's#1', outcome: success({}, { session: 'sess-1' }) });
    taken.add('w p#1');
    await say({ type: 'step_done', agent: 'w' });
    await run.submit({ kind: 'effect-finished', effect: 'p#1', outcome: success() });
    expect(run.state.steps.get('q')?.status).toBe('running');
    expect(await say({ type: 'get_prompt', agent: 'w' })).toEqual({ kind: 'prompt', content: '' });
    taken.add('w q#1');
    expect(await say({ type: 'get_prompt', agent: 'w' })).toMatchObject({ step: 'q' });
  });

  test('a report that lacks an output is refused, with what is missing and how to say it', async () => {
    const { say } = await withAgent();
    const answer = await say({ type: 'step_done', agent: 'w', step: 'p', outputs: {} });
    expect(answer).toMatchObject({ kind: 'error', code: 'refused' });
    expect(answer).toMatchObject({ message: expect.stringContaining('meow done --output n=') as string });
  });

  test('the same report again is accepted, another is not', async () => {
    const { say } = await withAgent();
    const report = { type: 'step_done', agent: 'w', outputs: { n: 3 } };
    expect(await say(report)).toEqual(ACK);
    expect(await say(report)).toEqual(ACK);
    expect(await say({ ...report, outputs: { n: 4 } })).toMatchObject({ kind: 'error' });
  });

  test('two reports at once: the second is refused if it says something else', async () => {
    const { say } = await withAgent();
    const [first, second] = [3, 4].map((n) => say({ type: 'step_done', agent: 'w', outputs: { n } }));
    expect(await first).toEqual(ACK);
    expect(await second).toMatchObject({ kind: 'error', code: 'refused' });
  });

  test('an output that nobody asked for is kept, with a warning', async () => {
    const { run, say } = await withAgent();
    const answer = await say({ type: 'step_done', agent: 'w', outputs: { n: 3, more: 'x' } });
    expect(answer).toEqual({
      ...ACK,
      warnings: ['the step does not declare the output more; it is stored all the same'],
    });
    expect(run.state.steps.get('p')?.outputs).toEqual({ n: 3, more: 'x' });
  });

  test('the session of an agent is told', async () => {
    const { say } = await withAgent();
    expect(await say({ type: 'get_session_id', agent: 'w' })).toEqual({ kind: 'session-id', session_id: 'sess-1' });
    expect(await say({ type: 'get_session_id', agent: 'x' })).toMatchObject({ message: 'agent x is unknown' });
  });
});

describe('the status of a step', () => {
  test('is told as soon as it is durable', async () => {
    const { run, say } = setup();
    run.hold();
    const finished = run.submit({ kind: 'effect-finished', effect: 'a#1', outcome: success() });
    const answer = say({ type: 'step_status', step: 'a' });
    expect(await isOpen(answer)).toBe(true);
    run.release();
    await finished;
    expect(await answer).toEqual({ kind: 'step-status', step: 'a', status: 'done' });
  });

  test('a name is looked for beside the one who asks, then further out', async () => {
    const { say } = setup(['block main', 'x pass route done=expand:inner', 'y', 'block inner', 'y', 'z']);
    expect(await say({ type: 'step_status', step: 'y', asker: 'x.z' })).toMatchObject({ step: 'x.y' });
    expect(await say({ type: 'step_status', step: 'y', asker: 'y' })).toMatchObject({ step: 'y' });
    expect(await say({ type: 'step_status', step: 'x', asker: 'x.z' })).toMatchObject({ step: 'x' });
    expect(await say({ type: 'step_status', step: 'q', asker: 'x.z' })).toMatchObject({ code: 'unknown-step' });
    expect(await say({ type: 'step_status', step: 'y', agent: 'nobody' })).toMatchObject({ step: 'y' });
  });
});
