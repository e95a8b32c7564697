// Prompting agents that speak the Agent Client Protocol.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Outcome } from '../../src/ir/effect.ts';
import { AcpRig, adapterWith } from '../fixtures/acp/rig.ts';
import { expected, failedWith, SUCCESS, TIME_UP } from './agent-rig.ts';
import { appears, gone } from './driver-command-rig.ts';

let rig: AcpRig;
let session: string;
beforeEach(async () => {
  rig = new AcpRig({
    adapter: adapterWith({}, { limits: [{ pattern: 'limit reached, (.+) left', reset: 'duration' }] }),
  });
  session = await rig.spawned('worker');
});
afterEach(() => rig.close());

const failureOf = (outcome: Outcome): string => (outcome.kind === 'failure' ? outcome.failure.message : 'no failure');

describe('a prompt', () => {
  test('reaches the agent as text in its session, with the outputs to report', async () => {
    void rig.start(rig.prompting('worker', [{ hang: true }], { id: 'build#1', expects: [expected('file')] }));
    await rig.receives((text) => text.includes('session/prompt'));
    const [message] = rig.received('session/prompt');
    expect(message).toMatchObject({ params: { sessionId: session, prompt: [{ type: 'text' }] } });
    expect(JSON.stringify(message)).toContain('meow done --output file=<string>');
  });

  test('without required outputs ends with the turn, with the last message as its result', async () => {
    const acts = [{ say: 'I shall look.' }, { use: 'grep' }, { say: 'It is ' }, { say: '42.' }];
    const outcome = await rig.start(rig.prompting('worker', acts));
    expect(outcome).toMatchObject({ kind: 'success', outputs: { result: 'It is 42.' }, session });
  });

  test('that is reported ends when the agent is idle', async () => {
    const acts = [{ run: 'meow done --output file=a' }, { hold: 'go' }, { say: 'late' }];
    const effect = rig.prompting('worker', acts, { expects: [expected('file')] });
    const outcome = rig.start(effect);
    await rig.called('done --output file=a');
    rig.driver.conclude?.(effect.id);
    rig.let('go');
    expect(await outcome).toMatchObject({ kind: 'success', outputs: {}, session });
    expect(rig.received('session/cancel')).toEqual([]);
    await rig.says('worker', 'end_turn');
  });

  test('that is reported is cancelled if the agent continues anyway', async () => {
    await using own = { rig: new AcpRig({ graceMs: 50 }), [Symbol.asyncDispose]: () => own.rig.close() };
    await own.rig.spawned('worker');
    const effect = own.rig.prompting('worker', [{ say: 'works' }, { hang: true }]);
    const outcome = own.rig.start(effect);
    await own.rig.says('worker', 'works');
    own.rig.driver.conclude?.(effect.id);
    expect(await outcome).toMatchObject(SUCCESS);
    await own.rig.says('worker', '"cancelled"');
  });

  test('without a report is done when the agent has it', async () => {
    const effect = rig.prompting('worker', [{ hang: true }], { mode: 'fire-forget' });
    expect(await rig.start(effect)).toMatchObject(SUCCESS);
  });

  test('waits until the agent has finished the previous one', async () => {
    void rig.start(rig.prompting('worker', [{ hold: 'go' }], { mode: 'fire-forget' }));
    const second = rig.prompting('worker', [{ say: 'second' }], { id: 'second#1' });
    const outcome = rig.start(second);
    await rig.noted('second#1', ({ delivery }) => delivery === 'queued');
    await rig.receives((text) => text.includes('session/prompt'));
    expect(rig.driver.hasTaken('worker', 'second#1')).toBe(false);
    expect(rig.received('session/prompt')).toHaveLength(1);
    rig.let('go');
    expect(await outcome).toMatchObject({ outputs: { result: 'second' } });
    expect(rig.driver.hasTaken('worker', 'second#1')).toBe(true);
  });

  test('is sent alone, even if several are waiting', async () => {
    const outcomes = ['a', 'b', 'c', 'd'].map((say) => rig.start(rig.prompting('worker', [{ say }])));
    const results = (await Promise.all(outcomes)).map(
      (outcome) => outcome.kind === 'success' && outcome.outputs['result'],
    );
    expect(results).toEqual(['a', 'b', 'c', 'd']);
  });

  test('of 5 MB arrives completely', async () => {
    const words = 'all of it, ünd more \u{1f408} '.repeat(250_000);
    const outcome = await rig.start(rig.prompting('worker', [{ again: [{ words }] }, { say: 'read' }]));
    expect(outcome).toMatchObject({ outputs: { result: 'read' } });
    expect(rig.received().at(-1)?.['length']).toBeGreaterThan(5_000_000);
  });

  test('that the agent does not read is withdrawn when it is cancelled, and the next is read', async () => {
    await using own = { rig: new AcpRig(), [Symbol.asyncDispose]: () => own.rig.close() };
    await own.rig.spawned('worker', { env: { DEAF: 'go' } });
    const effect = own.rig.prompting('worker', [{ again: [{ words: 'x'.repeat(1_000_000) }] }]);
    const outcome = own.rig.start(effect);
    await appears(own.rig.startFile('worker', 'acp-in.sent'), (text) =>
      text.includes(`["begun","prompt ${effect.id}"]`),
    );
    own.rig.driver.stop(effect.id, TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(await own.rig.find(effect)).toMatchObject(failedWith('not-delivered'));
    own.rig.let('go');
    const next = await own.rig.start(own.rig.prompting('worker', [{ say: 'heard' }]));
    expect(next).toMatchObject({ outputs: { result: 'heard' } });
    expect(own.rig.received('session/prompt')).toHaveLength(1);
  });
});

describe('a turn without the required outputs', () => {
  const expects = [expected('file'), { ...expected('note'), required: false }];

  test('is followed by a reminder in the same session until the agent reports', async () => {
    const acts = [{ again: [{ run: 'meow done --output file=b' }] }];
    const effect = rig.prompting('worker', acts, { expects });
    const outcome = rig.start(effect);
    await rig.called('done --output file=b');
    rig.driver.conclude?.(effect.id);
    expect(await outcome).toMatchObject(SUCCESS);
    const prompts = rig.received('session/prompt');
    expect(prompts.map(({ id }) => id)).toEqual([`prompt ${effect.id}`, `again 1 ${effect.id}`]);
    expect(JSON.stringify(prompts[1])).toContain('meow done --output file=<string>');
  });

  test('is followed by three reminders, and then fails', async () => {
    const outcome = await rig.start(rig.prompting('worker', [{ again: [] }], { expects }));
    expect(outcome).toMatchObject({ kind: 'failure', failure: { kind: 'output-missing', session } });
    expect(failureOf(outcome)).toBe('agent worker finished its turn without reporting: file');
    expect(rig.received('session/prompt')).toHaveLength(4);
  });

  test('gets no reminder if a report was just sent', async () => {
    await using own = { rig: new AcpRig(), [Symbol.asyncDispose]: () => own.rig.close() };
    const effect = own.rig.prompting('worker', [], { expects });
    own.rig.nextLife(() => {
      own.rig.driver.conclude?.(effect.id);
      return new Promise((resolve) => setImmediate(resolve));
    });
    await own.rig.spawned('worker');
    expect(await own.rig.start(effect)).toMatchObject(SUCCESS);
    expect(own.rig.received('session/prompt')).toHaveLength(1);
  });

  test.each([
    ['cancelled', 'its turn was cancelled'],
    ['refusal', 'refuses to continue: Never.'],
    ['max_tokens', 'max_tokens'],
    ['max_turn_requests', 'max_turn_requests'],
    ['something new', 'something new'],
  ])('that ends with the reason %s fails with it', async (stop, words) => {
    const outcome = await rig.start(rig.prompting('worker', [{ say: 'Never.' }, { stop }]));
    expect(outcome).toMatchObject(failedWith('exit-nonzero'));
    expect(failureOf(outcome)).toContain(words);
  });

  test('that ends with an error fails with its message', async () => {
    const fail = { code: -32603, message: 'Internal error', data: { details: 'API error 500' } };
    const outcome = await rig.start(rig.prompting('worker', [{ fail }]));
    expect(failureOf(outcome)).toBe('agent worker ended its turn with an error: Internal error: API error 500');
  });

  test('that contains only the text of a usage limit has reached it', async () => {
    const outcome = await rig.start(rig.prompting('worker', [{ say: 'usage limit reached, 5m left' }]));
    expect(outcome).toMatchObject(failedWith('limit-reached'));
    const acts = [{ say: 'It says: limit reached, 5m left' }, { stop: 'end_turn', usage: { totalTokens: 9 } }];
    expect(await rig.start(rig.prompting('worker', acts))).toMatchObject(SUCCESS);
  });

  test('with a usage limit reports when it resets, and the same after a restart', async () => {
    const effect = rig.prompting('worker', [{ fail: { code: 1, message: 'usage limit reached, 2h left' } }]);
    const before = Date.now();
    const outcome = await rig.start(effect);
    expect(outcome).toMatchObject(failedWith('limit-reached'));
    expect(outcome.kind === 'failure' ? outcome.failure.retryAt : null).toBeGreaterThanOrEqual(before + 7_200_000);
    rig.nextLife();
    expect(await rig.find(effect)).toEqual(outcome);
  });
});

describe('the cost of work', () => {
  const totalTokens = (tokens: number) => ({ stop: 'end_turn', usage: { totalTokens: tokens } });

  test('is computed by difference, in tokens and dollars', async () => {
    const first = await rig.start(rig.prompting('worker', [{ cost: 0.25 }, totalTokens(100)]));
    expect(first).toMatchObject({ usage: { usd: 0.25, tokens: 100 } });
    const second = await rig.start(rig.prompting('worker', [{ cost: 0.5 }, { cost: 0.75 }, totalTokens(50)]));
    expect(second).toMatchObject({ usage: { usd: 0.5, tokens: 50 } });
  });

  test('includes all turns of a prompt, whichever way it is reported', async () => {
    const acts = [{ cost: 0.25 }, { again: [{ cost: 0.5 }, { run: 'meow done' }, totalTokens(7)] }, totalTokens(5)];
    const effect = rig.prompting('worker', acts, { expects: [expected('file')] });
    const outcome = rig.start(effect);
    await rig.called('done');
    rig.driver.conclude?.(effect.id);
    expect(await outcome).toMatchObject({ usage: { usd: 0.5, tokens: 12 } });
  });

  test('is unknown if the agent does not report it', async () => {
    expect(await rig.start(rig.prompting('worker', []))).toMatchObject({ usage: { usd: null, tokens: null } });
  });
});

describe('a working agent', () => {
  test('is interrupted at its timeout', async () => {
    const effect = rig.prompting('worker', [{ say: 'works' }, { hang: true }]);
    const outcome = rig.start(effect);
    await rig.says('worker', 'works');
    rig.driver.stop(effect.id, TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    expect(rig.received('session/cancel')).toEqual([
      { jsonrpc: '2.0', method: 'session/cancel', params: { sessionId: session } },
    ]);
    expect(await rig.start(rig.prompting('worker', [{ say: 'next' }]))).toMatchObject({ outputs: { result: 'next' } });
  });

  test('is interrupted by Escape', async () => {
    const effect = rig.prompting('worker', [{ say: 'works' }, { hang: true }]);
    const outcome = rig.start(effect);
    await rig.says('worker', 'works');
    expect(await rig.start({ ...rig.prompting('worker', []), ...escape() })).toMatchObject(SUCCESS);
    expect(await outcome).toMatchObject(failedWith('exit-nonzero'));
  });

  test('accepts no other keys', async () => {
    expect(await rig.start({ ...rig.prompting('worker', []), ...escape('Up') })).toMatchObject(
      failedWith('not-delivered'),
    );
  });

  test('that dies is reported by its watcher, with its exit code', async () => {
    const attended = rig.start(rig.attending('worker'));
    void rig.start(rig.prompting('worker', [{ die: 3 }]));
    expect(await attended).toMatchObject({ kind: 'failure', failure: { kind: 'agent-crashed', code: 3 } });
    await gone(rig.leader('worker'));
    expect(rig.left()).toEqual([]);
  });

  test('may print lines that are not messages', async () => {
    const outcome = await rig.start(rig.prompting('worker', [{ junk: true }, { say: 'still here' }, { junk: true }]));
    expect(outcome).toMatchObject({ outputs: { result: 'still here' } });
  });

  test('may send a large message, which is stored in a file', async () => {
    const outcome = await rig.start(rig.prompting('worker', [{ large: 5_000_000 }], { id: 'talk#2' }));
    expect(outcome).toMatchObject({ kind: 'success', kept: ['result'] });
    const kept = outcome.kind === 'success' ? (outcome.outputs['result'] as { $file: string }).$file : '';
    expect(readFileSync(join(rig.runFolder, kept), 'utf8')).toHaveLength(5_000_000);
  });

  test('is told that we offer no files and no terminals', async () => {
    const acts = [{ request: 'fs/read_text_file' }, { request: 'terminal/create' }, { request: 'whatever/else' }];
    const outcome = await rig.start(rig.prompting('worker', acts));
    expect(outcome).toMatchObject({ outputs: { result: 'code -32601;code -32601;code -32601;' } });
  });
});

const escape = (prompt = 'Escape') => ({
  id: 'key#1',
  spec: { kind: 'prompt', agent: 'worker', prompt, mode: 'fire-forget', expects: [] } as const,
});
