import { expect, test } from 'vitest';

import { present } from '../../../base/errors.ts';
import { EventsAsText } from './events-as-text.ts';
import { readerNamed } from './named.ts';

function shown(reader: string, ...lines: readonly (object | string)[]): string {
  const named = readerNamed(reader);
  if (!named.ok) throw new Error(named.error);
  const text = present(EventsAsText.of(named.value), 'it prints text');
  const bytes = Buffer.from(
    lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''),
  );
  // Byte by byte, as a slow program prints.
  return `${[...bytes].map((byte) => text.add(Uint8Array.of(byte))).join('')}${text.end()}`;
}

const says = (id: string, text: string): object => ({
  type: 'assistant',
  message: { id, content: [{ type: 'text', text }] },
});

test('messages are shown once each, and the result only if there were none', () => {
  const result = { type: 'result', is_error: false, result: 'Done: ä.' };
  expect(shown('claude', { type: 'system' }, says('1', 'I look.'), says('2', 'Done: ä.'), result)).toBe(
    'I look.\nDone: ä.\n',
  );
  expect(shown('claude', result)).toBe('Done: ä.\n');
});

test('the pieces of a message are joined', () => {
  const piece = (content: string): object => ({ type: 'message', role: 'assistant', content });
  expect(shown('gemini', piece('one '), piece('two'), { type: 'result', status: 'success' })).toBe('one two\n');
});

test('an error is shown, and so is a line that is not an event', () => {
  expect(shown('codex', 'Reading prompt…', { type: 'turn.failed', error: { message: 'no credit' } })).toBe(
    'Reading prompt…\nno credit\n',
  );
});

test('programs that print text have no events', () => {
  const reader = readerNamed('text');
  expect(reader.ok && EventsAsText.of(reader.value)).toBeNull();
});
