import { describe, expect, test } from 'vitest';
import { quote, type QuoteLayer } from './quote.ts';

const EOF: QuoteLayer = { kind: 'heredoc', delimiter: 'EOF', tabs: 'kept', lead: '', tail: '' };
const RAW: QuoteLayer = { ...EOF, kind: 'heredoc-raw' };
const STRIPPED: QuoteLayer = { ...RAW, tabs: 'stripped' };

describe('each layer quotes a value for its position', () => {
  test.each<[QuoteLayer, string, string]>([
    [{ kind: 'bare' }, 'src/main.ts', 'src/main.ts'],
    [{ kind: 'bare' }, '', "''"],
    [{ kind: 'bare' }, "it's", String.raw`'it'\''s'`],
    [{ kind: 'bare' }, '$(rm -rf /)', "'$(rm -rf /)'"],
    [{ kind: 'quoted' }, 'plain', "'plain'"],
    [{ kind: 'double' }, 'a "b" $c `d` \\', 'a \\"b\\" \\$c \\`d\\` \\\\'],
    [{ kind: 'double-braced' }, 'a}', 'a\\}'],
    [{ kind: 'single' }, "it's", String.raw`it'\''s`],
    [{ kind: 'integer' }, '-007', '(-7)'],
    [{ kind: 'comment' }, 'a "b', 'a "b'],
    [EOF, '"$x"', '"\\$x"'],
    [RAW, '"$x"', '"$x"'],
    [{ kind: 'backtick' }, "'$x'", "'\\$x'"],
  ])('%j: %j', (layer, value, written) => {
    expect(quote(value, [layer])).toEqual({ ok: true, value: written });
  });
});

test('harmless characters are quoted if they could be syntax: numbers, assignments, shell keywords', () => {
  for (const value of ['2', 'a=b', 'if', 'done', 'time']) {
    expect(quote(value, [{ kind: 'bare' }])).toEqual({ ok: true, value: `'${value}'` });
  }
});

test('layers apply from the innermost outwards', () => {
  const value = quote("a'b", [{ kind: 'single' }, { kind: 'backtick' }]);
  expect(value).toEqual({ ok: true, value: String.raw`a'\\''b` });
});

describe('a value that cannot be written at its position is refused with a reason', () => {
  test.each<[string, QuoteLayer, RegExp]>([
    ['a\0b', { kind: 'bare' }, /NUL/],
    ['1; reboot', { kind: 'integer' }, /not an integer/],
    ['', { kind: 'integer' }, /not an integer/],
    ['a\nb', { kind: 'comment' }, /line break/],
    ["it's", { kind: 'double-braced' }, /not take as text/],
    ['<(reboot)', { kind: 'double-braced' }, /not take as text/],
    ['x\nEOF\ny', EOF, /the line "EOF"/],
    ['EOF', RAW, /the line "EOF"/],
    ['OF', { ...EOF, lead: 'E' }, /the line "EOF"/],
    ['x\nEO', { ...RAW, lead: null, tail: 'F' }, /the line "EOF"/],
    ['Eötvös', RAW, /another delimiter/],
    ['x\n', { ...EOF, lead: null, tail: 'Eö' }, /another delimiter/],
    ['\u0001', RAW, /control character/],
    ['a\n\tb', STRIPPED, /tab/],
  ])('%j in %j', (value, layer, reason) => {
    const quoted = quote(value, [layer]);
    expect(quoted.ok ? null : quoted.error).toMatch(reason);
  });

  test('but similar values are accepted', () => {
    for (const layer of [
      { ...EOF, lead: null },
      { ...RAW, tail: '.' },
      { ...EOF, lead: 'E' },
    ]) {
      expect(quote('EOF', [layer])).toEqual({ ok: true, value: 'EOF' });
    }
  });

  test('but a text that is not a script accepts anything', () => {
    expect(quote('a\0b', [])).toEqual({ ok: true, value: 'a\0b' });
  });
});
