import { expect, test } from 'vitest';
import { KeyReader } from './keys.ts';

function keysOf(...pieces: readonly string[]): readonly string[] {
  const reader = new KeyReader();
  return [...pieces.flatMap((piece) => reader.read(piece)), ...reader.flush()].map((key) => {
    if (key.kind === 'key') return key.name;
    return key.kind === 'paste' ? `paste ${key.text}` : key.text;
  });
}

test.each([
  ['characters, several at once', ['aé🐈'], ['a', 'é', '🐈']],
  ['arrows of both kinds', ['\x1b[A\x1bOB\x1b[5~'], ['up', 'down', 'pageup']],
  ['a sequence that arrives in parts', ['\x1b', '[', '6', '~j'], ['pagedown', 'j']],
  ['a sequence without a meaning', ['\x1b[1;5Pq\x1b[?1;2cq'], ['q', 'q']],
  ['an escape that nothing follows', ['\x1b'], ['escape']],
  ['an escape before another key', ['\x1bq'], ['escape', 'q']],
  ['control characters', ['\r\x7f\x03\x1a\x01'], ['enter', 'backspace', 'ctrl-c', 'ctrl-z']],
  ['a paste, whatever is in it', ['\x1b[200~ay\x1b[A', '\nx\x1b[201~k'], ['paste ay\x1b[A\nx', 'k']],
])('%s', (_name, pieces, keys) => {
  expect(keysOf(...pieces)).toEqual(keys);
});

test('a paste without an end is forgotten when it becomes too long', () => {
  const reader = new KeyReader();
  expect(reader.read(`\x1b[200~${'x'.repeat(70_000)}`)).toEqual([]);
  expect(reader.read('q')).toEqual([{ kind: 'character', text: 'q' }]);
});
