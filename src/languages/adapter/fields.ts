// Field readers for adapters: lists of texts, patterns, terminal keys, enumerations. As in toml-fields.ts, absent
// fields are null and errors are reported.

import type { StopWays } from '../../ir/adapter.ts';
import { keyName } from '../../ir/prompt-text.ts';
import type { Report } from '../report.ts';
import { suggest } from '../report.ts';
import { missing, stringAt, word, wordAt } from '../toml-fields.ts';
import type { TomlString, TomlTable } from '../toml-tree.ts';
import { describeToml } from '../toml-tree.ts';

/** A text that must not be empty. */
export function filledAt(report: Report, table: TomlTable, key: string): TomlString | null {
  const string = stringAt(report, table, key);
  if (string === null || string.value.trim() !== '') return string;
  report.error('invalid-value', string.place, `"${key}" is empty`, 'Write something, or remove the line.');
  return null;
}

/** The same, for a required key. */
export function neededAt(
  report: Report,
  table: TomlTable,
  section: string,
  key: string,
  hint: string,
): TomlString | null {
  if (!table.entries.has(key)) missing(report, table.place, section, key, hint);
  return filledAt(report, table, key);
}

/** A list of texts; a single text needs no brackets. */
export function textsAt(report: Report, table: TomlTable, key: string): readonly TomlString[] | null {
  const entry = table.entries.get(key);
  if (entry === undefined) return null;
  const { value } = entry;
  const items = value.kind === 'list' ? value.items : [value];
  return items.flatMap((item) => {
    if (item.kind === 'string') return [item];
    const message = `"${key}" must be a list of strings, got ${describeToml(item)}`;
    report.error('wrong-type', item.place, message, `For example ${key} = ["one", "two"].`);
    return [];
  });
}

/** Tables of the same name: `[[dialogs]]`. */
export function tablesAt(report: Report, table: TomlTable, key: string, written = key): readonly TomlTable[] {
  const entry = table.entries.get(key);
  if (entry === undefined) return [];
  const { value } = entry;
  const items = value.kind === 'list' ? value.items : [null];
  return items.flatMap((item) => {
    if (item?.kind === 'table') return [item];
    const message = `"${key}" must be a list of tables, got ${describeToml(item ?? value)}`;
    report.error('wrong-type', (item ?? value).place, message, `Write [[${written}]], and its keys below it.`);
    return [];
  });
}

export function wordsAt<Word extends string>(
  report: Report,
  table: TomlTable,
  key: string,
  words: readonly Word[],
): readonly Word[] {
  return (textsAt(report, table, key) ?? []).flatMap((string) => word(report, key, string, words) ?? []);
}

/** The signal that asks a process to exit. */
export function signalAt(report: Report, table: TomlTable): StopWays['signal'] {
  return wordAt(report, table, 'signal', ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) ?? 'SIGTERM';
}

export function patternsAt(report: Report, table: TomlTable, key: string): readonly string[] {
  return (textsAt(report, table, key) ?? []).flatMap((string) => pattern(report, string) ?? []);
}

/** Flags of every pattern. */
const FLAGS = 'mu';

/** The source of a regular expression. */
export function pattern(report: Report, { value, place }: TomlString): string | null {
  const problem = problemOf(value);
  if (problem === null) return value;
  const hint =
    "In single quotes a backslash stands for itself: '^Proceed\\? \\(y/n\\)'. Patterns are read as JavaScript reads them.";
  report.error('invalid-pattern', place, problem, hint);
  return null;
}

function problemOf(source: string): string | null {
  try {
    return new RegExp(source, FLAGS).test('') ? 'this pattern fits even an empty screen, and so tells nothing' : null;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // `Invalid regular expression: /(/mu: Unterminated group`
    const mark = `/${FLAGS}: `;
    return `this is not a regular expression: ${error.message.slice(error.message.lastIndexOf(mark) + mark.length)}`;
  }
}

/** Number of groups in a pattern. */
export function groupsIn(source: string): number {
  return (new RegExp(`${source}|`, FLAGS).exec('')?.length ?? 1) - 1;
}

/** Key names as in tmux. */
export function keysAt(report: Report, table: TomlTable, key: string): readonly string[] | null {
  const texts = textsAt(report, table, key);
  return texts === null ? null : texts.flatMap((string) => pressed(report, string) ?? []);
}

/** Shown after an unknown key name. */
const KEYS = 'Enter Escape Tab BTab Space BSpace Up Down Left Right Home End PageUp PageDown DC IC C-c C-d C-u'.split(
  ' ',
);

function pressed(report: Report, { value, place }: TomlString): string | null {
  if (keyName(value) === value || /^\P{C}$/u.test(value)) return value;
  const named = /^\^[A-Za-z]$/.test(value) ? `Did you mean "C-${value.slice(1).toLowerCase()}"?` : null;
  const otherwise = 'Keys are named as tmux names them: "Enter", "Escape", "C-c", "Up", or one character.';
  const hint = named ?? suggest(value, KEYS, otherwise);
  report.error('invalid-key', place, `there is no key ${JSON.stringify(value)}`, hint);
  return null;
}
