import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { getStaticTOMLValue, parseTOML } from 'toml-eslint-parser';
import { describe, expect, test } from 'vitest';

import type { Json } from '../base/json.ts';
import { type Diagnostic, makeSource } from '../base/source.ts';
import { createReport } from './report.ts';
import { placeWithin, type TomlTable, tomlToJson } from './toml-tree.ts';
import { readToml } from './toml.ts';
import { attempts } from '../../test/rig/sample.ts';

function read(text: string): { readonly tree: TomlTable | null; readonly diagnostics: readonly Diagnostic[] } {
  const report = createReport(makeSource('a.toml', text));
  return { tree: readToml(report), diagnostics: report.diagnostics() };
}

function json(text: string): Json {
  const { tree, diagnostics } = read(text);
  expect(diagnostics).toEqual([]);
  return tree === null ? null : tomlToJson(tree);
}

describe('values', () => {
  test.each<[string, Json]>([
    ['a = 1', 1],
    ['a = +1_000', 1000],
    ['a = 0xff', 255],
    ['a = 0o17', 15],
    ['a = 0b11', 3],
    ['a = -0.5e1', -5],
    ['a = true', true],
    ['a = 2026-01-02', '2026-01-02'],
    ['a = 2026-01-02 03:04:05Z', '2026-01-02 03:04:05Z'],
    ['a = 03:04', '03:04'],
    ['a = [1, 2, # two\n 3,]', [1, 2, 3]],
    ['a = { b = 1, c.d = 2, }', { b: 1, c: { d: 2 } }],
    ['a = {\n  b = 1,\n  c = [\n 2 ] }', { b: 1, c: [2] }],
    [String.raw`a = "\t\"\\\u00e9\x41\e\U0001F600"`, '\t"\\éA\u001b😀'],
    [String.raw`a = 'C:\x'`, String.raw`C:\x`],
    ['a = """\n  x\n"""', '  x\n'],
    ['a = """x \\\n    y"""', 'x y'],
    ['a = """""x"""""', '""x""'],
    ["a = '''\n'x'\n'''", "'x'\n"],
    ['a = """\r\nx\r\ny"""', 'x\ny'],
  ])('%s', (text, value) => {
    expect(json(text)).toEqual({ a: value });
  });
});

describe('tables', () => {
  test.each<[string, Json]>([
    ['[a.b]\nc = 1\n[a]\nd = 2', { a: { b: { c: 1 }, d: 2 } }],
    ['[[a]]\nb = 1\n[a.c]\nd = 2\n[[a]]\nb = 3', { a: [{ b: 1, c: { d: 2 } }, { b: 3 }] }],
    ['a.b = 1\na.c = 2', { a: { b: 1, c: 2 } }],
    [
      '[fruit]\napple.color = 1\n[fruit.apple.taste]\nsweet = true',
      { fruit: { apple: { color: 1, taste: { sweet: true } } } },
    ],
    ['"a b".\'c.d\' = 1', { 'a b': { 'c.d': 1 } }],
    ['[".child"]\nx = 1', { '.child': { x: 1 } }],
  ])('%s', (text, value) => {
    expect(json(text)).toEqual(value);
  });

  test.each([
    'a = 1\na = 2',
    '[a]\n[a]',
    'a = 1\n[a]',
    'a = {}\n[a.b]',
    'a = [1]\n[[a]]',
    '[[a]]\n[a]',
    '[a]\n[[a]]',
    '[a.b]\n[a]\nb = 1',
    '[a]\nb.c = 1\n[a.b]',
    'a = { b = 1 }\na.c = 2',
    'a = { b = 1, b = 2 }',
    '[a.b.c]\nz = 1\n[a]\nb.c.t = 2',
  ])('a key defined twice is a mistake, and the only one: %j', (text) => {
    const { tree, diagnostics } = read(text);
    expect(diagnostics.map(({ code }) => code)).toEqual(['duplicate-key']);
    expect(tree).not.toBeNull();
  });
});

test('every broken statement is reported, each with its place', () => {
  const { tree, diagnostics } = read('a = yes\nb = "x\n[c\nd = [1, 2\ne = 3\nf 1\n[ok]\ng = 1 2\n');
  expect(tree).toBeNull();
  expect(diagnostics.map(({ span }) => `${String(span.line)}:${String(span.column)}`)).toEqual([
    '1:5',
    '2:5',
    '3:2',
    '5:1',
    '6:3',
    '8:7',
  ]);
});

