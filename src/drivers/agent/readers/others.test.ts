import { describe, expect, test } from 'vitest';

import type { JsonMap } from '../../../base/json.ts';
import { ClaudeReader } from './claude.ts';
import { CodexReader } from './codex.ts';
import { GeminiReader } from './gemini.ts';
import { SimReader, TextReader } from './named.ts';
import { OpencodeReader } from './opencode.ts';
import type { Reader } from './reader.ts';

function fed(reader: Reader, ...events: readonly JsonMap[]): Reader {
  for (const event of events) reader.line(JSON.stringify(event));
  return reader;
}

const END = { status: 0, stderr: '', at: 1_000 };

describe('Codex', () => {
  const begun = { type: 'thread.started', thread_id: '01a1' };
  const warning = { type: 'error', message: 'Reconnecting... 1/1' };
  const message = (text: string): JsonMap => ({
    type: 'item.completed',
    item: { id: 'i3', type: 'agent_message', text },
  });
  const command = (type: string): JsonMap => ({ type, item: { id: 'i2', type: 'command_execution' } });
  const completed = { type: 'turn.completed', usage: { input_tokens: 100, cached_input_tokens: 60, output_tokens: 5 } };

  test('answers with its last message, and counts the tokens of the thread', () => {
    const reader = fed(new CodexReader(), begun, { type: 'turn.started' }, message('a'), message('b'), completed);
    expect(reader.session).toBe('01a1');
    expect(reader.end(END)).toEqual({
      verdict: { kind: 'answer', text: 'b', structured: null },
      denied: 0,
      // Cached input is counted on its own.
      usage: { usd: null, tokens: 105, scope: 'session', parts: { input: 40, cached: 60, output: 5 } },
    });
  });

  test('fails if its message is too long, instead of answering with nothing or with an earlier message', () => {
    const TOO_LONG = { kind: 'error', message: 'its answer has more than 64000000 characters', limit: null };
    const long = fed(new CodexReader(), begun, message('a'), message('x'.repeat(64_000_001)), completed);
    expect(long.end(END).verdict).toEqual(TOO_LONG);
    const skipped = fed(new CodexReader(), begun, message('a'));
    skipped.longLine(true);
    expect(fed(skipped, completed).end(END).verdict).toEqual(TOO_LONG);
    expect(fed(skipped, message('b'), completed).end(END).verdict).toMatchObject({ kind: 'answer', text: 'b' });
  });

  test('warns without failing', () => {
    const item = { type: 'item.completed', item: { id: 'i0', type: 'error', message: 'no metadata' } };
    expect(fed(new CodexReader(), begun, item, warning, message('a'), completed).end(END).verdict.kind).toBe('answer');
  });

  test('fails by `turn.failed` alone, and by its exit status', () => {
    const failed = { type: 'turn.failed', error: { message: 'high demand' } };
    expect(fed(new CodexReader(), begun, warning, failed).end({ ...END, status: 1 }).verdict).toEqual({
      kind: 'error',
      message: 'high demand',
      limit: null,
    });
    expect(fed(new CodexReader(), begun, message('a'), completed).end({ ...END, status: 1 }).verdict.kind).toBe(
      'silent',
    );
    expect(fed(new CodexReader(), begun, message('a')).end(END).verdict.kind).toBe('silent');
  });

  test('has reached a limit where the API said so at last', () => {
    const failed = {
      type: 'turn.failed',
      error: { message: 'exceeded retry limit, last status: 429 Too Many Requests' },
    };
    expect(fed(new CodexReader(), failed).end({ ...END, status: 1 }).verdict).toMatchObject({ limit: { until: null } });
  });

  test('has a tool in flight until that is completed', () => {
    expect(fed(new CodexReader(), command('item.started')).toolInFlight).toBe(true);
    expect(fed(new CodexReader(), command('item.started'), command('item.completed')).toolInFlight).toBe(false);
  });
});

describe('Gemini', () => {
  const init = { type: 'init', session_id: '186a', model: 'm' };
  const delta = (content: string): JsonMap => ({ type: 'message', role: 'assistant', content, delta: true });
  const call = { type: 'tool_use', tool_name: 'run', tool_id: 't1', parameters: {} };
  const answer = { type: 'tool_result', tool_id: 't1', status: 'success', output: 'x' };
  const result = { type: 'result', status: 'success', stats: { total_tokens: 24, input_tokens: 20, output_tokens: 4 } };

  test('answers with what it said after the last tool, in pieces', () => {
    const asked = { type: 'message', role: 'user', content: 'run it' };
    const reader = fed(
      new GeminiReader(),
      init,
      asked,
      delta('Running.'),
      call,
      answer,
      delta('It '),
      delta('ran.'),
      result,
    );
    expect(reader.session).toBe('186a');
    expect(reader.end(END)).toEqual({
      verdict: { kind: 'answer', text: 'It ran.', structured: null },
      denied: 0,
      usage: { usd: null, tokens: 24, scope: 'untold' },
    });
  });

  test('has a tool in flight until that has answered', () => {
    expect(fed(new GeminiReader(), call).toolInFlight).toBe(true);
    expect(fed(new GeminiReader(), call, answer).toolInFlight).toBe(false);
  });

  test('tells on stderr what went wrong', () => {
    const told = { session_id: '186a', error: { type: 'Error', message: 'Bad request', code: 400 } };
    const stderr = `Loaded something {odd}.\n{"not": "it"}\n${JSON.stringify(told, null, 2)}\n`;
    expect(fed(new GeminiReader(), init).end({ ...END, status: 144, stderr }).verdict).toEqual({
      kind: 'error',
      message: 'Bad request',
      limit: null,
    });
  });

  test('tells by eight bits of its exit status what the API answered', () => {
    expect(new GeminiReader().end({ ...END, status: 144 }).verdict).toMatchObject({
      message: 'the API answered with status 400',
    });
    expect(new GeminiReader().end({ ...END, status: 173 }).verdict).toMatchObject({
      kind: 'error',
      limit: { until: null },
    });
    expect(new GeminiReader().end({ ...END, status: 137 }).verdict).toEqual({ kind: 'silent' });
    expect(new GeminiReader().end({ ...END, status: 41 }).verdict).toEqual({ kind: 'silent' });
  });

  test('has not succeeded without a result that says so', () => {
    expect(fed(new GeminiReader(), init, delta('hm')).end(END).verdict).toEqual({ kind: 'silent' });
    const failed = { type: 'result', status: 'error', error: { type: 'x', message: 'no' }, stats: {} };
    expect(fed(new GeminiReader(), init, failed).end({ ...END, status: 1 }).verdict).toMatchObject({ message: 'no' });
  });
});

