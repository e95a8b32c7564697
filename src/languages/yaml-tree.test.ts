import { expect, test } from 'vitest';
import { makeSource } from '../base/source.ts';
import { createReport } from './report.ts';
import { readYaml, type YamlValue } from './yaml-tree.ts';

function read(text: string): unknown {
  const report = createReport(makeSource('w.yaml', text));
  const value = readYaml(report, { from: 0, to: text.length });
  return value === null ? report.diagnostics().map(({ message }) => message) : plain(value);
}

function plain(value: YamlValue): unknown {
  if (value.kind === 'list') return value.items.map(plain);
  if (value.kind === 'nothing') return null;
  if (value.kind !== 'map') return value.text;
  return Object.fromEntries([...value.entries.values()].map((entry) => [entry.key, plain(entry.value)]));
}

test('an alias is the value of the last anchor before it', () => {
  expect(read('a: &x 1\nb: &y { c: *x }\nd: *y\ne: &x 2\nf: [*x, *y]\n')).toEqual({
    a: '1',
    b: { c: '1' },
    d: { c: '1' },
    e: '2',
    f: ['2', { c: '1' }],
  });
});

test('a repeated key is an error', () => {
  expect(read('a: 1\nb: { c: 1, c: 2 }\n"a": 2\n')).toEqual(['map keys must be unique', 'map keys must be unique']);
});

// Each of these took minutes, or the memory of the machine.
const doubled = Array.from({ length: 40 }, (_, index) => {
  const before = `*a${index - 1}`;
  return `a${index}: &a${index} [${index === 0 ? 'x, x' : `${before}, ${before}`}]`;
});
const nested = Array.from({ length: 5_000 }, (_, index) => {
  return `a${index}: &a${index} [${index === 0 ? 'x' : `*a${index - 1}`}]`;
});

test.each([
  ['aliases that double', doubled.join('\n'), ['aliases are nested too deeply']],
  ['a chain of aliases', nested.join('\n'), ['aliases are nested too deeply']],
  ['an alias within its anchor', 'a: &a [*a]', ['aliases are nested too deeply']],
  ['a long text', `a: ${'x'.repeat(500_000)}`, ['the YAML has 501 kB; at most 500 kB are read']],
])('%s: refused', (_, text, problems) => {
  expect(read(text)).toEqual(problems);
});

test('many keys and many aliases are read', () => {
  const keys = Array.from({ length: 30_000 }, (_, index) => `k${index}: 1`).join('\n');
  expect(Object.keys(read(keys) as object)).toHaveLength(30_000);
  expect(read(`a: &a x\nb:\n${'- *a\n'.repeat(30_000)}`)).toMatchObject({ a: 'x' });
});

test('many errors are found, and the first of them shown', () => {
  expect(read(`a: "${'\\\n'.repeat(20_000)}"`)).toHaveLength(501);
});
