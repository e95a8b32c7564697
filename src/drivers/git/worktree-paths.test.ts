import { describe, expect, test } from 'vitest';

import { bytesOf, foldersOf, nameOf, NameSet, quoted, textOf } from './worktree-paths.ts';

describe('a name', () => {
  test('has one character a byte, and is a path as text where that is possible', () => {
    expect(nameOf('é')).toBe('\xc3\xa9');
    expect(textOf(nameOf('dir/é'))).toBe('dir/é');
    expect(textOf('caf\xe9')).toBe('caf\ufffd');
    expect([...bytesOf('a\xff')]).toEqual([0x61, 0xff]);
  });

  test('is quoted so that nothing in it means anything', () => {
    expect(quoted('a b\n"\\\xff')).toBe(String.raw`"a b\012\042\134\377"`);
  });

  test('is in folders', () => {
    expect(foldersOf('a/b/c')).toEqual(['a', 'a/b']);
    expect(foldersOf('a')).toEqual([]);
  });
});

test('a set of names covers what is in its folders, and knows what it is within', () => {
  const names = new NameSet(['a/b/', 'c/d/e', 'f']);
  expect(['a/b/', 'a/b/x', 'a/b/x/y', 'c/d/e', 'f'].every((name) => names.covers(name))).toBe(true);
  expect(['a', 'a/', 'a/bc', 'a/b', 'c/d/', 'f/', 'f/x'].some((name) => names.covers(name))).toBe(false);
  expect(['a', 'a/b', 'c', 'c/d'].every((folder) => names.isWithin(folder))).toBe(true);
  expect(['c/d/e', 'f', 'x'].some((folder) => names.isWithin(folder))).toBe(false);
});
