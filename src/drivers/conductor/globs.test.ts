import { expect, test } from 'vitest';
import { asGlob, glob, globs, literalOf } from './globs.ts';

test.for<[string, readonly string[], readonly string[]]>([
  ['report.json', ['report.json'], ['a/report.json', 'report.jso', 'report.json/x', 'reportxjson', '']],
  ['*.json', ['a.json', '.json', '.hidden.json'], ['a/b.json', 'a.json5']],
  ['a*b*c', ['abc', 'a-b-c', 'abbbc'], ['ac', 'ab', 'abcd']],
  ['**', ['a', 'a/b', '.git/x'], ['']],
  ['**/*.png', ['a.png', 'a/b/c.png', '.x/a.png'], ['a.jpg', 'a.png/b']],
  ['logs/**', ['logs/a', 'logs/a/b'], ['logs', 'logs/', 'log/a', 'x/logs/a']],
  ['shots/**/*.png', ['shots/a.png', 'shots/b/c/a.png'], ['shots/a.jpg', 'a.png', 'shotsa.png', 'shots.png']],
  ['**/test/**', ['test/a', 'a/b/test/c/d'], ['test', 'a/tests/b', 'atest/b']],
  ['a**b', ['ab', 'axb'], ['a/b']],
  ['***', ['a'], ['a/b']],
  ['a?c', ['abc', 'aéc'], ['ac', 'a/c', 'abbc']],
  ['[a-c]x', ['ax', 'cx'], ['dx', 'x', '-x']],
  ['[!a-c]x', ['dx'], ['ax', '/x']],
  ['[^a]x', ['dx'], ['ax']],
  ['[]a]x', [']x', 'ax'], ['bx']],
  ['[a-]x', ['ax', '-x'], ['bx']],
  [String.raw`[\]]x`, [']x'], ['\\x']],
  ['[a', ['[a'], ['a']],
  ['{src,test/unit}/*.ts', ['src/a.ts', 'test/unit/a.ts'], ['test/a.ts', 'src,test/unit/a.ts']],
  ['a{,.min}.js', ['a.js', 'a.min.js'], ['a.max.js']],
  ['{a,{b,c}d}', ['a', 'bd', 'cd'], ['b', 'ad', 'd']],
  ['{a,**}/x', ['a/x', 'b/c/x', 'x'], ['a', 'a/y']],
  ['{**/a,b}', ['a', 'c/a', 'b'], ['c/b']],
  ['{logs/**,x}', ['logs/a', 'x'], ['logs']],
  ['{a', ['{a'], ['a']],
  ['a}', ['a}'], ['a']],
  ['a,b', ['a,b'], ['a', 'b']],
  [String.raw`\*\{a\,b}`, ['*{a,b}'], ['x{a,b}']],
  ['\\', ['\\'], ['']],
  ['secret/**', ['secret/a\nb', 'secret/\n/c'], ['secret']],
  ['app/(auth)/*', ['app/(auth)/a'], ['app/auth/a']],
  ['!(a|b)+"c"', ['!(a|b)+"c"'], ['c', 'abc', 'a']],
  ['{1..3}', ['1..3'], ['1', '2']],
  [String.raw`\d[\w]`, ['dw'], ['1a', 'da']],
  [String.raw`a\\\\b`, [String.raw`a\\b`], [String.raw`a\b`]],
  ['[[:alpha:]]', ['a]', ':]'], ['b', 'z']],
])('%s matches what it says, and nothing else', ([pattern, matching, others]) => {
  const matches = (path: string): boolean => glob(pattern).matches(path);
  expect(matching.filter((path) => !matches(path))).toEqual([]);
  expect(others.filter((path) => matches(path))).toEqual([]);
});

test.for([
  ['logs/*.txt', '', true],
  ['logs/*.txt', 'logs', true],
  ['logs/*.txt', 'logs/deep', false],
  ['logs/*.txt', 'src', false],
  ['**/a', 'x/y/z', true],
  ['a/{b,c}/**', 'a/c/d', true],
  ['a/{b,c}/**', 'a/d', false],
] as const)('whether %s reaches into the folder "%s"', ([pattern, folder, reaches]) => {
  expect(glob(pattern).reaches(folder)).toBe(reaches);
});

test('one of several is enough, and none matches nothing', () => {
  expect(globs(['a', 'b/*'])('b/c')).toBe(true);
  expect(globs([])('b/c')).toBe(false);
});

test('a pattern without wildcards stands for one path', () => {
  expect(literalOf('a/b.json')).toBe('a/b.json');
  expect(literalOf(String.raw`a\*`)).toBe('a*');
  expect(literalOf('a[')).toBe('a[');
  for (const pattern of ['*', 'a?', '[a]', '{a,b}', '**/a']) expect(literalOf(pattern)).toBeNull();
});

test('any text can be made a pattern of itself', () => {
  for (const text of ['a*b', '{a,b}', '[x]', String.raw`\d`, 'plain', '**/x']) {
    expect(literalOf(asGlob(text))).toBe(text);
    expect(glob(asGlob(text)).matches(text)).toBe(true);
  }
});

test('a pattern that no list could hold is refused', () => {
  expect(() => glob('{a,b}'.repeat(30))).toThrow('more than 10000 alternatives');
  expect(() => glob('[z-a]')).toThrow('is not valid');
});

test.for([
  ['*a'.repeat(200), `${'a'.repeat(5_000)}b`],
  [`${'**/'.repeat(200)}x`, 'a/'.repeat(2_000)],
  ['{a,a}'.repeat(500), `${'a'.repeat(499)}b`],
  [`${'{'.repeat(2_000)}a`, '{'],
  [`${'{a,'.repeat(300)}b${'}'.repeat(300)}`, 'c'],
  ['['.repeat(3_000), 'x'],
])('no pattern takes longer than its length allows', ([pattern = '', path = '']) => {
  expect(glob(pattern).matches(path)).toBe(false);
});
