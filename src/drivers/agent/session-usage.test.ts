import { expect, test } from 'vitest';

import { usageInSession, usedSince } from './session-usage.ts';

const message = (id: string, input: number, cached: number, output: number): string =>
  JSON.stringify({
    type: 'assistant',
    message: {
      id,
      model: 'model-1',
      usage: {
        input_tokens: input,
        cache_creation_input_tokens: 10,
        cache_read_input_tokens: cached,
        output_tokens: output,
      },
    },
  });

test('messages are summed, each as its last line says', () => {
  const text = [message('m1', 100, 0, 1), message('m1', 100, 0, 20), message('m2', 5, 100, 30), '{"cut', '{}'].join(
    '\n',
  );
  expect(usageInSession(text)).toEqual({
    usd: null,
    tokens: 275,
    parts: { input: 125, cached: 100, output: 50 },
    model: 'model-1',
  });
});

test('of counts of the whole session the last one counts; cached input is part of its input', () => {
  const count = (input: number): string =>
    JSON.stringify({
      type: 'event_msg',
      payload: {
        type: 'token_count',
        info: { total_token_usage: { input_tokens: input, cached_input_tokens: 40, output_tokens: 7 } },
      },
    });
  expect(usageInSession(`${count(50)}\n${count(100)}\n`)).toEqual({
    usd: null,
    tokens: 107,
    parts: { input: 60, cached: 40, output: 7 },
  });
});

test('a file that reports nothing is unknown, and a prompt costs what came since the one before', () => {
  expect(usageInSession('{"type":"user","message":{"content":"usage"}}\nusage')).toBe(null);
  const [first, both] = [message('m1', 10, 0, 1), [message('m1', 10, 0, 1), message('m2', 1, 20, 2)].join('\n')].map(
    usageInSession,
  );
  if (first === null || first === undefined || both === null || both === undefined)
    throw new Error('nothing is reported');
  expect(usedSince(null, first).tokens).toBe(21);
  expect(usedSince(first, both)).toMatchObject({ tokens: 33, parts: { input: 11, cached: 20, output: 2 } });
});
