import { describe, expect, test } from 'vitest';

import type { JsonMap } from '../../../base/json.ts';
import { ClaudeReader } from './claude.ts';
import type { Reader, Reading } from './reader.ts';

const SESSION = 'a2767e21-5418-4a3d-9d28-225026c7e75d';
const init = (version = '2.1.325'): JsonMap => ({
  type: 'system',
  subtype: 'init',
  session_id: SESSION,
  claude_code_version: version,
});
const says = (text: string, id = 'msg_1', parent: string | null = null): JsonMap => ({
  type: 'assistant',
  message: { id, content: [{ type: 'text', text }] },
  parent_tool_use_id: parent,
  session_id: SESSION,
});
const calls = (id: string): JsonMap => ({
  type: 'assistant',
  message: { id: 'msg_2', content: [{ type: 'tool_use', id, name: 'Bash', input: { command: 'x' } }] },
  session_id: SESSION,
});
const answers = (id: string): JsonMap => ({
  type: 'user',
  message: { content: [{ tool_use_id: id, type: 'tool_result', content: 'x' }] },
});
/** The type does not come first. */
const result = (more: JsonMap = {}): JsonMap => ({
  duration_api_ms: 1,
  session_id: SESSION,
  total_cost_usd: 0.5,
  modelUsage: { m: { inputTokens: 100, outputTokens: 10, cacheReadInputTokens: 1, cacheCreationInputTokens: 2 } },
  permission_denials: [],
  terminal_reason: 'completed',
  is_error: false,
  subtype: 'success',
  api_error_status: null,
  result: 'done',
  type: 'result',
  ...more,
});

function fed(...events: readonly JsonMap[]): Reader {
  const reader = new ClaudeReader();
  for (const event of events) reader.line(JSON.stringify(event));
  return reader;
}

function read(events: readonly JsonMap[], status: number | null = 0): Reading {
  return fed(...events).end({ status, stderr: '', at: 0 });
}

describe('success', () => {
  test('is a result that is no error, of a program that exits with 0', () => {
    expect(read([init(), says('Running it.'), result()]).verdict).toEqual({
      kind: 'answer',
      text: 'done',
      structured: null,
    });
  });

  test('is told with the structured answer where there is one', () => {
    expect(read([result({ structured_output: { name: 'Z' } })]).verdict).toMatchObject({ structured: { name: 'Z' } });
  });

  test('has no structured answer that nobody could write down again', () => {
    const reader = new ClaudeReader();
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    reader.line(
      JSON.stringify(result({ structured_output: 0 })).replace('"structured_output":0', `"structured_output":${deep}`),
    );
    expect(reader.end({ status: 0, stderr: '', at: 0 }).verdict).toMatchObject({ kind: 'answer', structured: null });
  });

  test('tells how often the agent was denied a tool', () => {
    const denial = { tool_name: 'Bash', tool_use_id: 't', tool_input: {} };
    expect(read([result({ permission_denials: [denial, denial] }), result()])).toMatchObject({
      verdict: { kind: 'answer' },
      denied: 2,
    });
  });

  test('may be an empty answer', () => {
    expect(read([result({ result: '' })]).verdict).toMatchObject({ kind: 'answer', text: '' });
  });

  test.each([{ result: '' }, { result: null }])('is the last text of the agent, if the result has none: %j', (none) => {
    const reply = read([says('Reading.', 'm1'), says('<goto>A.md</goto>', 'm2'), calls('t'), result(none)]);
    expect(reply.verdict).toEqual({ kind: 'answer', text: '<goto>A.md</goto>', structured: null });
  });
});

describe('no success', () => {
  test('is an error of the API, which has the subtype success', () => {
    const failed = result({
      is_error: true,
      terminal_reason: 'api_error',
      api_error_status: 529,
      result: 'API Error: 529',
    });
    expect(read([failed], 1).verdict).toEqual({ kind: 'error', message: 'API Error: 529', limit: null });
  });

  test('is an interrupted turn, though its status is 0', () => {
    const interrupted = result({ is_error: true, subtype: 'error_during_execution', terminal_reason: 'aborted_tools' });
    const { result: _, ...without } = interrupted;
    expect(read([without]).verdict).toMatchObject({ kind: 'error', message: 'aborted_tools' });
  });

  test('is a turn that ran into its own limits', () => {
    const limited = result({ is_error: true, subtype: 'error_max_turns', errors: ['too many', 'turns'], result: null });
    expect(read([limited], 1).verdict).toMatchObject({ kind: 'error', message: 'too many; turns' });
  });

  test('is an end without a result, whatever the status', () => {
    expect(read([init(), says('hm')]).verdict).toEqual({ kind: 'silent' });
    expect(read([], 143).verdict).toEqual({ kind: 'silent' });
  });

  test('is a result that the program does not stand by', () => {
    expect(read([result()], 137).verdict).toEqual({ kind: 'silent' });
    expect(read([result()], null).verdict).toEqual({ kind: 'silent' });
  });

  test('is a result that does not say that it is no error', () => {
    expect(read([{ type: 'result', result: 'x', subtype: 'success' }]).verdict).toMatchObject({ kind: 'error' });
  });
});

