// OpenAI Responses, as far as Codex uses it: `POST /v1/responses`, streamed.

import type { IncomingHttpHeaders } from 'node:http';

import type { Json, JsonMap } from '../../../src/base/json.ts';
import { mapsAt, textAt } from './json-parts.ts';
import type { Call, ModelError, ModelRequest, Protocol, Reply, Said } from './model-talk.ts';
import { INPUT_TOKENS, lastOf, OUTPUT_TOKENS } from './model-talk.ts';

export const openai: Protocol = { understand, aside, stream, whole, error };

function understand(body: JsonMap, headers: IncomingHttpHeaders): ModelRequest | null {
  if (!isTurn(headers)) return null;
  const conversation = mapsAt(body, 'input').flatMap(saidIn);
  return {
    provider: 'openai',
    model: textAt(body, 'model'),
    session: headers['session-id']?.toString(),
    last: lastOf(conversation),
    conversation,
    tools: toolNames(body),
    headers,
  };
}

/** Codex states the purpose and the thread of each request; without a purpose it is a turn. */
function isTurn(headers: IncomingHttpHeaders): boolean {
  const told = headers['x-codex-turn-metadata']?.toString();
  if (told === undefined) return true;
  const { request_kind: kind, thread_source: source } = JSON.parse(told) as Readonly<Record<string, Json>>;
  return kind === 'turn' && source !== 'thread_title';
}

function aside(): Reply {
  return { say: JSON.stringify({ title: 'A session' }) };
}

function saidIn(item: JsonMap): readonly Said[] {
  switch (item['type'] ?? 'message') {
    case 'message':
      return texts(item, 'content').map((text) => ({ by: speaker(textAt(item, 'role'), text), text }));
    case 'function_call':
      return [{ by: 'model', text: `${fullName(textAt(item, 'namespace'), item)} ${textAt(item, 'arguments')}` }];
    case 'function_call_output':
      return [{ by: 'tool', text: texts(item, 'output').join('\n') }];
    default:
      return []; // thoughts, searches
  }
}

function speaker(role: string, text: string): Said['by'] {
  if (role === 'assistant') return 'model';
  const added = /^(<environment_context>|<user_instructions>|# AGENTS\.md instructions)/.test(text);
  return role === 'user' && !added ? 'user' : 'system';
}

/** A text may replace a list of one. */
function texts(map: JsonMap, key: string): readonly string[] {
  const value = map[key];
  return typeof value === 'string' ? [value] : mapsAt(map, key).map((part) => textAt(part, 'text'));
}

function toolNames(body: JsonMap): readonly string[] {
  return mapsAt(body, 'tools').flatMap((tool) =>
    tool['type'] === 'namespace'
      ? mapsAt(tool, 'tools').map((inner) => fullName(textAt(tool, 'name'), inner))
      : [fullName('', tool)],
  );
}

/** The provider's own tools have no name but their type. */
function fullName(namespace: string, tool: JsonMap): string {
  const name = textAt(tool, 'name') || textAt(tool, 'type');
  return namespace === '' ? name : `${namespace}__${name}`;
}

function stream(reply: Reply, body: JsonMap, id: string): { begin: JsonMap[]; end: JsonMap[] } {
  const begin: JsonMap[] = [
    { type: 'response.created', response: { ...response(id), status: 'in_progress', output: [] } },
  ];
  if (reply.say !== undefined) {
    const item = spoken(reply.say, id);
    begin.push(
      { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
      {
        type: 'response.output_text.delta',
        item_id: `msg_${id}`,
        output_index: 0,
        content_index: 0,
        delta: reply.say,
      },
      { type: 'response.output_item.done', output_index: 0, item },
    );
  }
  const first = reply.say === undefined ? 0 : 1;
  const end = (reply.call ?? []).map((call, number): JsonMap => {
    const item = functionCall(call, number, body, id);
    return { type: 'response.output_item.done', output_index: first + number, item };
  });
  end.push({ type: 'response.completed', response: whole(reply, body, id) });
  return { begin, end };
}

function whole(reply: Reply, body: JsonMap, id: string): JsonMap {
  const text = reply.say === undefined ? [] : [spoken(reply.say, id)];
  const calls = (reply.call ?? []).map((call, number) => functionCall(call, number, body, id));
  return { ...response(id), status: 'completed', output: [...text, ...calls] };
}

function response(id: string): JsonMap {
  return {
    id: `resp_${id}`,
    object: 'response',
    usage: {
      input_tokens: INPUT_TOKENS,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: OUTPUT_TOKENS,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: INPUT_TOKENS + OUTPUT_TOKENS,
    },
  };
}

function spoken(text: string, id: string): JsonMap {
  const content = [{ type: 'output_text', text, annotations: [] }];
  return { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content };
}

/** A tool in a namespace is called by two names. */
function functionCall({ tool, input }: Call, number: number, body: JsonMap, id: string): JsonMap {
  const namespace = mapsAt(body, 'tools')
    .filter(({ type }) => type === 'namespace')
    .map((space) => textAt(space, 'name'))
    .find((name) => tool.startsWith(`${name}__`));
  const named = namespace === undefined ? { name: tool } : { namespace, name: tool.slice(`${namespace}__`.length) };
  return {
    type: 'function_call',
    id: `fc_${id}_${number}`,
    call_id: `call_${id}_${number}`,
    ...named,
    arguments: JSON.stringify(input),
    status: 'completed',
  };
}

function error({ message, type = 'server_error', details = {} }: ModelError): JsonMap {
  return { error: { message, type, ...details } };
}
