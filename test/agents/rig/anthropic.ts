// Anthropic Messages, as far as Claude Code uses it: `POST /v1/messages`, streamed and not.

import type { IncomingHttpHeaders } from 'node:http';

import type { JsonMap } from '../../../src/base/json.ts';
import { mapAt, mapsAt, textAt } from './json-parts.ts';
import type { Call, ModelError, ModelRequest, Protocol, Reply, Said } from './model-talk.ts';
import { INPUT_TOKENS, lastOf, OUTPUT_TOKENS } from './model-talk.ts';

export const anthropic: Protocol = { understand, aside, stream, whole, error };

function understand(body: JsonMap, headers: IncomingHttpHeaders): ModelRequest | null {
  const conversation = mapsAt(body, 'messages').flatMap(saidIn);
  const last = lastOf(conversation);
  const tools = mapsAt(body, 'tools').map((tool) => textAt(tool, 'name'));
  if (isAside(body, tools, last)) return null;
  return {
    provider: 'anthropic',
    model: textAt(body, 'model'),
    session: headers['x-claude-code-session-id']?.toString(),
    last,
    conversation,
    tools,
    headers,
  };
}

/** A probe for one token, a title, or a guess at the user's next prompt. */
function isAside(body: JsonMap, tools: readonly string[], last: string): boolean {
  return body['max_tokens'] === 1 || (wantsJson(body) && tools.length === 0) || last.startsWith('[SUGGESTION MODE');
}

function aside(body: JsonMap): Reply {
  return { say: wantsJson(body) ? JSON.stringify({ title: 'A session' }) : '' };
}

function wantsJson(body: JsonMap): boolean {
  return textAt(mapAt(mapAt(body, 'output_config'), 'format'), 'type') === 'json_schema';
}

function saidIn(message: JsonMap): readonly Said[] {
  return blocksOf(message).flatMap((block): readonly Said[] => {
    switch (block['type']) {
      case 'text': {
        const text = textAt(block, 'text');
        return [{ by: speaker(textAt(message, 'role'), text), text }];
      }
      case 'tool_use':
        return [{ by: 'model', text: `${textAt(block, 'name')} ${JSON.stringify(block['input'])}` }];
      case 'tool_result': {
        const texts = blocksOf(block).map((part) => textAt(part, 'text'));
        return [{ by: 'tool', text: texts.join('\n') }];
      }
      default:
        return []; // thoughts and images
    }
  });
}

/** A text may replace a list with one block. */
function blocksOf(map: JsonMap): readonly JsonMap[] {
  const { content } = map;
  return typeof content === 'string' ? [{ type: 'text', text: content }] : mapsAt(map, 'content');
}

function speaker(role: string, text: string): Said['by'] {
  if (role === 'assistant') return 'model';
  return role === 'user' && !isAddition(text) ? 'user' : 'system';
}

function isAddition(text: string): boolean {
  return /^\s*<system-reminder>[^]*<\/system-reminder>\s*$/.test(text);
}

function stream(reply: Reply, body: JsonMap, id: string): { begin: JsonMap[]; end: JsonMap[] } {
  const begin: JsonMap[] = [
    { type: 'message_start', message: { ...message(body, id), content: [], stop_reason: null } },
  ];
  let index = 0;
  if (reply.say !== undefined) {
    begin.push(
      { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index, delta: { type: 'text_delta', text: reply.say } },
      { type: 'content_block_stop', index },
    );
    index += 1;
  }
  const end: JsonMap[] = [];
  for (const [number, call] of (reply.call ?? []).entries()) {
    end.push(
      { type: 'content_block_start', index, content_block: { ...toolUse(call, number, id), input: {} } },
      {
        type: 'content_block_delta',
        index,
        delta: { type: 'input_json_delta', partial_json: JSON.stringify(call.input) },
      },
      { type: 'content_block_stop', index },
    );
    index += 1;
  }
  end.push(
    {
      type: 'message_delta',
      delta: { stop_reason: stopReason(reply), stop_sequence: null },
      usage: { output_tokens: OUTPUT_TOKENS },
    },
    { type: 'message_stop' },
  );
  return { begin, end };
}

function whole(reply: Reply, body: JsonMap, id: string): JsonMap {
  const text = reply.say === undefined ? [] : [{ type: 'text', text: reply.say }];
  const calls = (reply.call ?? []).map((call, number) => toolUse(call, number, id));
  return { ...message(body, id), content: [...text, ...calls], stop_reason: stopReason(reply) };
}

function message(body: JsonMap, id: string): JsonMap {
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model: body['model'] ?? null,
    stop_sequence: null,
    usage: { input_tokens: INPUT_TOKENS, output_tokens: OUTPUT_TOKENS },
  };
}

function toolUse({ tool, input }: Call, number: number, id: string): JsonMap {
  return { type: 'tool_use', id: `toolu_${id}_${number}`, name: tool, input };
}

function stopReason(reply: Reply): string {
  return reply.call === undefined || reply.call.length === 0 ? 'end_turn' : 'tool_use';
}

function error({ message, type = 'api_error', details = {} }: ModelError): JsonMap {
  return { type: 'error', error: { type, message, ...details } };
}
