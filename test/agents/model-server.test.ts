// The scripted model, with requests as agents send them.

import { expect, test } from 'vitest';
import { ModelServer } from './rig/model-server.ts';
import { INPUT_TOKENS, latch, OUTPUT_TOKENS } from './rig/model-talk.ts';

test('a prompt in Messages is answered as the script says', async () => {
  await using model = await ModelServer.start(({ last }) => ({ say: `you said ${last}` }));
  const reply = await messages(model, { messages: [{ role: 'user', content: 'hello' }] });
  expect(await reply.json()).toMatchObject({
    role: 'assistant',
    content: [{ type: 'text', text: 'you said hello' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: INPUT_TOKENS, output_tokens: OUTPUT_TOKENS },
  });
});

test('a stream in Messages has text, then calls', async () => {
  await using model = await ModelServer.start(() => ({
    say: 'well',
    call: [{ tool: 'Bash', input: { command: 'ls' } }],
  }));
  const reply = await messages(model, { stream: true, messages: [{ role: 'user', content: 'go' }] });
  const events = eventsIn(await reply.text());
  expect(events.map(({ type }) => type)).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
  expect(events[4]).toMatchObject({ content_block: { type: 'tool_use', name: 'Bash', input: {} } });
  expect(events[5]).toMatchObject({ delta: { partial_json: '{"command":"ls"}' } });
  expect(events[7]).toMatchObject({ delta: { stop_reason: 'tool_use' } });
});

test('a stream in Responses has text, then calls, with both names for those of a namespace', async () => {
  const call = [
    { tool: 'exec_command', input: { cmd: 'ls' } },
    { tool: 'mcp__meow__done', input: { text: 'x' } },
  ];
  await using model = await ModelServer.start(() => ({ say: 'well', call }));
  const tools = [
    { type: 'function', name: 'exec_command' },
    { type: 'namespace', name: 'mcp__meow', tools: [{ type: 'function', name: 'done' }] },
  ];
  const reply = await responses(model, { tools, input: [{ role: 'user', content: 'go' }] });
  const events = eventsIn(await reply.text());
  expect(events.map(({ type }) => type)).toEqual([
    'response.created',
    'response.output_item.added',
    'response.output_text.delta',
    'response.output_item.done',
    'response.output_item.done',
    'response.output_item.done',
    'response.completed',
  ]);
  expect(events[4]).toMatchObject({ item: { type: 'function_call', name: 'exec_command', arguments: '{"cmd":"ls"}' } });
  expect(events[5]).toMatchObject({ item: { type: 'function_call', namespace: 'mcp__meow', name: 'done' } });
  expect(model.turns[0]?.tools).toEqual(['exec_command', 'mcp__meow__done']);
});

test('a script sees the conversation and the last message', async () => {
  await using model = await ModelServer.start(() => ({ say: 'fine' }));
  await messages(model, {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: '<system-reminder>\nbe good\n</system-reminder>\n' },
          { type: 'text', text: 'list it' },
        ],
      },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'ls' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'a b' }] },
      { role: 'system', content: [{ type: 'text', text: 'today is Friday' }] },
    ],
  });
  await responses(model, {
    input: [
      { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'be good' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: '<environment_context>here' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'list it' }] },
      { type: 'function_call', call_id: 'c1', name: 'exec_command', arguments: '{"cmd":"ls"}' },
      { type: 'function_call_output', call_id: 'c1', output: 'a b' },
    ],
  });
  const [first, second] = model.turns;
  expect(first?.conversation).toEqual([
    { by: 'system', text: '<system-reminder>\nbe good\n</system-reminder>\n' },
    { by: 'user', text: 'list it' },
    { by: 'model', text: 'Bash {"command":"ls"}' },
    { by: 'tool', text: 'a b' },
    { by: 'system', text: 'today is Friday' },
  ]);
  expect(second?.conversation).toEqual([
    { by: 'system', text: 'be good' },
    { by: 'system', text: '<environment_context>here' },
    { by: 'user', text: 'list it' },
    { by: 'model', text: 'exec_command {"cmd":"ls"}' },
    { by: 'tool', text: 'a b' },
  ]);
  expect([first?.last, second?.last]).toEqual(['a b', 'a b']);
});

