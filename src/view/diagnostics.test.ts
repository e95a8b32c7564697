import { expect, test } from 'vitest';

import type { Diagnostic } from '../base/source.ts';
import { diagnosticJson, renderDiagnostic } from './diagnostics.ts';
import { plainPalette, widthOf } from './row.ts';

const UNKNOWN_NEED: Diagnostic = {
  severity: 'error',
  code: 'unknown-need',
  message: 'there is no step biuld',
  span: { file: 'deploy.meow.toml', line: 12, column: 11, length: 5 },
  sourceLine: 'needs = ["biuld"]',
  sourceColumn: 1,
  hint: 'did you mean build?',
  related: [{ message: 'the steps of main', span: { file: 'deploy.meow.toml', line: 3, column: 1, length: 6 } }],
};

test('a diagnostic starts with a position to jump to, and shows the source line', () => {
  expect(drawn(UNKNOWN_NEED)).toEqual([
    'deploy.meow.toml:12:11: error unknown-need: there is no step biuld',
    '  12 | needs = ["biuld"]',
    '     |           ^~~~~',
    '  hint: did you mean build?',
    '  deploy.meow.toml:3:1: the steps of main',
  ]);
});

test('a warning without a hint is three lines', () => {
  const lines = drawn({ ...UNKNOWN_NEED, severity: 'warning', hint: null, related: [] });
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatch(/^deploy\.meow\.toml:12:11: warning unknown-need: /);
});

test.each<[string, string, number, number, string, string]>([
  ['tabs reach to their stops', '\ta\t= 1', 4, 1, '    a   = 1', '        ^'],
  ['wide characters are counted as they show', '名前 = x', 6, 1, '名前 = x', '       ^'],
  ['a pair of surrogates is one character', '🐈 = x', 5, 1, '🐈 = x', '     ^'],
  ['an empty line has a place too', '', 1, 1, '', '^'],
  ['a span after the end stands after the end', 'ab', 9, 3, 'ab', '  ^'],
  ['a span is cut at the end of the line', 'abc', 2, 99, 'abc', ' ^~'],
  ['control characters do not reach the terminal', 'a\u001b[2Jb', 6, 1, 'a [2Jb', '     ^'],
])('%s', (_name, sourceLine, column, length, source, squiggle) => {
  const span = { file: 'f', line: 1, column, length };
  const [, shown, under] = drawn({ ...UNKNOWN_NEED, sourceLine, span });
  expect(shown).toBe(`  1 | ${source}`.trimEnd());
  expect(under).toBe(`    | ${squiggle}`);
});

test.each([1, 300, 598, 1_200, 1_204])('a long line is shown around column %i', (column) => {
  const sourceLine = `${'a'.repeat(597)}"biuld"${'b'.repeat(600)}`;
  const span = { file: 'f', line: 1, column, length: 3 };
  const [, shown = '', under = ''] = drawn({ ...UNKNOWN_NEED, sourceLine, span });
  expect(widthOf(shown)).toBeLessThanOrEqual(106);
  expect(widthOf(under)).toBeLessThanOrEqual(106);
  const at = under.indexOf('^');
  expect(shown.slice(at, at + 3).padEnd(3)).toBe(sourceLine.slice(column - 1, column + 2).padEnd(3));
});

test('an excerpt of a line is marked as one', () => {
  const sourceLine = `${'a'.repeat(300)}"biuld"${'b'.repeat(300)}`;
  const span = { file: 'f', line: 1, column: 1_000_301, length: 7 };
  const [, shown = '', under = ''] = drawn({ ...UNKNOWN_NEED, sourceLine, sourceColumn: 1_000_001, span });
  expect(shown).toMatch(/^ {2}1 \| …a+"biuld"b+…$/);
  expect(shown.indexOf('"')).toBe(under.indexOf('^'));
});

test('a span longer than the window is cut with it', () => {
  const span = { file: 'f', line: 1, column: 5, length: 900 };
  const [, shown = '', under = ''] = drawn({ ...UNKNOWN_NEED, sourceLine: 'x'.repeat(1_000), span });
  expect(widthOf(under)).toBeLessThanOrEqual(widthOf(shown));
});

test('diagnosticJson contains the same facts', () => {
  expect(diagnosticJson(UNKNOWN_NEED)).toEqual({
    severity: 'error',
    code: 'unknown-need',
    message: 'there is no step biuld',
    path: 'deploy.meow.toml',
    line: 12,
    column: 11,
    length: 5,
    source_line: 'needs = ["biuld"]',
    source_column: 1,
    hint: 'did you mean build?',
    related: [{ message: 'the steps of main', path: 'deploy.meow.toml', line: 3, column: 1, length: 6 }],
  });
});

function drawn(diagnostic: Diagnostic): readonly string[] {
  return renderDiagnostic(diagnostic, plainPalette).split('\n');
}
