import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { JsonMap } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import { McpServer } from './server.ts';
import type { Tool } from './tool.ts';

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
    const server = new McpServer({
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
      send: (line) => this.#lines.push(line),
    });
    this.#ended = server.serve(this.#input);
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
  [7, '2025-11-25'],
])('a client that speaks %s is answered in %s', async (asked, answered) => {
  const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: asked } };
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
  [{ word: 'a', wrod: 'b' }, 'echo: there is no argument "wrod": there are word, more'],
])('a model that gives a tool %j is told what is wrong with it', async (input, text) => {
  expect(await new Client().call(1, 'echo', input).heard()).toEqual([said(1, text, true)]);
});

test('a call that no model has made is refused by the protocol', async () => {
  const client = new Client()
    .call(1, 'ehco', {})
    .call(2, 'toString', {})
    .call(3, 'echo', [])
    .say({ jsonrpc: '2.0', id: 4, method: 'tools/call' });
  expect(await client.heard()).toEqual([1, 2, 3, 4].map((id) => refusal(id, -32602)));
  const ping = { jsonrpc: '2.0', id: 5, method: 'ping', params: 'x' };
  expect(await new Client().say(ping).heard()).toEqual([refusal(5, -32602)]);
});

test('a call that waits holds up no other, and ends when it is cancelled, without an answer', async () => {
  const client = new Client()
    .call(1, 'wait', { word: 'one' })
    .call('1', 'wait', { word: 'two' })
    .call(2, 'echo', { word: 'yes' })
    .say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, reason: 'no more' } })
    .say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 99 } })
    .say({ jsonrpc: '2.0', method: 'notifications/cancelled' });
  await new Promise((resolve) => setImmediate(resolve));
  expect(client.told).toEqual(['one']);
  expect(await client.heard()).toEqual([said(2, 'yes!')]);
});

test('what still waits when the input ends is ended', async () => {
  const client = new Client().call(1, 'wait', { word: 'one' }).call(2, 'wait', { word: 'two' });
  expect(await client.heard()).toEqual([]);
  expect(client.told).toEqual(['one', 'two']);
});

test('several messages in a list are answered in a list', async () => {
  const ping = (id: number): JsonMap => ({ jsonrpc: '2.0', id, method: 'ping' });
  const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
  const client = new Client().say([ping(1), note, ping(2)], [note], []);
  const answers = await client.heard();
  expect(answers).toContainEqual([1, 2].map((id) => ({ jsonrpc: '2.0', id, result: {} })));
  expect(answers).toContainEqual(refusal(null, -32600));
  expect(answers).toHaveLength(2);
});

test.each([
  ['{"jsonrpc":"2.0","id":1,', -32700],
  ['\u0000\u0001', -32700],
  [Buffer.from([0xff, 0xfe, 0x80]), -32700],
  ['7', -32600],
  ['null', -32600],
  ['{}', -32600],
  ['{"id":null,"method":"ping"}', -32600],
  ['{"method":7}', -32600],
  ['{"__proto__":{"method":"ping"}}', -32600],
])('%j is refused, and the next message is heard', async (line, code) => {
  const client = new Client().write(line).write('\r\n\n').say({ jsonrpc: '2.0', id: 1, method: 'ping' });
  expect(await client.heard()).toEqual([refusal(null, code), { jsonrpc: '2.0', id: 1, result: {} }]);
});

test('a line may come in any pieces, and one that was not finished is no message', async () => {
  const client = new Client();
  for (const byte of Buffer.from('{"jsonrpc":"2.0","id":"é","method":"ping"}\n')) client.write(Buffer.from([byte]));
  client.write('{"jsonrpc":"2.0","id":2,"method":"ping"}');
  expect(await client.heard()).toEqual([{ jsonrpc: '2.0', id: 'é', result: {} }]);
});

test('a line without end is not kept', async () => {
  const client = new Client();
  for (let i = 0; i < 17; i++) client.write(Buffer.alloc(1024 * 1024, 'x'));
  client.write('\n').say({ jsonrpc: '2.0', id: 1, method: 'ping' });
  expect(await client.heard()).toEqual([refusal(null, -32700), { jsonrpc: '2.0', id: 1, result: {} }]);
});
