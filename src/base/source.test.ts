import fc from 'fast-check';
import { expect, test } from 'vitest';
import { makeSource, placeOf, spanOf } from './source.ts';

test('a span leads back to the place that it was made of', () => {
  const lines = fc.array(fc.stringMatching(/^[a-z😀é{} ]{1,12}$/u), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(
      lines,
      fc.constantFrom('\n', '\r\n'),
      fc.nat(),
      fc.nat(),
      fc.nat(),
      (texts, end, line, first, count) => {
        const source = makeSource('a.toml', texts.join(end));
        const index = line % texts.length;
        const characters = Array.from(texts[index] ?? '');
        const skipped = first % characters.length;
        const taken = 1 + (count % (characters.length - skipped));
        const from = texts.slice(0, index).join(end).length + (index === 0 ? 0 : end.length);
        const start = from + characters.slice(0, skipped).join('').length;
        const place = { from: start, to: start + characters.slice(skipped, skipped + taken).join('').length };
        expect(placeOf(source, spanOf(source, place))).toEqual(place);
      },
    ),
  );
});

test('a span of another text stays inside the text', () => {
  const source = makeSource('a.toml', 'one\ntwo');
  expect(placeOf(source, { file: 'a.toml', line: 9, column: 5, length: 2 })).toEqual({ from: 7, to: 7 });
  expect(placeOf(source, { file: 'a.toml', line: 1, column: 3, length: 9 })).toEqual({ from: 2, to: 3 });
});
