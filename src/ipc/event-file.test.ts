import fc from 'fast-check';
import { expect, test } from 'vitest';

import { parseEventFile } from './inbox.ts';

/** As bin/event.sh writes it. */
function file(...fields: readonly string[]): string {
  return ['meow-event-1', String(fields.length), ...fields].map((field) => `${field}\0`).join('');
}

function parse(text: string): unknown {
  const parsed = parseEventFile(text, 'id-1', 'wf-1');
  return parsed === null || !parsed.ok ? (parsed?.error ?? null) : parsed.value;
}

test('the arguments of a shell become an event, whatever bytes they have', () => {
  expect(parse(file('wf-1', 'worker', 'tool', '--data', 'a=1=2', '--data=text=x\ny\'"\\ é', '--data', 'c='))).toEqual({
    kind: 'event',
    id: 'id-1',
    agent: 'worker',
    eventType: 'tool',
    data: { a: '1=2', text: 'x\ny\'"\\ é', c: '' },
  });
});

test('outside of an agent there is none', () => {
  expect(parse(file('wf-1', '', 'tool'))).toMatchObject({ agent: null, data: {} });
});

test('a file that is still being written is not read yet', () => {
  const whole = file('wf-1', 'worker', 'tool', '--data', 'a=b');
  for (let length = 0; length < whole.length; length++) expect(parse(whole.slice(0, length))).toBeNull();
});

test.each([
  ['another text', 'hello\0world\0'],
  ['one without a beginning', 'hello'],
  ['more than was announced', `${file('wf-1', '', 'tool')}more\0`],
  ['an unknown flag', file('wf-1', '', 'tool', '--what', 'a=b')],
  ['a pair that is none', file('wf-1', '', 'tool', '--data', 'a')],
])('%s is no event', (_what, text) => {
  expect(parse(text)).toBe('it is not an event');
});

test('an event of another run is not for this one', () => {
  expect(parse(file('wf-2', '', 'tool'))).toBe('this is the run wf-1, not wf-2');
});

test('a name that would reach a prototype is refused', () => {
  expect(parse(file('wf-1', '', 'tool', '--data', '__proto__=x'))).toContain('__proto__');
});

test('any text is an event, a sentence, or not finished', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => parse(text) !== undefined));
  fc.assert(fc.property(fc.array(fc.string({ unit: 'binary' })), (fields) => parse(file(...fields)) !== undefined));
});