test('an agent’s own requests never reach the script', async () => {
  await using model = await ModelServer.start(() => {
    throw new Error('the script was asked');
  });
  const titled = { output_config: { format: { type: 'json_schema' } }, tools: [] };
  const title = await messages(model, { ...titled, messages: [{ role: 'user', content: '<session>x</session>' }] });
  expect(await title.json()).toMatchObject({ content: [{ text: '{"title":"A session"}' }] });
  await messages(model, { max_tokens: 1, messages: [{ role: 'user', content: 'quota' }] });
  await messages(model, { messages: [{ role: 'user', content: '[SUGGESTION MODE: what next?]' }] });
  const metadata = JSON.stringify({ request_kind: 'turn', thread_source: 'thread_title' });
  await responses(model, { input: [] }, { 'x-codex-turn-metadata': metadata });
  const count = await post(model, '/v1/messages/count_tokens', { messages: [] });
  expect(await count.json()).toEqual({ input_tokens: INPUT_TOKENS });
  expect((await fetch(`${model.url}/api/hello`, { method: 'HEAD' })).status).toBe(200);
  expect(model.turns).toEqual([]);
  expect(model.log).toHaveLength(6);
});

test('an error has the format of the provider', async () => {
  const error = {
    status: 429,
    type: 'usage_limit_reached',
    message: 'no more',
    details: { resets_at: 5 },
    headers: { 'retry-after': '7' },
  };
  await using model = await ModelServer.start(() => ({ error }));
  const first = await messages(model, { stream: true, messages: [] });
  expect([first.status, first.headers.get('retry-after')]).toEqual([429, '7']);
  const details = { type: 'usage_limit_reached', message: 'no more', resets_at: 5 };
  expect(await first.json()).toEqual({ type: 'error', error: details });
  const second = await responses(model, { input: [] });
  expect([second.status, await second.json()]).toEqual([429, { error: details }]);
});

test('a held reply sends its text at once and the rest when it is released', async () => {
  const { hold, letGo } = latch();
  await using model = await ModelServer.start(() => ({ say: 'wait', hold }));
  const reply = await messages(model, { stream: true, messages: [{ role: 'user', content: 'go' }] });
  const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
  let seen = '';
  while (!seen.includes('content_block_stop')) seen += (await reader?.read())?.value ?? '';
  expect(seen).toContain('"text":"wait"');
  expect(seen).not.toContain('message_stop');
  letGo();
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) seen += read.value;
  expect(seen).toContain('message_stop');
});

test('an agent that dies while its reply is held does no harm', async () => {
  const { hold, letGo } = latch();
  await using model = await ModelServer.start(({ last }) => (last === 'go' ? { say: 'wait', hold } : { say: 'fine' }));
  const agent = new AbortController();
  const gone = messages(model, { stream: true, messages: [{ role: 'user', content: 'go' }] }, agent.signal);
  await model.asked(({ last }) => last === 'go');
  await gone;
  agent.abort();
  letGo();
  const next = await messages(model, { messages: [{ role: 'user', content: 'again' }] });
  expect(await next.json()).toMatchObject({ content: [{ text: 'fine' }] });
});

test('a turn can be awaited before or after it arrives', async () => {
  await using model = await ModelServer.start(() => ({ say: 'fine' }));
  const before = model.asked(({ last }) => last === 'second');
  await messages(model, { messages: [{ role: 'user', content: 'first' }] });
  await messages(model, { messages: [{ role: 'user', content: 'second' }] });
  expect((await before).last).toBe('second');
  expect((await model.asked(({ last }) => last === 'first')).provider).toBe('anthropic');
});

test('a script that throws fails the turn, and the test', async () => {
  const model = await ModelServer.start(() => {
    throw new Error('no line for this');
  });
  const reply = await messages(model, { messages: [{ role: 'user', content: 'go' }] });
  expect(reply.status).toBe(400);
  await expect(model[Symbol.asyncDispose]()).rejects.toThrow('the script of the model failed');
});

function messages(model: ModelServer, body: object, signal?: AbortSignal): Promise<Response> {
  return post(model, '/v1/messages?beta=true', { model: 'm', ...body }, {}, signal);
}

function responses(model: ModelServer, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return post(model, '/v1/responses', { model: 'm', stream: true, ...body }, headers);
}

function post(
  model: ModelServer,
  path: string,
  body: object,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Response> {
  return fetch(model.url + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

function eventsIn(stream: string): readonly { readonly type: string }[] {
  return [...stream.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as { type: string });
}
