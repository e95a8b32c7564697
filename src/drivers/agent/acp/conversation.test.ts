import { expect, test } from 'vitest';

import type { JsonMap } from '../../../base/json.ts';
import { Conversation } from './conversation.ts';
import { parseMessages } from './rpc.ts';

function talkOf(lines: readonly (JsonMap | readonly JsonMap[])[], isFresh = true): Conversation {
  const conversation = new Conversation(isFresh);
  for (const line of lines) for (const message of parseMessages(JSON.stringify(line))) conversation.add(message);
  return conversation;
}

const update = (value: JsonMap): JsonMap => ({ method: 'session/update', params: { update: value } });
const said = (text: string, messageId?: string): JsonMap =>
  update({
    sessionUpdate: 'agent_message_chunk',
    content: { type: 'text', text },
    ...(messageId === undefined ? {} : { messageId }),
  });
const cost = (amount: number, currency = 'USD'): JsonMap =>
  update({ sessionUpdate: 'usage_update', used: 1, size: 2, cost: { amount, currency } });
const answer = (id: string, result: JsonMap = {}): JsonMap => ({ id, result });
const asks = (id: number): JsonMap => ({ id, method: 'session/request_permission', params: {} });

test('the text of a turn is its last message', () => {
  const tool = update({ sessionUpdate: 'tool_call', toolCallId: 't' });
  const progress = update({ sessionUpdate: 'tool_call_update', toolCallId: 't', status: 'completed' });
  const turns = [
    [said('before'), answer('session')],
    [said('I look. '), tool, said('It '), progress, said('is.'), answer('a')],
    [said('one', '1'), said('two', '2'), said(' three', '2'), tool, answer('b')],
    [answer('c')],
  ];
  const { answers } = talkOf(turns.flat());
  expect(['a', 'b', 'c'].map((id) => answers.get(id)?.text)).toEqual(['It is.', 'two three', '']);
});

test('the cost of a turn is what the session has cost since the turn before', () => {
  const { answers } = talkOf([cost(1), answer('a'), answer('b'), cost(1.5), answer('c'), cost(0.25), answer('d')]);
  expect(['a', 'b', 'c', 'd'].map((id) => answers.get(id)?.usage.usd)).toEqual([1, 0, 0.5, null]);
});

test('the cost of a turn is not known where that of the session before it is not, or is told in other money', () => {
  expect(talkOf([cost(1), answer('a')], false).answers.get('a')?.usage.usd).toBeNull();
  expect(talkOf([cost(1, 'EUR'), answer('a')]).answers.get('a')?.usage.usd).toBeNull();
});

test('the tokens of a turn are told in several ways, or not at all', () => {
  const { answers } = talkOf([
    answer('a', { usage: { totalTokens: 7 } }),
    answer('b', { _meta: { quota: { token_count: { input_tokens: 3, output_tokens: 4 } } } }),
    answer('c', { usage: null, _meta: { quota: { token_count: null } } }),
  ]);
  expect(['a', 'b', 'c'].map((id) => answers.get(id)?.usage.tokens)).toEqual([7, 7, null]);
});

test('a request for leave is over with its turn, others are not', () => {
  const { requests } = talkOf([asks(1), { id: 'x', method: 'fs/read_text_file' }, answer('a'), asks(2)]);
  expect([...requests.keys()]).toEqual(['"x"', '2']);
});

test('a request for leave has what was told of its tool before, and does not change with what is told after', () => {
  const told = (title: string): JsonMap =>
    update({ sessionUpdate: 'tool_call_update', toolCallId: 't', title, kind: 'edit' });
  const params = { toolCall: { toolCallId: 't', title: null } };
  const { requests } = talkOf([told('Edit a.ts'), { ...asks(1), params }, told('Edited')]);
  expect(requests.get('1')?.params).toMatchObject({ toolCall: { title: 'Edit a.ts', kind: 'edit' } });
});

test('a batch is what is in it, and what is no message is nothing', () => {
  const { answers } = talkOf([[answer('a'), answer('b')], { id: 7, result: {} }, { jsonrpc: '2.0' }, []]);
  expect([...answers.keys()]).toEqual(['a', 'b']);
  expect(parseMessages('{"id":"a","result":')).toEqual([]);
});

test('an error tells all that it has for people', () => {
  const { answers } = talkOf([
    { id: 'a', error: { code: -32603, message: 'Internal error', data: { details: 'no such model' } } },
    { id: 'b', error: { code: 1, message: 'same', data: 'same' } },
    { id: 'c', error: 'what?' },
  ]);
  expect(['a', 'b', 'c'].map((id) => answers.get(id)?.error?.message)).toEqual([
    'Internal error: no such model',
    'same',
    '"what?"',
  ]);
});
