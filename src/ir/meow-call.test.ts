import { describe, expect, test } from 'vitest';

import { meowCallOf, shellWords } from './meow-call.ts';

const ENDLESS = { timeout: null, timeoutMs: null, expires: false, usesFiles: false, discards: [] };
const DAY = { timeout: '24h', timeoutMs: 86_400_000, expires: true, usesFiles: false };

test.each([
  ['meow await-approval release', { kind: 'await-approval', gate: 'release', prompt: null, approvers: [], ...ENDLESS }],
  [
    'exec meow await-approval "the gate" --timeout 24h --prompt \'Is it good?\' --approver ann --approver=bob 2>&1',
    {
      kind: 'await-approval',
      gate: 'the gate',
      prompt: 'Is it good?',
      approvers: ['ann', 'bob'],
      ...DAY,
      discards: [],
    },
  ],
  [
    'meow await-event ready --filter tool=Write --json',
    { kind: 'await-event', type: 'ready', filter: { tool: 'Write' }, json: true, ...ENDLESS },
  ],
  [
    'meow await-event ready --timeout soon',
    { kind: 'await-event', type: 'ready', filter: {}, json: false, ...ENDLESS, timeout: 'soon' },
  ],
  [
    "meow event ready --data 'k=v w' >/dev/null",
    { kind: 'event', type: 'ready', data: { k: 'v w' }, usesFiles: false, discards: ['stdout'] },
  ],
  [
    'meow step-status fix#2 --is-not done >/dev/null 2>&1',
    { kind: 'step-status', step: 'fix#2', is: null, isNot: 'done', usesFiles: false, discards: ['stdout', 'stderr'] },
  ],
  ['meow event x > log', { kind: 'event', type: 'x', data: {}, usesFiles: true, discards: [] }],
])('%s is one call', (script, call) => {
  expect(meowCallOf(script)).toEqual(call);
});

test.each([
  'meow await-approval release || true',
  'meow await-approval release; rm -rf build',
  'meow await-approval "$GATE"',
  'meow event x --data',
  'echo meow event ready',
  'if meow await-event ready; then exit 1; fi',
  'meow done',
  'meow status',
  'meow',
  '',
])('%s is not one call', (script) => {
  expect(meowCallOf(script)).toBeNull();
});

describe('words of a simple command', () => {
  test.each([
    ['meow event built', ['meow', 'event', 'built']],
    ["  a 'b c'd  e ", ['a', 'b cd', 'e']],
    [String.raw`a "b \"c\" \$d"`, ['a', 'b "c" $d']],
    [String.raw`a b\ c`, ['a', 'b c']],
    ['a \\\n  b', ['a', 'b']],
    ["a ''", ['a', '']],
    ['a=b c', ['a=b', 'c']],
    ['a fix#2 b~', ['a', 'fix#2', 'b~']],
  ])('%j', (script, words) => {
    expect(shellWords(script)).toEqual(words);
  });

  test.each([
    'a; b',
    'a && b',
    'a | b',
    'a > b',
    'a $B',
    'a "$B"',
    'a `b`',
    '(a)',
    'a\nb',
    "a 'b",
    'a *',
    'a # b',
    'a ~',
  ])('%j needs a shell', (script) => {
    expect(shellWords(script)).toBeNull();
  });
});
