import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';

import { err, ok } from '../base/errors.ts';
import type { JsonMap } from '../base/json.ts';
import { serveMcp, type Tool } from './server.ts';

const FIELDS: Tool['fields'] = {
  word: { type: 'string', required: true, description: 'A word.' },
  more: { type: 'object', required: false, description: 'What goes with it.' },
};

function tool(name: string, perform: Tool['perform']): Tool {
  return { name, title: name, description: name, fields: FIELDS, annotations: { readOnlyHint: true }, perform };
}

/** A client whose server has the tools `echo`, `refuse`, and `wait`, which ends when it is told so. */
class Client {
  readonly #input = new PassThrough();
  readonly #lines: string[] = [];
  readonly #ended: Promise<void>;
  /** Words of the calls of `wait` that have been told that nobody waits for them. */
  readonly told: string[] = [];

  constructor(tools: readonly Tool[] | null = null) {
    const output = new PassThrough();
    output.on('data', (line: Buffer) => this.#lines.push(line.toString()));
    this.#ended = serveMcp({
      version: '1.2.3',
      instructions: 'Report.',
      tools: tools ?? [
        tool('echo', ({ word }) => Promise.resolve(ok(`${word as string}!`))),
        tool('refuse', ({ word }) => Promise.resolve(err(`not ${word as string}`))),
        tool('wait', async ({ word }, gone) => {
          await new Promise<void>((resolve) => gone.addEventListener('abort', () => resolve()));
          this.told.push(word as string);
          return ok('never heard');
        }),
      ],
      input: this.#input,
      output,
    });
  }

  say(...messages: readonly (JsonMap | readonly JsonMap[])[]): this {
    return this.write(messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
  }

  call(id: string | number, name: string, input?: unknown): this {
    const call = { name, ...(input === undefined ? {} : { arguments: input }) } as JsonMap;
    return this.say({ jsonrpc: '2.0', id, method: 'tools/call', params: call });
  }

  write(bytes: string | Buffer): this {
    this.#input.write(bytes);
    return this;
  }

  /** All that was answered, when the input has ended. */
  async heard(): Promise<unknown[]> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#input.end();
    await this.#ended;
    return this.#lines.map((line) => {
      if (line.indexOf('\n') !== line.length - 1) throw new Error(`this is not one line: ${line}`);
      return JSON.parse(line) as unknown;
    });
  }
}

function refusal(id: string | number | null, code: number): unknown {
  return { jsonrpc: '2.0', id, error: { code, message: expect.any(String) as string } };
}

function said(id: string | number, text: string, isError = false): unknown {
  return { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }], isError } };
}

test.each([
  ['2024-11-05', '2024-11-05'],
  ['2025-03-26', '2025-03-26'],
  ['2025-06-18', '2025-06-18'],
  ['2025-11-25', '2025-11-25'],
  ['1999-01-01', '2025-11-25'],
])('a client that speaks %s is answered in %s', async (asked, answered) => {
  const params = { protocolVersion: asked, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params };
  const [answer] = await new Client().say(initialize).heard();
  expect(answer).toEqual({
    jsonrpc: '2.0',
    id: 1,
    result: {
      protocolVersion: answered,
      capabilities: { tools: {} },
      serverInfo: { name: 'meow', title: 'MEOW', version: '1.2.3' },
      instructions: 'Report.',
    },
  });
});

test('a ping is answered, a notification is not, and what is unknown is refused', async () => {
  const client = new Client().say(
    { jsonrpc: '2.0', id: 'a', method: 'server/discover' },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', method: 'notifications/other', params: [] },
    { jsonrpc: '2.0', id: 'b', method: 'ping' },
    { jsonrpc: '2.0', id: 5, result: {} },
  );
  expect(await client.heard()).toEqual([refusal('a', -32601), { jsonrpc: '2.0', id: 'b', result: {} }]);
});

test('a tool is declared with all that it must be given', async () => {
  const [answer] = await new Client().say({ jsonrpc: '2.0', id: 1, method: 'tools/list' }).heard();
  const { tools } = (answer as { result: { tools: unknown[] } }).result;
  expect(tools).toHaveLength(3);
  expect(tools[0]).toEqual({
    name: 'echo',
    title: 'echo',
    description: 'echo',
    inputSchema: {
      type: 'object',
      properties: {
        word: { type: 'string', description: 'A word.' },
        more: { type: 'object', description: 'What goes with it.', additionalProperties: true },
      },
      required: ['word'],
      additionalProperties: false,
    },
    annotations: { title: 'echo', readOnlyHint: true },
  });
});

