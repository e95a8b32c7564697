import { expect, test } from 'vitest';

import type { ByteStream } from './output-streams.ts';
import { firstError, OutputPlaces, searchOutput } from './output-places.ts';

/** In pieces of a few bytes, as a long output arrives. */
function streamOf(text: string, piece = 5): ByteStream {
  const all = Buffer.from(text);
  return {
    stream: 'stdout',
    format: 'text',
    start: 0,
    size: all.length,
    read: () => {
      throw new Error('what is only looked for needs no mask');
    },
    async *readAsIs(from, length) {
      const end = Math.min(all.length, from + length);
      for (let at = from; at < end; at += piece) yield { from: at, bytes: all.subarray(at, Math.min(end, at + piece)) };
    },
  };
}

const LINES = Array.from({ length: 100 }, (_, index) => `line ${index + 1} é`).join('\n');
const offsetOf = (line: number): number =>
  Buffer.byteLength(
    LINES.split('\n')
      .slice(0, line - 1)
      .join('\n'),
  ) + 1;

test('lines are numbered wherever reading begins, and again', async () => {
  const places = new OutputPlaces();
  const stream = streamOf(LINES);
  for (const line of [90, 3, 50, 100, 50]) {
    expect(await places.lineAt('a', stream, offsetOf(line) + 2)).toBe(line);
    expect(await places.placeOf('a', stream, line)).toEqual({ offset: offsetOf(line), line });
  }
  expect(await places.placeOf('a', stream, 1)).toEqual({ offset: 0, line: 1 });
});

test('a line that is not there is the last one', async () => {
  const ended = streamOf('one\ntwo\n');
  expect(await new OutputPlaces().placeOf('a', ended, 7)).toEqual({ offset: 4, line: 2 });
  expect(await new OutputPlaces().placeOf('a', streamOf(''), 7)).toEqual({ offset: 0, line: 1 });
});

test('the first error is a line that says so, not one that says there is none', async () => {
  const text = 'ok\n0 errors\nno failures\nsrc/a.ts(1,2): error TS1\nFAILED\n';
  expect(await firstError(streamOf(text))).toEqual({ offset: text.indexOf('src'), line: 4 });
  expect(await firstError(streamOf('a\n✗ loops'))).toEqual({ offset: 2, line: 2 });
  expect(await firstError(streamOf('a\nTypeError: x is undefined', 100))).toEqual({ offset: 2, line: 2 });
  expect(await firstError(streamOf('fine\nfine\n'))).toBeNull();
});

test('a search finds each match once, also between two pieces, and goes on where it stopped', async () => {
  const stream = streamOf('xx Needle\nneedleneedle\n\nNEEDLE é');
  const search = { find: 'needle', matchesCase: false, from: 0, max: 10 };
  const whole = await searchOutput(new OutputPlaces(), 'a', stream, search);
  expect(whole.matches.map(({ offset, line }) => [offset, line])).toEqual([
    [3, 1],
    [10, 2],
    [16, 2],
    [24, 4],
  ]);
  expect(whole).toMatchObject({ searchedTo: stream.size, more: false });
  const first = await searchOutput(new OutputPlaces(), 'a', stream, { ...search, max: 2 });
  expect(first).toMatchObject({ more: true, searchedTo: 16 });
  const next = await searchOutput(new OutputPlaces(), 'a', stream, { ...search, from: first.searchedTo });
  expect([...first.matches, ...next.matches]).toEqual(whole.matches);
  const exact = await searchOutput(new OutputPlaces(), 'a', stream, { ...search, matchesCase: true });
  expect(exact.matches.map(({ offset }) => offset)).toEqual([10, 16]);
});
