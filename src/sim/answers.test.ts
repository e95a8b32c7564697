import { describe, expect, test } from 'vitest';
import type { Expectation } from '../ir/output.ts';
import { answerTo } from './turn.ts';

function answer(name: string, type: Expectation['type'], description: string | null = null): unknown {
  return answerTo([{ name, type, required: true, description }], 'w').outputs[name];
}

describe('a question', () => {
  test.each(['has_more', 'more', 'continue', 'retry', 'issues_found', 'failed', 'needsChanges', 'tests_failing'])(
    'for more (%s) is answered no, so that loops end',
    (name) => {
      expect(answer(name, 'boolean')).toBe(false);
    },
  );

  test.each(['approved', 'done', 'tests_pass', 'no_issues', 'no_more', 'success', 'removed'])(
    'for a good end (%s) is answered yes',
    (name) => {
      expect(answer(name, 'boolean')).toBe(true);
    },
  );
});

test.each([
  ['a map', 'result', null, {}],
  ['a map with the keys that are shown', 'result', '{"score": number}', { score: 'sim-score', number: 'sim-number' }],
])('JSON is %s', (_, name, description, value) => {
  expect(answer(name, 'json', description)).toEqual(value);
});

test.each([
  ['tasks', null],
  ['work', 'a list of what is to be done'],
  ['work', 'JSON array'],
  ['work', '[{file, line}]'],
])('JSON for a list (%s: %s) is a list with one item', (name, description) => {
  expect(answer(name, 'json', description)).toHaveLength(1);
});

test('an item has the keys that the description shows', () => {
  expect(answer('work', 'json', '[{file, line}]')).toMatchObject([{ file: 'sim-file', line: 'sim-line' }]);
});

test('a file is made for each path, with a name that any system can bear', () => {
  const { outputs, files } = answerTo(
    [{ name: 'plan', type: 'file_path', required: true, description: 'The plan' }],
    'a/b',
  );
  expect(outputs).toEqual({ plan: 'sim-a_b-plan.txt' });
  expect(files).toMatchObject([{ path: 'sim-a_b-plan.txt', text: expect.stringContaining('The plan') as unknown }]);
});
