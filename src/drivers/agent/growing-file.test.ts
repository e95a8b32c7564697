import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { type Line, Lines } from './growing-file.ts';

/** Pushes a text in pieces of this length. */
function cut(bytes: Buffer, length: number, essential: readonly string[] = []): readonly Line[] {
  const lines = new Lines(essential);
  const found: Line[] = [];
  for (let at = 0; at < bytes.length; at += length) found.push(...lines.push(bytes.subarray(at, at + length)));
  const rest = lines.rest();
  return rest === null ? found : [...found, rest];
}

test('whatever pieces a text comes in, its lines are the same', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.integer({ min: 1, max: 20 }), (words, length) => {
      const text = words.join('\n');
      const lines = text.split('\n').map((line) => ({ kind: 'whole', text: line }));
      // What follows the last line end is a line only where there is something.
      const expected = text.endsWith('\n') || text === '' ? lines.slice(0, -1) : lines;
      expect(cut(Buffer.from(text), length)).toEqual(expected);
    }),
  );
});

test('the bytes of a piece may be used again', () => {
  const lines = new Lines([]);
  const piece = Buffer.from('ab');
  lines.push(piece);
  piece.write('xy');
  expect(lines.push(Buffer.from('c\n'))).toEqual([{ kind: 'whole', text: 'abc' }]);
});

describe('a line that is very long', () => {
  const filler = 'x'.repeat(1_500_000);

  test('is told with its place', () => {
    const text = Buffer.from(`one\n${filler}\ntwo\n`);
    expect(cut(text, 65_536)).toEqual([
      { kind: 'whole', text: 'one' },
      { kind: 'long', from: 4, to: 4 + filler.length, essential: false },
      { kind: 'whole', text: 'two' },
    ]);
  });

  test.each([
    [7, [999_990]],
    [64, [0, 100, 999_990, 1_000_000, 1_400_000]],
    [65_536, [0, 100, 999_990, 1_000_000, 1_400_000]],
  ])('is worth reading where it has one of the parts in it, in pieces of %i', (length, places) => {
    for (const before of places) {
      const text = Buffer.from(`${filler.slice(0, before)}"type":"result"${filler.slice(before)}`);
      expect(cut(text, length, ['"none"', '"type":"result"'])).toEqual([
        { kind: 'long', from: 0, to: text.length, essential: true },
      ]);
    }
  });

  test('is not kept, however long it is', () => {
    const lines = new Lines(['"type":"result"']);
    const piece = Buffer.alloc(1_000_000, 'y');
    const before = process.memoryUsage();
    for (let count = 0; count < 300; count += 1) lines.push(piece);
    const after = process.memoryUsage();
    expect(after.external + after.heapUsed - before.external - before.heapUsed).toBeLessThan(100_000_000);
    expect(lines.rest()).toEqual({ kind: 'long', from: 0, to: 300_000_000, essential: false });
  });
});
