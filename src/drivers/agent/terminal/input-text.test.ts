import { describe, expect, test } from 'vitest';
import type { PaneCapture } from '../tmux/terminal-pane.ts';
import { endsAtCursor, rowAtCursor, containsPrompt } from './input-text.ts';

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
