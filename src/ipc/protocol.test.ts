import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeAnswer, encodeAnswer, parseMessage, SMALL_BYTES_MAX } from './protocol.ts';

const RUN = 'wf-1';

function parse(message: unknown): unknown {
  const parsed = parseMessage(JSON.stringify(message), RUN);
  return parsed.ok ? parsed.value : parsed.error;
}

describe('messages of the specification', () => {
  test('a step that is done', () => {
    const line =
      '{"type":"step_done","workflow":"wf-1","agent":"worker-1","step":"impl.write","outputs":{"file":"a.ts"},"notes":"n"}';
    expect(parseMessage(line, RUN)).toEqual({
      ok: true,
      value: {
        kind: 'step-done',
        agent: 'worker-1',
        step: 'impl.write',
        outputs: { file: 'a.ts' },
        notes: 'n',
        message: null,
      },
    });
  });

  test('what is done once is known by the id of its message', () => {
    expect(parse({ type: 'step_done', agent: 'w', id: 'm-1' })).toMatchObject({ message: 'm-1' });
    expect(parse({ type: 'approval', gate_id: 'g', approved: true, id: 'm-1' })).toMatchObject({ message: 'm-1' });
    expect(parse({ type: 'answer', text: 'blue', id: 'm-1' })).toMatchObject({ message: 'm-1' });
    expect(parse({ type: 'answer', text: 'blue' })).toMatchObject({ gate: null, message: null });
  });

  test('asking for a gate, with what people are asked', () => {
    const wait = { type: 'await_approval', gate_id: 'g', step: 'a' };
    expect(parse({ ...wait, prompt: 'Shall I?' })).toMatchObject({ gate: 'g', step: 'a', prompt: 'Shall I?' });
    expect(parse(wait)).toMatchObject({ prompt: null });
    expect(parse({ ...wait, prompt: 'x'.repeat(SMALL_BYTES_MAX + 1) })).toBe('"prompt" is larger than 65536 bytes');
  });

  test('questions of an agent', () => {
    expect(parse({ type: 'get_prompt', agent: 'w' })).toEqual({ kind: 'get-prompt', agent: 'w' });
    expect(parse({ type: 'get_session_id', agent: 'w' })).toEqual({ kind: 'get-session-id', agent: 'w' });
  });

  test('an approval has notes, a rejection has a reason', () => {
    const gate = { type: 'approval', gate_id: 'review' };
    const decided = { kind: 'approval', gate: 'review', by: null, agent: null, proof: null, via: null, message: null };
    expect(parse({ ...gate, approved: true, notes: 'fine' })).toEqual({ ...decided, approved: true, notes: 'fine' });
    expect(parse({ ...gate, approved: false, reason: 'no' })).toEqual({ ...decided, approved: false, notes: 'no' });
  });

  test('who may decide a gate is a list of names', () => {
    const wait = { type: 'await_approval', gate_id: 'g', step: 'a' };
    expect(parse(wait)).toMatchObject({ approvers: null });
    const approvers = ['ada', 'agent:w', 'ssh:grace'];
    expect(parse({ ...wait, approvers })).toMatchObject({ approvers });
    for (const wrong of [[], '', [''], ['ada', ' '], ['agent:'], ['ssh: '], [1], ['a\nb'], {}, Array(65).fill('a')]) {
      expect(parse({ ...wait, approvers: wrong })).toMatch(/^"approvers" must be a list/);
    }
  });

  test('a decision may have a proof; one that cannot be read is none', () => {
    const time = '2026-11-15T15:27:33.494Z';
    const hmac = '0123456789abcdef'.repeat(4);
    const signature = '-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----\n';
    const proofIn = (proof: unknown): unknown =>
      (parse({ type: 'approval', gate_id: 'g', approved: true, proof }) as { proof: unknown }).proof;
    expect(proofIn({ asking: 0, time, hmac })).toEqual({ kind: 'key', asking: 0, time, hmac });
    expect(proofIn({ asking: 2, time, signature })).toEqual({ kind: 'signature', asking: 2, time, signature });
    for (const wrong of [
      'x',
      [],
      {},
      { asking: 1, time },
      { time, hmac },
      { asking: -1, time, hmac },
      { asking: 1.5, time, hmac },
      { asking: '1', time, hmac },
      { asking: 1, hmac },
      { asking: 1, time: '2026-11-15 15:27', hmac },
      { asking: 1, time: `${time}\n`, hmac },
      { asking: 1, time, hmac: hmac.toUpperCase() },
      { asking: 1, time, hmac: hmac.slice(2) },
      { asking: 1, time, hmac: `${hmac}00` },
      { asking: 1, time, hmac, signature },
      { asking: 1, time, signature: signature.slice(0, -10) },
      { asking: 1, time, signature: signature.replace('U1NI', 'A'.repeat(20_000)) },
    ]) {
      expect(proofIn(wrong), JSON.stringify(wrong).slice(0, 80)).toBeNull();
    }
  });

  test('an event', () => {
    expect(parse({ type: 'event', workflow: RUN, agent: 'w', event_type: 'e', data: { tool: 'Write' } })).toEqual({
      kind: 'event',
      id: null,
      eventType: 'e',
      agent: 'w',
      data: { tool: 'Write' },
    });
  });

  test('waiting for an event, with the time in milliseconds or as a duration', () => {
    const wait = { type: 'await_event', event_type: 'e', filter: { agent: 'w', n: 3 } };
    const understood = {
      kind: 'await-event',
      eventType: 'e',
      filter: { agent: 'w', n: '3' },
      asking: null,
      compat: false,
    };
    const nobody = { asking: null, step: null, attempt: null, agent: null, deadline: null };
    expect(parse({ ...wait, timeout_ms: 30_000 })).toEqual({ ...understood, ...nobody, timeoutMs: 30_000 });
    expect(parse({ ...wait, timeout: '30s' })).toEqual({ ...understood, ...nobody, timeoutMs: 30_000 });
    expect(parse({ ...wait, timeout: 30 })).toEqual({ ...understood, ...nobody, timeoutMs: 30_000 });
    expect(parse({ ...wait, compat: true })).toEqual({ ...understood, ...nobody, timeoutMs: null, compat: true });
  });
});

