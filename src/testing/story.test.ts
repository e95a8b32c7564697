import { describe, expect, test } from 'vitest';
import { explained, judgeStory } from './story.ts';

const STORY = ['run started', 'build started', 'build done', 'prod started', 'run done'].map((text) => ({
  step: text.startsWith('run') ? null : (text.split(' ')[0] ?? null),
  text: `+0s ${text}`,
}));

describe('a stored trace', () => {
  test('that is the same does not fail', () => {
    expect(judgeStory('a\nb\n', 'a\nb\n')).toEqual([]);
  });

  test('that is absent or different fails with both texts', () => {
    expect(judgeStory(null, 'a\n')).toMatchObject([{ expect: 'trace', expected: null, got: 'a\n' }]);
    const [failure] = judgeStory('a\nb\nc\n', 'a\nx\nc\n');
    expect(failure).toMatchObject({ expected: 'a\nb\nc\n', got: 'a\nx\nc\n' });
    expect(failure?.message).toContain('line 2');
    expect(failure?.message).toContain('  - b\n  + x');
  });
});

describe('a failure shows the part of the story that explains it', () => {
  const linesFor = (path: string, expected: string | null, got: string | null): readonly string[] =>
    explained({ expect: path, expected, got, message: 'm' }, STORY)
      .message.split('\n')
      .slice(1)
      .map((line) => line.trim());

  test.each([
    ['steps.build', 'failed', 'done', ['+0s build started', '+0s build done']],
    ['outputs.build.tag', 'a', 'b', ['+0s build started', '+0s build done']],
    ['order.0', 'prod < build', null, ['+0s build started', '+0s build done', '+0s prod started']],
    ['never.0', 'prod', 'prod', ['+0s run started', '+0s build started', '+0s build done', '+0s prod started']],
    ['run', 'failed', 'done', STORY.map(({ text }) => text)],
    ['cost.usd', '1', '2', []],
    ['on.0', null, null, []],
  ])('%s', (path, expected, got, lines) => {
    expect(linesFor(path, expected, got)).toEqual(lines);
  });
});
