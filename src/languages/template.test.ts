import { describe, expect, test } from 'vitest';
import { parseTemplate } from './template.ts';

const shape = (text: string): readonly string[] =>
  parseTemplate(text).parts.map((part) => (typeof part === 'string' ? part : `<${part.path.join('|')}>`));

describe('references are found', () => {
  test.each<[string, readonly string[]]>([
    ['', []],
    ['plain', ['plain']],
    ['{{a}}', ['<a>']],
    ['{{ a }}', ['<a>']],
    ['x{{a-b_c.0.d}}y', ['x', '<a-b_c|0|d>', 'y']],
    ['{{a}}{{b}}', ['<a>', '<b>']],
    ['{{{{ .Names }}', ['{{ .Names }}']],
    ['${{{{ x }}', ['${{ x }}']],
    ['{{{a}}}', ['{', '<a>', '}']],
    ['a { b } }} c', ['a { b } }} c']],
    ['{{{{{{a}}', ['{{', '<a>']],
  ])('%j', (text, parts) => {
    expect(shape(text)).toEqual(parts);
    expect(parseTemplate(text).problems).toEqual([]);
  });

  test('with their places', () => {
    expect(parseTemplate('ab{{ c }}d').parts[1]).toEqual({ path: ['c'], from: 2, to: 9 });
  });
});

describe('what is not a reference is said to be none', () => {
  test.each([
    ['{{'],
    ['{{a'],
    ['{{a\n}}'],
    ['{{}}'],
    ['{{ }}'],
    ['{{.a}}'],
    ['{{a..b}}'],
    ['{{a.}}'],
    ['{{a b}}'],
    ['{{a|b}}'],
    ['{{é}}'],
  ])('%j', (text) => {
    const { parts, problems } = parseTemplate(text);
    expect(problems).toHaveLength(1);
    expect(parts.every((part) => typeof part === 'string')).toBe(true);
  });

  test('all of it, not the first alone', () => {
    expect(parseTemplate('{{ {{a}} {{}} {{b c}}').problems.map(({ from }) => from)).toEqual([0, 9, 14]);
  });
});