test('a tool answers with text, and what it refuses is marked', async () => {
  const client = new Client().call(1, 'echo', { word: 'yes' }).call(2, 'refuse', { word: 'so', more: null });
  expect(await client.heard()).toEqual([said(1, 'yes!'), said(2, 'not so', true)]);
});

test.each([
  [undefined, 'echo: the argument word is missing'],
  [{ word: null }, 'echo: the argument word is missing'],
  [{ word: 7 }, 'echo: the argument word must be a string'],
  [{ word: 'a', more: '{}' }, 'echo: the argument more must be an object'],
  [{ word: 'a', more: [] }, 'echo: the argument more must be an object'],
  [{ word: 'a', wrod: 'b' }, 'echo: unknown argument "wrod"; available: word, more'],
])('a model that gives a tool %j is told what is wrong with it', async (input, text) => {
  expect(await new Client().call(1, 'echo', input).heard()).toEqual([said(1, text, true)]);
});

test('a call that no model has made is refused by the protocol', async () => {
  const client = new Client()
    .call(1, 'ehco', {})
    .call(2, 'toString', {})
    .call(3, 'echo', [])
    .say({ jsonrpc: '2.0', id: 4, method: 'tools/call' });
  const answers = await client.heard();
  // The SDK calls what does not fit its schema an internal error.
  for (const [id, code] of [
    [1, -32602],
    [2, -32602],
    [3, -32603],
    [4, -32603],
  ] as const)
    expect(answers).toContainEqual(refusal(id, code));
  expect(answers).toHaveLength(4);
});

test('a call that waits holds up no other, and ends when it is cancelled, without an answer', async () => {
  const client = new Client()
    .call(1, 'wait', { word: 'one' })
    .call('1', 'wait', { word: 'two' })
    .call(2, 'echo', { word: 'yes' });
  await new Promise((resolve) => setImmediate(resolve));
  client
    .say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, reason: 'no more' } })
    .say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 99 } })
    .say({ jsonrpc: '2.0', method: 'notifications/cancelled' });
  await new Promise((resolve) => setImmediate(resolve));
  expect(client.told).toEqual(['one']);
  expect(await client.heard()).toEqual([said(2, 'yes!')]);
});

test('a call that is cancelled before it begins is not performed', async () => {
  const client = new Client()
    .call(1, 'wait', { word: 'one' })
    .say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } });
  expect(await client.heard()).toEqual([]);
  expect(client.told).toEqual([]);
});

test('what still waits when the input ends is ended', async () => {
  const client = new Client().call(1, 'wait', { word: 'one' }).call(2, 'wait', { word: 'two' });
  expect(await client.heard()).toEqual([]);
  expect(client.told).toEqual(['one', 'two']);
});

test.each([
  '{"jsonrpc":"2.0","id":1,',
  '\u0000\u0001',
  Buffer.from([0xff, 0xfe, 0x80]),
  '7',
  'null',
  '{}',
  '[]',
  '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
  '{"id":null,"method":"ping"}',
  '{"method":7}',
  '{"__proto__":{"method":"ping"}}',
])('%j is ignored, and the next message is answered', async (line) => {
  const client = new Client().write(line).write('\r\n\n').say({ jsonrpc: '2.0', id: 1, method: 'ping' });
  expect(await client.heard()).toEqual([{ jsonrpc: '2.0', id: 1, result: {} }]);
});

test('a line may come in any pieces, and one that was not finished is no message', async () => {
  const client = new Client();
  for (const byte of Buffer.from('{"jsonrpc":"2.0","id":"é","method":"ping"}\n')) client.write(Buffer.from([byte]));
  client.write('{"jsonrpc":"2.0","id":2,"method":"ping"}');
  expect(await client.heard()).toEqual([{ jsonrpc: '2.0', id: 'é', result: {} }]);
});

test('a line that does not fit into the buffer ends the server', async () => {
  const client = new Client().call(1, 'wait', { word: 'one' });
  await new Promise((resolve) => setImmediate(resolve));
  for (let i = 0; i < 17; i++) client.write(Buffer.alloc(1024 * 1024, 'x'));
  client.write('\n').say({ jsonrpc: '2.0', id: 1, method: 'ping' });
  expect(await client.heard()).toEqual([]);
  expect(client.told).toEqual(['one']);
});