test('of several results the last counts', () => {
  const later = result({ result: 'second', total_cost_usd: 0.7, result_index: 1 });
  expect(read([init(), result(), init(), later])).toMatchObject({ verdict: { text: 'second' }, usage: { usd: 0.7 } });
  const worse = result({ is_error: true, result: 'no' });
  expect(read([result(), worse]).verdict).toMatchObject({ kind: 'error' });
});

describe('a limit', () => {
  const limited = result({ is_error: true, api_error_status: 429, result: 'slow down' });

  test('is the status 429 of the API', () => {
    expect(read([limited], 1).verdict).toEqual({ kind: 'error', message: 'slow down', limit: { until: null } });
  });

  test.each([1_794_700_000, 1_794_700_000_000])('ends when the agent has said that it does (%i)', (resetsAt) => {
    const told = { type: 'rate_limit_event', rate_limit_info: { status: 'rejected', resetsAt } };
    expect(read([told, limited], 1).verdict).toMatchObject({ limit: { until: 1_794_700_000_000 } });
  });

  test('that is near is none', () => {
    const warned = { type: 'rate_limit_event', rate_limit_info: { status: 'allowed_warning', resetsAt: 5 } };
    expect(read([warned, result()]).verdict).toMatchObject({ kind: 'answer' });
    expect(read([warned, limited], 1).verdict).toMatchObject({ limit: { until: null } });
  });
});

describe('what it cost', () => {
  test.each([
    ['2.1.325', 'session'],
    ['2.2.0', 'session'],
    ['2.1.197', 'turn'],
    ['1.0.9', 'turn'],
    ['2.1.250', 'untold'],
    ['next', 'untold'],
  ])('is counted by %s for the %s', (version, scope) => {
    expect(read([init(version), result()]).usage).toEqual({
      usd: 0.5,
      tokens: 113,
      scope,
      parts: { input: 102, cached: 1, output: 10 },
    });
  });

  test('is not known without a result', () => {
    expect(read([init()]).usage).toBeNull();
  });

  test('is no price that was made up', () => {
    const odd = { inputTokens: 5, outputTokens: 0, costBasis: 'unknown' };
    expect(read([result({ modelUsage: { odd } })]).usage).toMatchObject({ usd: null, tokens: 5 });
  });

  test('is told of failures too', () => {
    expect(read([init(), result({ is_error: true })], 1).usage).toMatchObject({ usd: 0.5 });
  });
});

describe('meanwhile', () => {
  test('the session is known from the first line on', () => {
    expect(fed(init()).session).toBe(SESSION);
  });

  test('a tool is in flight until it has answered', () => {
    expect(fed(calls('t1')).toolInFlight).toBe(true);
    expect(fed(calls('t1'), calls('t2'), answers('t1')).toolInFlight).toBe(true);
    expect(fed(calls('t1'), answers('t1')).toolInFlight).toBe(false);
  });

  test('a tool has answered when there is a line that is too long to be read', () => {
    const reader = fed(calls('t1'));
    reader.longLine(false);
    expect(reader.toolInFlight).toBe(false);
  });

  test('a command that was left running is in flight', () => {
    const changed = (tasks: readonly JsonMap[]): JsonMap => ({
      type: 'system',
      subtype: 'background_tasks_changed',
      tasks,
    });
    expect(fed(calls('t'), answers('t'), changed([{ task_id: 'b' }]), result()).toolInFlight).toBe(true);
    expect(fed(changed([{ task_id: 'b' }]), changed([])).toolInFlight).toBe(false);
  });

  test('what it said last is known, of its own words', () => {
    expect(fed(says('a', 'm1'), says('b', 'm2'), says(' c', 'm2'), says('d', 'm3', 'toolu_1')).text).toBe('b c');
  });
});

test('texts for people are those of all its own messages, known as soon as each is there', () => {
  const first = says('Working. <print>half</print>');
  expect(fed(init(), first).printed).toEqual(['half']);
  const reader = fed(
    init(),
    first,
    says('<print>other</print>', 'msg_9', 'toolu_1'),
    says('<print>all</print>', 'msg_3'),
  );
  expect(reader.printed).toEqual(['half', 'all']);
});
