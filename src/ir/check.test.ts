import { expect, test } from 'vitest';
import { parseProgram } from '../../test/kernel-rig/program-text.ts';
import { checkProgram } from './check.ts';

const good = parseProgram(['block main', 'a', 'b pass route done=inline:child', 'block child', 'c']);

test('a valid program has no problems', () => {
  expect(checkProgram(good)).toEqual([]);
});

test('an unknown block is reported with its step', () => {
  const program = parseProgram(['a pass route done=inline:nowhere', 'b on_error recover:elsewhere', 'c each [1] gone']);
  expect(checkProgram(program)).toEqual([
    'main: step a: there is no block nowhere',
    'main: step b: there is no block elsewhere',
    'main: step c: there is no block gone',
  ]);
  expect(checkProgram({ ...good, entry: 'start' })).toEqual(['the entry block start does not exist']);
});

test('a step with a transition must be alone in its block', () => {
  const program = parseProgram(['block main', 'a route done=goto:main', 'b']);
  expect(checkProgram(program)).toEqual(['main: step a: it has a transition, but is not the only step of its block']);
});

test('ids are plain and unique', () => {
  expect(checkProgram(parseProgram(['a.b', 'c', 'c']))).toEqual([
    'main: step a.b: the id has characters that ids may not have',
    'main: step c: the id is used twice',
  ]);
});
