import { describe, expect, test } from 'vitest';
import { commandLine, formatText, timeFormatText } from './command-line.ts';

// That tmux reads it as it is meant is shown in test/contracts/tmux.test.ts.
describe('commands', () => {
  test('make one line, each word quoted', () => {
    const commands = [
      ['set-option', '@a', "it's\ntwo"],
      ['display-message', ';'],
    ];
    expect(commandLine(commands)).toEqual({
      ok: true,
      value: String.raw`'set-option' '@a' 'it'\''s'\n'two' ; 'display-message' ';'`,
    });
  });

  test('cannot have a NUL in them', () => {
    expect(commandLine([['set-option', 'a\0b']])).toMatchObject({ ok: false });
  });
});

test('a text as a format has its signs doubled, but for where a style begins', () => {
  expect(formatText('a #{pid} ##b #[c] ##[d] #')).toBe('a ##{pid} ####b #[c] ##[d] ##');
  expect(timeFormatText('100 %H #(id)')).toBe('100 %%H ##(id)');
});
