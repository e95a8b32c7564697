import { describe, expect, test } from 'vitest';

import { ACK, fail, isOpen, setup } from '../../test/kernel-rig/message-handler.ts';
import { type Progress, success } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';

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

  test.each([0, 1, 2, 3, 4, 5])('nor does one that began %d ticks before that', async (ticks) => {
    const { handler, say } = setup();
    const answer = say({ type: 'await_event', step: 'a', event_type: 'tool' });
    for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
    handler.close();
    expect(await isOpen(answer)).toBe(false);
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

  describe('an agent that asks for its task during the delivery', () => {
    const NOTHING = { kind: 'prompt', content: '' };
    async function sending() {
      const rig = await withAgent();
      const note = (progress: Progress): Promise<void> =>
        rig.run.submit({ kind: 'effect-progressed', effect: 'p#1', progress });
      await note({ delivery: 'sending' });
      return { ...rig, note };
    }

    test('is shown it when the delivery is confirmed', async () => {
      const { say, note, taken } = await sending();
      const answer = say({ type: 'get_prompt', agent: 'w' });
      expect(await isOpen(answer)).toBe(true);
      await note({ delivery: 'blocked-on-dialog' });
      expect(await isOpen(answer)).toBe(true);
      taken.add('w p#1');
      await note({ delivery: 'accepted' });
      expect(await answer).toMatchObject({ step: 'p' });
    });

    test('is shown nothing if the prompt is queued, or the delivery fails', async () => {
      const queued = await sending();
      const answer = queued.say({ type: 'get_prompt', agent: 'w' });
      await queued.note({ delivery: 'queued' });
      expect(await answer).toEqual(NOTHING);
      const failed = await sending();
      const other = failed.say({ type: 'get_prompt', agent: 'w' });
      await fail(failed.run, 'p');
      expect(await other).toEqual(NOTHING);
    });

    test('is shown nothing at once if it cannot have it yet', async () => {
      const { say, unsubmitted } = await sending();
      unsubmitted.add('w p#1');
      expect(await say({ type: 'get_prompt', agent: 'w' })).toEqual(NOTHING);
    });

    test('gets no answer if it goes away, or the engine ends', async () => {
      const { say, handler } = await sending();
      const leaving = new AbortController();
      const first = say({ type: 'get_prompt', agent: 'w' }, leaving.signal);
      const second = say({ type: 'get_prompt', agent: 'w' });
      leaving.abort();
      expect(await first).toBeNull();
      expect(await isOpen(second)).toBe(true);
      handler.close();
      expect(await second).toBeNull();
    });
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
