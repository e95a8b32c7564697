import { expect, test } from 'vitest';
import { forTool } from './tools.ts';

test('the line that reports is told as a call of the tool', () => {
  expect(forTool('Do it.\n\nReport by running:\n  meow done --output main_file=<file_path> --output n=<number>')).toBe(
    'Do it.\n\nReport by running:\n  the tool done with {"outputs": {"main_file": <file_path>, "n": <number>}}',
  );
  expect(forTool('Usage:\n  meow done')).toBe('Usage:\n  the tool done');
  expect(forTool('  meow done')).toBe('  the tool done');
});

test.each([
  '',
  'there is no step x in this run',
  'Write about it:\n  meow done --output a=<string>\nand nothing else.',
  'Usage:\n  meow done --output a=b',
])('any other text stays as it is: %j', (text) => {
  expect(forTool(text)).toBe(text);
});