describe('what is no message', () => {
  test.each([
    ['', 'a message is one JSON object on one line'],
    ['hello', 'a message is one JSON object on one line'],
    ['[1]', 'a message is one JSON object on one line'],
    ['{}', '"type" is missing'],
    ['{"type":7}', '"type" must be a string'],
    ['{"type":"toString"}', 'there is no message of type "toString"'],
    ['{"type":"event"}', '"event_type" is missing'],
    ['{"type":"event","event_type":""}', '"event_type" is missing'],
    ['{"type":"event","event_type":"a\\nb"}', '"event_type" contains control characters'],
    ['{"type":"event","event_type":"e","data":[]}', '"data" must be an object'],
    ['{"type":"approval","gate_id":"g"}', '"approved" must be true or false'],
    ['{"type":"await_event","event_type":"e","timeout":"soon"}', '"timeout" must be a duration, like 30s'],
    ['{"type":"await_event","event_type":"e","filter":{"a":{}}}', '"filter.a" must be a string'],
    ['{"type":"ping","workflow":"wf-2"}', 'this is the run wf-1, not wf-2'],
  ])('%s', (line, error) => {
    expect(parseMessage(line, RUN)).toEqual({ ok: false, error });
  });

  test('a name that is too long', () => {
    expect(parse({ type: 'await_approval', gate_id: 'g'.repeat(257) })).toBe('"gate_id" is longer than 256 characters');
  });

  test('the ids of steps and agents are as long as they have grown', () => {
    const [step, agent] = ['a.'.repeat(5_000), 'w'.repeat(5_000)];
    expect(parse({ type: 'step_done', step, agent })).toMatchObject({ step, agent });
    expect(parse({ type: 'step_status', step, asker: step })).toMatchObject({ step, asker: step });
    expect(parse({ type: 'await_event', event_type: 'e', step, agent })).toMatchObject({ step, agent });
    expect(parse({ type: 'get_prompt', agent: 'a\nb' })).toBe('"agent" contains control characters');
  });

  test('an event that is too large', () => {
    const data = { text: 'x'.repeat(SMALL_BYTES_MAX) };
    expect(parse({ type: 'event', event_type: 'e', data })).toBe('"data" is larger than 65536 bytes');
  });

  test('values that are nested without end', () => {
    const deep = `{"type":"step_done","outputs":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`;
    expect(parseMessage(deep, RUN)).toMatchObject({
      ok: false,
      error: expect.stringContaining('nested deeper') as string,
    });
  });

  test('a key that would reach a prototype', () => {
    const line = '{"type":"step_done","outputs":{"a":{"__proto__":{"polluted":true}}}}';
    expect(parseMessage(line, RUN).ok).toBe(false);
    expect(parseMessage('{"type":"event","event_type":"e","data":{"__proto__":{}}}', RUN).ok).toBe(false);
  });
});

test('any text is a message or a sentence (protocol/1)', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.json()), (line) => {
      const parsed = parseMessage(line, RUN);
      expect(parsed.ok ? parsed.value.kind : parsed.error).not.toBe('');
    }),
  );
});

test('any object with a known type is a message or a sentence (protocol/1)', () => {
  const type = fc.constantFrom(
    'step_done',
    'event',
    'await_event',
    'approval',
    'answer',
    'step_status',
    'await_approval',
  );
  const fields = fc.dictionary(
    fc.constantFrom(
      'agent',
      'step',
      'outputs',
      'notes',
      'event_type',
      'data',
      'filter',
      'timeout',
      'gate_id',
      'approved',
    ),
    fc.jsonValue(),
  );
  fc.assert(
    fc.property(type, fields, (type, fields) => {
      const parsed = parseMessage(JSON.stringify({ ...fields, type }), RUN);
      if (!parsed.ok) expect(parsed.error).toMatch(/./);
    }),
  );
});

test('an answer is one line, and is read as it was written', () => {
  const answer = { kind: 'event-received', event_type: 'e', agent: null, data: { text: 'a\nb' } } as const;
  const line = encodeAnswer(answer);
  expect(line).toBe('{"type":"event_received","event_type":"e","agent":null,"data":{"text":"a\\nb"}}\n');
  expect(decodeAnswer(line)).toEqual(answer);
  expect(decodeAnswer('what')).toBeNull();
});
