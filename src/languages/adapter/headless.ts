// Channels without a terminal: one process per prompt (`[headless]`), or a protocol (`[acp]`).

import type { AcpProfile, HeadlessProfile, Hole } from '../../ir/adapter.ts';
import type { Text } from '../../ir/text.ts';
import { listed, suggest } from '../report.ts';
import { booleanAt, checkKeys, missing, tableAt, wordAt } from '../toml-fields.ts';
import type { TomlTable } from '../toml-tree.ts';
import { filledAt, signalAt } from './fields.ts';
import type { Texts } from './placeholders.ts';
import { commandAt, hasPlaceholder } from './placeholders.ts';
import { readSessionCommands } from './session.ts';

const KEYS = [
  'command',
  'resume',
  'fork',
  'replay',
  'model_args',
  'effort_args',
  'prompt',
  'reader',
  'session_id',
  'signal',
];

/** Output format of an agent that prints only its answer. */
const PLAIN = 'text';

export function readHeadless(texts: Texts, root: TomlTable, readers: readonly string[]): HeadlessProfile | null {
  const { report } = texts;
  const table = tableAt(report, root, 'headless', 'Write [headless] and below it command = "my-agent".');
  if (table === null) return null;
  checkKeys(report, table, KEYS, '[headless]', 'warning');
  const prompt = wordAt(report, table, 'prompt', ['stdin', 'argument'] as const) ?? 'stdin';
  const reader = readReader(texts, table, readers);
  const more: readonly Hole[] = prompt === 'argument' ? ['prompt'] : [];
  const commands = readSessionCommands(texts, table, {
    section: '[headless]',
    resume: 'resume',
    fork: 'fork',
    canTell: reader !== PLAIN,
    untold: `the reader "${PLAIN}" knows of none`,
    more,
  });
  if (prompt === 'argument') {
    for (const key of ['command', 'resume', 'fork'] as const) needPrompt(texts, table, key, commands[key]);
  }
  return {
    ...commands,
    replays: booleanAt(report, table, 'replay') ?? false,
    modelArgs: commandAt(texts, table, 'model_args', ['model']),
    effortArgs: commandAt(texts, table, 'effort_args', ['effort']),
    prompt,
    reader,
    signal: signalAt(report, table),
  };
}

function needPrompt({ report }: Texts, table: TomlTable, key: string, text: Text | null): void {
  const entry = table.entries.get(key);
  if (text === null || entry === undefined || hasPlaceholder(text, 'prompt')) return;
  const hint = 'Put {{prompt}} where the agent takes it, or let it be read from stdin: prompt = "stdin".';
  report.error('missing-hole', entry.value.place, `"${key}" does not hand over the prompt: it has no {{prompt}}`, hint);
}

function readReader({ report }: Texts, table: TomlTable, readers: readonly string[]): string {
  const reader = filledAt(report, table, 'reader');
  if (reader === null) return PLAIN;
  if (!readers.includes(reader.value)) {
    const hint = suggest(reader.value, readers, `Available: ${listed(readers)}.`);
    report.error('unknown-reader', reader.place, `no reader is called ${JSON.stringify(reader.value)}`, hint);
  }
  return reader.value;
}

export function readAcp(texts: Texts, root: TomlTable): AcpProfile | null {
  const { report } = texts;
  const table = tableAt(report, root, 'acp', 'Write [acp] and below it command = "my-agent --acp".');
  if (table === null) return null;
  checkKeys(report, table, ['command', 'permission', 'signal'], '[acp]', 'warning');
  const command = commandAt(texts, table, 'command');
  if (!table.entries.has('command')) {
    missing(report, table.place, '[acp]', 'command', 'Say how the agent is started: command = "my-agent --acp".');
  }
  return {
    command: command ?? '',
    permission: wordAt(report, table, 'permission', ['ask', 'allow', 'deny'] as const) ?? 'ask',
    signal: signalAt(report, table),
  };
}
