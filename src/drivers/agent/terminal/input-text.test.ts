import { describe, expect, test } from 'vitest';
import type { Look } from '../tmux/terminal-pane.ts';
import { endsAtCursor, rowAtCursor, wasGiven } from './input-text.ts';

/** `|` is the cursor. */
function look(text: string): Look {
  const lines = text.split('\n');
  const row = lines.findIndex((line) => line.includes('|'));
  const column = lines[row]?.indexOf('|') ?? 0;
  lines[row] = lines[row]?.replace('|', '') ?? '';
  const rest = { inMode: false, title: '', alternate: false, columns: 80, rows: lines.length, print: '' };
  return { lines, cursor: { row, column }, ...rest };
}

describe('a text in an input', () => {
  test('is seen by its end, left of the cursor', () => {
    expect(endsAtCursor(look('> say hello|'), 'say hello')).toBe(true);
    expect(endsAtCursor(look('say hello|'), 'say hello')).toBe(true);
    expect(endsAtCursor(look('❯ say hell|'), 'say hello')).toBe(false);
    expect(endsAtCursor(look('❯ |say hello'), 'say hello')).toBe(false);
    expect(endsAtCursor(look('you said: say hello\n> |'), 'say hello')).toBe(false);
    expect(endsAtCursor(look('say hello\n|'), 'say hello')).toBe(false);
  });

  test('is seen in frames and over rows, however it is wrapped', () => {
    const text = `first line\n${'long words that are wrapped '.repeat(4)}until here`;
    const framed = '│ > first line\n│ long words that are wrapped\n│   long words that are wrapped until here|';
    expect(endsAtCursor(look(framed), text)).toBe(true);
    expect(endsAtCursor(look('│ wrapped until\n│   here|'), text)).toBe(false);
    expect(endsAtCursor(look('│ that are wrapped long words that are wrapped until\n│   here|'), text)).toBe(true);
  });

  test('is seen where characters are wide', () => {
    const wide = look('> 日本語|');
    expect(endsAtCursor({ ...wide, cursor: { row: 0, column: 8 } }, '日本語')).toBe(true);
    expect(rowAtCursor({ ...wide, cursor: { row: 0, column: 6 } })).toBe('> 日本');
  });

  test('that is nothing is nowhere', () => {
    expect(endsAtCursor(look('> |'), '')).toBe(false);
    expect(endsAtCursor(look('> x|'), ' \n')).toBe(false);
  });
});

describe('what an agent says that it was given', () => {
  test('is the text, whatever was done to its white space', () => {
    expect(wasGiven('do this\n    and that', 'do this\r\n\tand that\n')).toBe(true);
    expect(wasGiven('cafe\u0301 x', 'caf\u00e9\u200b x')).toBe(true);
    expect(wasGiven('do this', 'do that')).toBe(false);
  });

  test('is the text with more around it, if that cannot be chance', () => {
    expect(wasGiven('oh, and do all of this at once, please', 'do all of this at once, please')).toBe(true);
    expect(wasGiven('yes please', 'yes')).toBe(false);
  });
});
