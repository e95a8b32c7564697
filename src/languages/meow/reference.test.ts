import { describe, expect, test } from 'vitest';

import { fileOf, isPlaced, parseReference, spellingsOf } from './target.ts';

describe('a template is named', () => {
  test.each([
    ['.tdd', { kind: 'either', name: 'tdd' }],
    ['main', { kind: 'either', name: 'main' }],
    [' main ', { kind: 'either', name: 'main' }],
    ['#tdd', { kind: 'local', name: 'tdd' }],
    ['#.tdd', { kind: 'local', name: 'tdd' }],
    ['helpers#tdd', { kind: 'file', path: 'helpers', workflow: 'tdd' }],
    ['helpers#.tdd', { kind: 'file', path: 'helpers', workflow: 'tdd' }],
    ['lib/common', { kind: 'file', path: 'lib/common', workflow: 'main' }],
    ['./lib/utils#helper', { kind: 'file', path: './lib/utils', workflow: 'helper' }],
    ['helpers.meow.toml', { kind: 'file', path: 'helpers.meow.toml', workflow: 'main' }],
    ['', null],
    ['.', null],
    ['..', null],
    ['./', null],
    ['#', null],
    ['file#', null],
  ])('%j', (text, reference) => {
    expect(parseReference(text)).toEqual(reference);
  });
});

test('only what names a workflow of the same file can mean no file', () => {
  expect(['#x', '.x', 'x', 'x#y', './x'].map((text) => fileOf(parseReference(text) ?? expect.fail()))).toEqual([
    null,
    'x',
    'x',
    'x',
    './x',
  ]);
});

test('a file may be named without its ending', () => {
  expect(spellingsOf('lib/x')).toEqual(['lib/x.meow.toml', 'lib/x.toml']);
  expect(spellingsOf('lib/x.toml')).toEqual(['lib/x.toml']);
});

test('a path says where the file is, a name is searched for', () => {
  expect(['./x', '../x', '/x'].map(isPlaced)).toEqual([true, true, true]);
  expect(['x', 'lib/x', '.x', '..x/y'].map(isPlaced)).toEqual([false, false, false, false]);
});
