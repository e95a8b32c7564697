import { describe, expect, test } from 'vitest';
import type { Injection } from '../../../ir/adapter.ts';
import { needsFile } from './prompt-file.ts';

const INJECTION: Injection = {
  preKeys: [],
  preDelayMs: 0,
  method: 'paste',
  postDelayMs: 0,
  postKeys: [],
  clearKeys: [],
  draft: [],
  alters: [],
  misread: [],
};

describe('a text goes by a file', () => {
  test.each(['\u001b[201~', 'a\u009b201~b', '\0'])('where it holds %j, which no paste may', (text) => {
    expect(needsFile(text, INJECTION, true)).toBe(true);
  });

  test.each(['\t', '\r\n', '\u001b[31m', '#{pid};', '👩‍👩‍👧', 'x'.repeat(1_000_000)])(
    'not for %.10j in a bracketed paste',
    (text) => {
      expect(needsFile(text, INJECTION, true)).toBe(false);
    },
  );

  test.each(['a\r\nb', '\u001b[31m', '\u0003', `x\n${'ä'.repeat(2_001)}`])('for %.10j where keys are read', (text) => {
    expect(needsFile(text, INJECTION, false)).toBe(true);
    expect(needsFile(text, { ...INJECTION, method: 'literal' }, true)).toBe(true);
  });

  test.each(['several\nlines', 'a\tb', 'ünïcode', '#{pid};', 'x'.repeat(4_000)])(
    'not for %.10j where keys are read',
    (text) => {
      expect(needsFile(text, INJECTION, false)).toBe(false);
    },
  );

  test.each([
    ['tabs', '\t', 'a b'],
    ['carriage-returns', 'a\r\n', 'a\n'],
    ['controls', '\u0007', '\t\r\n'],
    ['invisibles', 'a\u200bb', 'a b'],
    ['composition', 'e\u0301', '\u00e9'],
  ] as const)('where the input alters %s, and it has some', (alteration, altered, plain) => {
    const injection = { ...INJECTION, alters: [alteration] };
    expect(needsFile(altered, injection, true)).toBe(true);
    expect(needsFile(plain, injection, true)).toBe(false);
  });

  test('where the input would take it for something else', () => {
    const injection = { ...INJECTION, misread: ['^/\\w+$'] };
    expect(needsFile('/clear', injection, true)).toBe(true);
    expect(needsFile('see /clear', injection, true)).toBe(false);
  });
});
