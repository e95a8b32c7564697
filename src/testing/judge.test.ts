import { describe, expect, test } from 'vitest';
import { namesIn } from './commands.ts';
import { holds, parseComparison } from './fields.ts';
import { endOf, judgeHistory } from './judge.ts';

const NAMES = namesIn({ machines: {} });

/** `+a` starts a step, `-a` ends it, one record after the other. */
function failuresOf(happened: string, expected: { order?: string; never?: string }): readonly string[] {
  const events = happened.split(' ').map((text, seq) => ({ kind: text.charAt(0), step: text.slice(1), seq }));
  const of = (kind: string) => events.filter((event) => event.kind === kind);
  const [before = '', after = ''] = expected.order?.split(' < ') ?? [];
  const order = expected.order === undefined ? [] : [{ text: expected.order, before, after }];
  const never = expected.never === undefined ? [] : [expected.never];
  const history = { started: of('+'), ended: of('-') };
  return judgeHistory({ order, never }, history, NAMES).map(({ expect: path }) => path);
}

describe('order', () => {
  test.each([
    ['+a -a +b -b', 'a < b', true],
    ['+b -b +a -a', 'a < b', false],
    ['+a +b -a -b', 'a < b', false],
    ['+a -a', 'a < b', true],
    ['+b -b', 'a < b', false],
    ['+x -x', 'a < b', true],
    ['+e.0.a -e.0.a +e.1.a -e.1.a +m -m', 'e.*.a < m', true],
    ['+e.0.a -e.0.a +m +e.1.a -e.1.a -m', 'e.*.a < m', false],
    ['+build -build +each.0.build -each.0.build', 'build < each.*.build', true],
    ['+a -a +b +a -b -a', 'a < b', false],
  ])('%s: %s is %s', (happened, order, isRight) => {
    expect(failuresOf(happened, { order })).toEqual(isRight ? [] : ['order.0']);
  });
});

describe('never', () => {
  test.each([
    ['+a -a', 'b', true],
    ['+a -a', 'a', false],
    ['+a.b -a.b', 'a', true],
    ['+a.b -a.b', 'a.*', false],
    ['+check#2.tests -check#2.tests', 'check#2', false],
    ['+check#2 -check#2', 'check', false],
  ])('%s: never %s is %s', (happened, never, isRight) => {
    expect(failuresOf(happened, { never })).toEqual(isRight ? [] : ['never.0']);
  });
});

describe('names of a step', () => {
  test.each([
    [false, 'each.0.build', ['each.0.build']],
    [true, 'main.3.REVIEW', ['main.3.REVIEW', 'REVIEW']],
    [false, 'check#2.tests.run', ['check#2.tests.run', 'check#2', 'check']],
  ])('in a state machine: %s; %s', (hasStates, step, names) => {
    const machines = hasStates ? ({ m: {} } as never) : {};
    expect(namesIn({ machines })(step)).toEqual(names);
  });
});

describe('comparisons', () => {
  test.each([
    ['<= 2', 'number', 2, true],
    ['< 2', 'number', 2, false],
    ['>= 2.5', 'number', 2.5, true],
    ['> $2.50', 'number', 3, true],
    ['= 3', 'number', 3, true],
    ['3', 'number', 4, false],
    ['< 40h', 'duration', 39 * 3_600_000, true],
    ['36h20m', 'duration', 130_800_000, true],
  ] as const)('%s of %s with %d is %s', (text, unit, value, expected) => {
    const comparison = parseComparison(text, unit);
    expect(comparison !== null && holds(comparison, value)).toBe(expected);
  });

  test.each(['== 3', '< ', 'many', '-1', '<> 2'])('%s is none', (text) => {
    expect(parseComparison(text, 'number')).toBeNull();
  });
});

test('the end of a run in the words of a test', () => {
  const end = (kind: 'ended' | 'waiting' | 'too-long', of: string | null): string =>
    endOf({ kind, state: { end: of } as never });
  expect([end('ended', 'failed'), end('waiting', null), end('too-long', null)]).toEqual([
    'failed',
    'waiting',
    'running',
  ]);
});
