import { describe, expect, test } from 'vitest';
import type { Expectation } from './output.ts';
import { doneLine, keyName, promptText } from './prompt-text.ts';

const output = (name: string, more: Partial<Expectation> = {}): Expectation => ({
  name,
  type: 'string',
  required: true,
  description: null,
  ...more,
});

describe('the text of a prompt', () => {
  test('ends with the outputs in order and the command that reports them', () => {
    const expects = [
      output('main_file', { type: 'file_path', description: 'where\n  the feature is' }),
      output('count', { type: 'number', required: false }),
    ];
    expect(promptText('Build it.\n', 'autonomous', expects)).toBe(
      [
        'Build it.',
        '',
        'Expected outputs:',
        '  main_file (file_path, required): where the feature is',
        '  count (number, optional)',
        '',
        'Report when the work is finished, by running:',
        '  meow done --output main_file=<file_path> --output count=<number>',
      ].join('\n'),
    );
  });

  test('asks for a report if no outputs are expected', () => {
    expect(promptText('Tidy up.', 'interactive', [])).toBe(
      'Tidy up.\n\nReport when the work is finished, by running:\n  meow done',
    );
  });

  test('is the prompt itself if no report is expected', () => {
    expect(promptText('/compact\n', 'fire-forget', [])).toBe('/compact\n');
  });
});

test('the report command contains every output', () => {
  expect(doneLine([output('a'), output('b', { type: 'json' })])).toBe(
    'meow done --output a=<string> --output b=<json>',
  );
});

test.each(['Escape', 'Enter', 'C-c', 'Up', ' Escape\n', 'M-Left', 'F12', 'C-M-x', 'PageDown'])(
  '%j is a key',
  (text) => {
    expect(keyName(text)).toBe(text.trim());
  },
);

test.each(['escape', 'Escape now', '/compact', 'x', 'C-', 'F13', 'Ctrl-c', ''])('%j is not a key', (text) => {
  expect(keyName(text)).toBeNull();
});
