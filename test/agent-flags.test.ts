// The commands for agents read their flags themselves, to start fast, and the entry of the program must know which
// commands these are.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readFlags } from '../src/cli/flags.ts';
import { AGENT_HELP, type AgentCommandHelp } from '../src/cli/help.ts';

test('the entry of the program knows them all', () => {
  const entry = readFileSync(join(import.meta.dirname, '../src/cli/main.ts'), 'utf8');
  const known = /FOR_AGENTS = \[([^\]]*)\]/.exec(entry)?.[1]?.match(/[a-z-]+/g);
  expect(known).toEqual(Object.keys(AGENT_HELP));
});

test('flags are read in every way that people write them', () => {
  const list = { argument: 'TYPE', options: { '--data <k=v>': '', '--notes <text>': '', '--json': '' } };
  const given = readFlags('x', list, ['--data', 'a=1', 'type', '--data=b=--c', '--notes', '--json', '--json']);
  expect(given.arguments).toEqual(['type']);
  expect(given.all('data')).toEqual(['a=1', 'b=--c']);
  expect(given.last('notes')).toBe('--json');
  expect(given.has('json')).toBe(true);
  expect(given.last('other')).toBeNull();
  expect(readFlags('x', list, ['--', '--type']).arguments).toEqual(['--type']);
});

test.each(Object.entries<AgentCommandHelp>(AGENT_HELP))(
  'the usage of %s begins with its name and argument',
  (name, help) => {
    const { usage, argument } = help;
    expect(usage.replace(/ \[.*/, '')).toBe(argument === undefined ? name : `${name} ${argument}`);
  },
);