describe('opencode', () => {
  const event = (type: string, part: JsonMap): JsonMap => ({ type, sessionID: 'ses_1', part });
  const start = event('step_start', { id: 'p' });
  const text = (said: string): JsonMap => event('text', { text: said });
  const finish = (cost: number, total: number): JsonMap =>
    event('step_finish', { reason: 'stop', tokens: { total }, cost });
  const error = (data: JsonMap): JsonMap => ({ type: 'error', sessionID: 'ses_1', error: { name: 'APIError', data } });

  test('answers with what it said in its last step, and adds up its steps', () => {
    const reader = fed(
      new OpencodeReader(),
      start,
      text('Running.'),
      finish(0.1, 70),
      start,
      text('It ran.'),
      finish(0.2, 80),
    );
    expect(reader.session).toBe('ses_1');
    const { verdict, usage } = reader.end(END);
    expect(verdict).toMatchObject({ kind: 'answer', text: 'It ran.' });
    expect(usage).toEqual({ usd: expect.closeTo(0.3) as unknown, tokens: 150, scope: 'turn' });
  });

  test('has no price where tokens cost nothing', () => {
    expect(fed(new OpencodeReader(), start, finish(0, 70)).end(END).usage).toMatchObject({ usd: null, tokens: 70 });
  });

  test('fails by an event that is not got over', () => {
    const failed = fed(new OpencodeReader(), error({ message: 'bad', statusCode: 400 }));
    expect(failed.end({ ...END, status: 1 }).verdict).toEqual({ kind: 'error', message: 'bad', limit: null });
    expect(failed.end(END).verdict.kind).toBe('error');
    const recovered = fed(new OpencodeReader(), error({ message: 'bad' }), start, text('a'), finish(0, 1));
    expect(recovered.end(END).verdict.kind).toBe('answer');
    expect(recovered.end({ ...END, status: 1 }).verdict.kind).toBe('silent');
    expect(fed(new OpencodeReader(), start, text('a')).end(END).verdict.kind).toBe('silent');
  });

  test('tells when a limit ends', () => {
    const limited = error({ message: 'slow', statusCode: 429, responseHeaders: { 'retry-after': '30' } });
    expect(fed(new OpencodeReader(), limited).end({ ...END, status: 1 }).verdict).toMatchObject({
      limit: { until: 31_000 },
    });
  });
});

describe('plain text', () => {
  test('is the answer of a program that exits with 0', () => {
    expect(new TextReader().end(END)).toEqual({
      verdict: { kind: 'answer', text: null, structured: null },
      denied: 0,
      usage: null,
    });
    expect(new TextReader().end({ ...END, status: 2 }).verdict).toEqual({ kind: 'silent' });
  });
});

describe('the simulated agent', () => {
  test('answers, and tells what the turn has cost', () => {
    const done = { kind: 'result', ok: true, text: 'yes', usd: 0.1, tokens: 5 };
    const reader = fed(new SimReader(), { kind: 'begun', session: 's' }, { kind: 'tool', state: 'begun', text: 'x' });
    expect([reader.session, reader.toolInFlight]).toEqual(['s', true]);
    expect(fed(reader, { kind: 'tool', state: 'ended', text: '' }, done).end(END)).toEqual({
      verdict: { kind: 'answer', text: 'yes', structured: null },
      denied: 0,
      usage: { usd: 0.1, tokens: 5, scope: 'turn' },
    });
    expect(reader.toolInFlight).toBe(false);
  });

  test('fails, and runs into limits', () => {
    const failed = { kind: 'result', ok: false, text: 'no', usd: null, tokens: null };
    expect(fed(new SimReader(), failed).end(END).verdict).toEqual({ kind: 'error', message: 'no', limit: null });
    const limited = fed(new SimReader(), { ...failed, limit: { until: 7 } });
    expect(limited.end(END).verdict).toMatchObject({ limit: { until: 7 } });
  });
});

test.each([
  ['claude', new ClaudeReader(), { type: 'result' }],
  ['gemini', new GeminiReader(), { role: 'assistant' }],
  ['codex', new CodexReader(), { type: 'turn.completed' }],
  ['opencode', new OpencodeReader(), { type: 'text' }],
  ['sim', new SimReader(), { kind: 'result' }],
])('a long event of %s is read with and without blanks in its JSON', (_name, { essential }, event) => {
  const compact = JSON.stringify(event);
  for (const text of [compact, compact.replaceAll(':', ': ')])
    expect(essential.some((part) => text.includes(part))).toBe(true);
});
