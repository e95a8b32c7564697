// The commands for agents read their flags themselves, to start fast; their help is with that of all others. Both must
// speak of the same flags, and the entry of the program must know which commands these are.

import { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AGENT_COMMANDS } from '../src/cli/agent.ts';
import { addConversationCommands } from '../src/cli/conversation-commands.ts';
import { readFlags } from '../src/cli/flags.ts';

const explained = new Map<string, Command>();
addConversationCommands(
  (_group, usage) => {
    const command = new Command(usage.split(' ')[0]);
    explained.set(command.name(), command);
    return command;
  },
  () => {},
);

test.each(Object.entries(AGENT_COMMANDS))('the help of %s speaks of the flags that it reads', (name, list) => {
  const command = explained.get(name);
  const names = (takesValue: boolean) =>
    command?.options.filter(({ required }) => required === takesValue).map(({ long }) => long?.slice(2));
  expect(names(true)).toEqual([...list.values]);
  expect(names(false)).toEqual([...list.switches]);
  expect(command?.registeredArguments.map((argument) => argument.name().toUpperCase())).toEqual([...list.arguments]);
});

test('the entry of the program knows them all', () => {
  const entry = readFileSync(join(import.meta.dirname, '../src/cli/main.ts'), 'utf8');
  const known = /FOR_AGENTS = \[([^\]]*)\]/.exec(entry)?.[1]?.match(/[a-z-]+/g);
  expect(known).toEqual(Object.keys(AGENT_COMMANDS));
});

test('flags are read in every way that people write them', () => {
  const list = { arguments: ['TYPE'], values: ['data', 'notes'], switches: ['json'] };
  const given = readFlags('x', list, ['--data', 'a=1', 'type', '--data=b=--c', '--notes', '--json', '--json']);
  expect(given.arguments).toEqual(['type']);
  expect(given.all('data')).toEqual(['a=1', 'b=--c']);
  expect(given.last('notes')).toBe('--json');
  expect(given.has('json')).toBe(true);
  expect(given.last('other')).toBeNull();
  expect(readFlags('x', list, ['--', '--type']).arguments).toEqual(['--type']);
});