test('a part of a string is found again in the source, over escapes and folded lines', () => {
  const text = 'a = """\r\nfirst \\\r\n   é \\t \\u00e9 {{x}}\r\n{{y}}"""';
  const value = read(text).tree?.entries.get('a')?.value;
  if (value?.kind !== 'string') throw new Error('no string');
  for (const hole of ['{{x}}', '{{y}}']) {
    const at = value.value.indexOf(hole);
    const { from, to } = placeWithin(value, at, at + hole.length);
    expect(text.slice(from, to)).toBe(hole);
  }
});

describe('texts that are no workflow', () => {
  test('a NUL byte is shown', () => {
    expect(read('a = 1\nb = "\0"').diagnostics).toMatchObject([{ code: 'nul-byte', span: { line: 2, column: 6 } }]);
  });

  test('more than 10 MB are not read', () => {
    expect(read(`a = "${'x'.repeat(10_000_000)}"`).diagnostics).toMatchObject([{ code: 'file-too-large' }]);
  });

  test('a string of megabytes, and brackets without end, are no danger', () => {
    expect(json(`a = "${'x'.repeat(3_000_000)}"`)).toEqual({ a: 'x'.repeat(3_000_000) });
    expect(read(`a = ${'['.repeat(100_000)}`).diagnostics).toMatchObject([{ code: 'syntax' }]);
    expect(read(`a = ${'{a='.repeat(100_000)}`).diagnostics).toMatchObject([{ code: 'syntax' }]);
    expect(read('a = x\n'.repeat(200_000)).diagnostics.at(-1)).toMatchObject({ code: 'too-many-problems' });
  });
});

// Another reader of TOML, by other hands, must come to the same conclusions.
describe('as others read it', () => {
  const folder = join(import.meta.dirname, '../../test/conformance/meow');
  const corpus = readdirSync(folder)
    .filter((file) => file.endsWith('.toml'))
    .map((file) => readFileSync(join(folder, file), 'utf8').replace(/^\uFEFF/, ''));

  /** What the other makes of it, or undefined where it is no TOML to it. */
  const other = (text: string): unknown => {
    try {
      const value: unknown = getStaticTOMLValue(parseTOML(text, { tomlVersion: '1.1' }));
      return JSON.parse(
        JSON.stringify(value, (_key, inner: unknown) =>
          typeof inner === 'string' ? inner.replaceAll('\r\n', '\n') : inner,
        ),
      );
    } catch {
      return undefined;
    }
  };

  const agree = (text: string): void => {
    // The other takes a carriage return alone for a line end, which TOML does not.
    if (/\r(?!\n)/.test(text)) return;
    const theirs = other(text);
    const { tree, diagnostics } = read(text);
    if (theirs === undefined) expect(diagnostics).not.toEqual([]);
    else {
      expect(diagnostics).toEqual([]);
      expect(tree === null ? null : tomlToJson(tree)).toEqual(theirs);
    }
  };

  test.each(corpus)('case %#', agree);

  test('in texts made of pieces of TOML', () => {
    const pieces = [
      'a',
      'b',
      '"c"',
      "'d'",
      '.',
      ' ',
      '=',
      ' = ',
      '\n',
      '\n',
      '[',
      ']',
      '[[',
      ']]',
      '{',
      '}',
      ', ',
      '# x',
      '"',
      "'",
      '"""',
      "'''",
      '\\',
      '\\n',
      '\\u0041',
      '1',
      '0',
      '-',
      '_',
      '1.5',
      'e3',
      'true',
      'inf',
      '\t',
      '\r\n',
    ];
    const soup = fc.array(fc.constantFrom(...pieces), { maxLength: 14 }).map((parts) => parts.join(''));
    fc.assert(fc.property(soup, agree), { numRuns: attempts(3_000) });
  });

  test('in broken workflows', () => {
    const mutated = fc
      .tuple(
        fc.constantFrom(...corpus),
        fc.nat(),
        fc.nat(12),
        fc.constantFrom('', '"', '\n', '=', '[', ']', '{', '}', '#', '\\', "'", '.', 'x', '\u0001'),
      )
      .map(
        ([text, at, cut, put]) =>
          text.slice(0, at % (text.length + 1)) + put + text.slice((at % (text.length + 1)) + cut),
      );
    fc.assert(fc.property(mutated, agree), { numRuns: attempts(1_500) });
  });
});
