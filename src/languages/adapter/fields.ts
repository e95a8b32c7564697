// Sections of an adapter, and typed access to their keys. As in toml-fields.ts, absent keys are null and errors are
// reported.

import type { Hole } from '../../ir/adapter.ts';
import { keyName } from '../../ir/prompt-text.ts';
import type { Text } from '../../ir/text.ts';
import { checkKeys, type Report, suggest } from '../report.ts';
import { booleanAt, durationAt, missing, stringAt, tableAt, wordAt } from '../toml-fields.ts';
import { describeToml, type TomlString, type TomlTable, type TomlValue } from '../toml-tree.ts';
import { commandText, type Reading } from './placeholders.ts';

/** `[NAME]`. An unknown key is a warning. `advice`: what to write after the header. */
export function sectionAt(reading: Reading, name: string, known: readonly string[], advice: string): Fields | null {
  const { report, root } = reading;
  const table = tableAt(report, root, name, `Write [${name}] and ${advice}.`);
  if (table === null) return null;
  checkKeys(report, table, known, `[${name}]`, 'warning');
  return fieldsOf(reading, table, `[${name}]`);
}

/** The same; without the section, all its keys are absent. */
export function optionalSection(reading: Reading, name: string, known: readonly string[], advice: string): Fields {
  const empty: TomlTable = { kind: 'table', place: { from: 0, to: 1 }, entries: new Map() };
  return sectionAt(reading, name, known, advice) ?? fieldsOf(reading, empty, `[${name}]`);
}

/** `[[NAME]]`: tables of the same name, at `key` of `table`. An unknown key is a warning. */
export function sectionsAt(
  reading: Reading,
  table: TomlTable,
  key: string,
  known: readonly string[],
  name = key,
): readonly Fields[] {
  const { report } = reading;
  const value = table.entries.get(key)?.value;
  const items = value?.kind === 'list' ? value.items : [value];
  return items.flatMap((item) => {
    if (item === undefined) return [];
    if (item.kind === 'table' && value?.kind === 'list') {
      checkKeys(report, item, known, `[[${name}]]`, 'warning');
      return [fieldsOf(reading, item, `[[${name}]]`)];
    }
    const message = `"${key}" must be a list of tables, got ${describeToml(item)}`;
    report.error('wrong-type', item.place, message, `Write [[${name}]], and its keys below it.`);
    return [];
  });
}

export type Fields = ReturnType<typeof fieldsOf>;

/** `section`: its name in messages. */
function fieldsOf(reading: Reading, table: TomlTable, section: string) {
  const { report } = reading;
  /** A text that must not be empty. */
  const filled = (key: string): TomlString | null => {
    const string = stringAt(report, table, key);
    if (string === null || string.value.trim() !== '') return string;
    report.error('invalid-value', string.place, `"${key}" is empty`, 'Write something, or remove the line.');
    return null;
  };
  const require = (key: string, hint: string): void => {
    if (!table.entries.has(key)) missing(report, table.place, section, key, hint);
  };
  /** A list of texts, empty if absent; a single text needs no brackets. */
  const texts = (key: string): readonly TomlString[] => {
    const value = table.entries.get(key)?.value;
    const items = value?.kind === 'list' ? value.items : [value];
    return items.flatMap((item) => {
      if (item === undefined) return [];
      if (item.kind === 'string') return [item];
      const message = `"${key}" must be a list of strings, got ${describeToml(item)}`;
      report.error('wrong-type', item.place, message, `For example ${key} = ["one", "two"].`);
      return [];
    });
  };
  return {
    table,
    filled,
    texts,
    value: (key: string): TomlValue | undefined => table.entries.get(key)?.value,
    text: (key: string): string | null => filled(key)?.value ?? null,
    require,
    needed: (key: string, hint: string): TomlString | null => {
      require(key, hint);
      return filled(key);
    },
    /** A command, or a part of one. `more`: additional placeholders allowed here. */
    command: (key: string, more: readonly Hole[] = []): Text | null => {
      const string = filled(key);
      return string === null ? null : commandText(reading, string, more);
    },
    string: (key: string): string | null => stringAt(report, table, key)?.value ?? null,
    boolean: (key: string): boolean | null => booleanAt(report, table, key),
    duration: (key: string): number | null => durationAt(report, table, key),
    word: <Word extends string>(key: string, words: readonly Word[]): Word | null => wordAt(report, table, key, words),
    patterns: (key: string): readonly string[] => texts(key).flatMap((text) => pattern(report, text) ?? []),
    /** Names of terminal keys, as in tmux. */
    keys: (key: string): readonly string[] | null =>
      table.entries.has(key) ? texts(key).flatMap((text) => pressed(report, text) ?? []) : null,
    /** The signal that asks a process to exit. */
    signal: () => wordAt(report, table, 'signal', ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) ?? 'SIGTERM',
  };
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
