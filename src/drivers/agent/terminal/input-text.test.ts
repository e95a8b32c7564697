import { describe, expect, test } from 'vitest';

import type { Injection } from '../../../ir/adapter.ts';
import type { PaneCapture } from '../tmux/terminal-pane.ts';
import {
  blanksAtCursor,
  containsPrompt,
  endsAtCursor,
  isEcho,
  needsFile,
  rowAtCursor,
  rowsBelow,
  standsFor,
} from './input-text.ts';

/** `|` is the cursor. */
function captureOf(text: string): PaneCapture {
  const lines = text.split('\n');
  const row = lines.findIndex((line) => line.includes('|'));
  const column = lines[row]?.indexOf('|') ?? 0;
  lines[row] = lines[row]?.replace('|', '') ?? '';
  const rest = { inMode: false, title: '', alternate: false, columns: 80, rows: lines.length, print: '' };
  return { lines, cursor: { row, column }, ...rest };
}

describe('a text in an input', () => {
  test('is seen by its end, left of the cursor', () => {
    expect(endsAtCursor(captureOf('> say hello|'), 'say hello')).toBe(true);
    expect(endsAtCursor(captureOf('say hello|'), 'say hello')).toBe(true);
    expect(endsAtCursor(captureOf('❯ say hell|'), 'say hello')).toBe(false);
    expect(endsAtCursor(captureOf('❯ |say hello'), 'say hello')).toBe(false);
    expect(endsAtCursor(captureOf('you said: say hello\n> |'), 'say hello')).toBe(false);
    expect(endsAtCursor(captureOf('say hello\n|'), 'say hello')).toBe(false);
  });

  test('is seen in frames and over rows, however it is wrapped', () => {
    const text = `first line\n${'long words that are wrapped '.repeat(4)}until here`;
    const framed = '│ > first line\n│ long words that are wrapped\n│   long words that are wrapped until here|';
    expect(endsAtCursor(captureOf(framed), text)).toBe(true);
    expect(endsAtCursor(captureOf('│ wrapped until\n│   here|'), text)).toBe(false);
    expect(endsAtCursor(captureOf('│ that are wrapped long words that are wrapped until\n│   here|'), text)).toBe(true);
  });

  test('is seen where characters are wide', () => {
    const wide = captureOf('> 日本語|');
    expect(endsAtCursor({ ...wide, cursor: { row: 0, column: 8 } }, '日本語')).toBe(true);
    expect(rowAtCursor({ ...wide, cursor: { row: 0, column: 6 } })).toBe('> 日本');
  });

  test('that is nothing is nowhere', () => {
    expect(endsAtCursor(captureOf('> |'), '')).toBe(false);
    expect(endsAtCursor(captureOf('> x|'), ' \n')).toBe(false);
  });
});

describe('what an agent says that it was given', () => {
  test('is the text, whatever was done to its white space', () => {
    expect(containsPrompt('do this\n    and that', 'do this\r\n\tand that\n')).toBe(true);
    expect(containsPrompt('cafe\u0301 x', 'caf\u00e9\u200b x')).toBe(true);
    expect(containsPrompt('do this', 'do that')).toBe(false);
  });

  test('is the text with more around it, if that cannot be chance', () => {
    expect(containsPrompt('oh, and do all of this at once, please', 'do all of this at once, please')).toBe(true);
    expect(containsPrompt('yes please', 'yes')).toBe(false);
  });
});

describe('an echo', () => {
  test('is the text alone, wherever it is shown', () => {
    expect(isEcho('welcome\n', 'welcome\ndo it\n', 'do it')).toBe(true);
    expect(isEcho('welcome\n> \nhelp', 'welcome\n> do it\nhelp', 'do it')).toBe(true);
    expect(isEcho('welcome\n', 'welcome\n^[do it^M\n', 'do it')).toBe(true);
    expect(isEcho('welcome\n', 'welcome\n', 'do it')).toBe(true);
  });

  test('may have scrolled the screen, or fill it', () => {
    expect(isEcho('one\ntwo\nthree', 'three\ndo it\nat once', 'do it\nat once')).toBe(true);
    expect(isEcho('one\ntwo', 'it\nat once', 'do it\nat once')).toBe(true);
  });

  test('is not an answer', () => {
    expect(isEcho('welcome\n', 'welcome\ndo it\nok\n', 'do it')).toBe(false);
    expect(isEcho('> ', '> do it\n> ', 'do it')).toBe(false);
    expect(isEcho('> ', 'ok', 'do it')).toBe(false);
  });
});

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
  deadlineMs: null,
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
    expect(needsFile(text, { ...INJECTION, method: 'literal' }, false)).toBe(true);
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

describe('a text elsewhere on the screen', () => {
  test('is found by its end, with the rows below it', () => {
    expect(rowsBelow('old\n│ > say hello  │\n│   world      │\n\nhelp', 'say hello\nworld')).toBe(1);
    expect(rowsBelow('> say hello\nfine\n> say hello\nhelp', 'say hello')).toBe(1);
    expect(rowsBelow('> say hell\nhelp', 'say hello')).toBeNull();
  });

  test('is not found if it is short enough to be part of anything', () => {
    expect(rowsBelow('12:05', '5')).toBeNull();
  });
});

test('the beginning of a text and a placeholder stand for it; other output does not', () => {
  expect(standsFor(' say', 'say hello')).toBe(true);
  expect(standsFor(' [Pasted text #1 +12 lines]', 'say hello')).toBe(true);
  expect(standsFor(' Pasted 12 lines', 'say hello')).toBe(true);
  for (const other of ['', ' ', '..', ' hello', ' 3 servers connected'])
    expect(standsFor(other, 'say hello')).toBe(false);
});

test('blanks between a text and the cursor are counted in columns', () => {
  expect(blanksAtCursor(captureOf('> say hello  |'))).toBe(2);
  expect(blanksAtCursor(captureOf('> say hello|'))).toBe(0);
  expect(blanksAtCursor({ ...captureOf('> 日本語|'), cursor: { row: 0, column: 9 } })).toBe(1);
  expect(blanksAtCursor(captureOf('    |'))).toBe(0);
});
