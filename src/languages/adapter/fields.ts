// Sections of an adapter, typed access to their keys, and texts with {{…}}. As in toml-fields.ts, absent keys are null
// and errors are reported. A section has the keys of its table in keys.ts; any other is a warning. Which placeholders are
// allowed in a text depends on its position; ir/adapter.ts lists them all.

import { type Hole, PLACEHOLDERS } from '../../ir/adapter.ts';
import { keyName } from '../../ir/prompt-text.ts';
import { referencesIn, type Text } from '../../ir/text.ts';
import { type KeyIn, namesOf, type Table } from '../keys.ts';
import { checkKeys, listed, missing, type Report, START, suggest } from '../report.ts';
import { readTemplate, scriptText, type Hole as TemplateHole, verbatimText } from '../template.ts';
import { booleanAt, durationAt, stringAt, tableAt, wordAt, wrongType } from '../toml-fields.ts';
import { placeWithin, type TomlString, type TomlTable, type TomlValue } from '../toml-tree.ts';

/** The file being read. */
export interface Reading {
  readonly report: Report;
  readonly root: TomlTable;
  /** Names of the placeholders used so far. */
  readonly used: Set<string>;
}

type ReadSection<Section extends Table, T> = (section: Fields<KeyIn<Section>>) => T;

/** `[NAME]`; null if it is absent. `advice`: what to write after the header. */
export function sectionAt<Section extends Table, T>(
  reading: Reading,
  section: Section,
  advice: string,
  read: ReadSection<Section, T>,
): T | null {
  const { name } = section;
  const table = tableAt(reading.report, reading.root, name, `Write [${name}] and ${advice}.`);
  return table === null ? null : readSection(reading, table, section, `[${name}]`, read);
}

/** The same; without the section, all its keys are absent. */
export function optionalSection<Section extends Table, T>(
  reading: Reading,
  section: Section,
  advice: string,
  read: ReadSection<Section, T>,
): T {
  const empty: TomlTable = { kind: 'table', place: START, entries: new Map() };
  return sectionAt(reading, section, advice, read) ?? readSection(reading, empty, section, `[${section.name}]`, read);
}

/** `[[NAME]]`: tables of the same name. `value`: that of `key`. */
export function sectionsAt<Section extends Table, T>(
  reading: Reading,
  value: TomlValue | undefined,
  key: string,
  section: Section,
  read: ReadSection<Section, T>,
): readonly T[] {
  const name = `[[${section.name}]]`;
  const items = value?.kind === 'list' ? value.items : [value];
  return items.flatMap((item) => {
    if (item === undefined) return [];
    if (item.kind === 'table' && value?.kind === 'list') return [readSection(reading, item, section, name, read)];
    const hint = `Write ${name}, and its keys below it.`;
    return wrongType(reading.report, item, `"${key}" must be a list of tables`, hint) ?? [];
  });
}

/** `name`: that of the section in messages. */
function readSection<Section extends Table, T>(
  reading: Reading,
  table: TomlTable,
  section: Section,
  name: string,
  read: ReadSection<Section, T>,
): T {
  checkKeys(reading.report, table, namesOf(section.keys), name, 'warning');
  return read(fieldsOf<KeyIn<Section>>(reading, table, name));
}

export type Fields<Key extends string> = ReturnType<typeof fieldsOf<Key>>;

function fieldsOf<Key extends string>(reading: Reading, table: TomlTable, name: string) {
  const { report } = reading;
  const value = (key: Key): TomlValue | undefined => table.entries.get(key)?.value;
  /** A text that must not be empty. */
  const filled = (key: Key): TomlString | null => {
    const string = stringAt(report, table, key);
    if (string === null || string.value.trim() !== '') return string;
    return report.error('invalid-value', string.place, `"${key}" is empty`, 'Write something, or remove the line.');
  };
  const require = (key: Key, hint: string): void => {
    if (value(key) === undefined) missing(report, table.place, name, key, hint);
  };
  /** A list of texts, empty if absent; a single text needs no brackets. */
  const texts = (key: Key): readonly TomlString[] => {
    const written = value(key);
    const items = written?.kind === 'list' ? written.items : [written];
    return items.flatMap((item) => {
      if (item === undefined) return [];
      if (item.kind === 'string') return [item];
      return (
        wrongType(report, item, `"${key}" must be a list of strings`, `For example ${key} = ["one", "two"].`) ?? []
      );
    });
  };
  return {
    place: table.place,
    value,
    filled,
    texts,
    require,
    text: (key: Key): string | null => filled(key)?.value ?? null,
    needed: (key: Key, hint: string): TomlString | null => {
      require(key, hint);
      return filled(key);
    },
    /** A command, or a part of one. `more`: additional placeholders allowed here. */
    command: (key: Key, more: readonly Hole[] = []): Text | null => {
      const string = filled(key);
      return string === null ? null : commandText(reading, string, more);
    },
    string: (key: Key): string | null => stringAt(report, table, key)?.value ?? null,
    boolean: (key: Key): boolean | null => booleanAt(report, table, key),
    duration: (key: Key): number | null => durationAt(report, table, key),
    table: (key: Key, hint: string): TomlTable | null => tableAt(report, table, key, hint),
    word: <Word extends string>(key: Key, words: readonly Word[]): Word | null => wordAt(report, table, key, words),
    patterns: (key: Key): readonly string[] => texts(key).flatMap((text) => pattern(report, text) ?? []),
    /** Names of terminal keys, as in tmux. */
    keys: (key: Key): readonly string[] | null =>
      value(key) === undefined ? null : texts(key).flatMap((text) => pressed(report, text) ?? []),
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
  return report.error('invalid-pattern', place, problem, hint);
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
  return report.error('invalid-key', place, `there is no key ${JSON.stringify(value)}`, hint);
}

/** Known for every start. */
const ALWAYS: readonly Hole[] = ['agent', 'workflow_id', 'workdir', 'folder', 'meow', 'hook', 'socket', 'inbox'];

/** Where the other placeholders have a value. */
const ELSEWHERE: Readonly<Partial<Record<Hole, string>>> = {
  session_id: 'It is known when a session is resumed or forked, and when MEOW chooses it: session_id = "chosen".',
  new_session_id: 'It is the new session of a fork, where we choose it: session_id = "chosen".',
  home: 'It is the folder that the section [home] asks for.',
  model: 'It is for "model_args" alone.',
  effort: 'It is for "effort_args" alone.',
  prompt: 'It is for the commands of [headless] alone, with prompt = "argument".',
};

/** A command, or a part of one. `more`: additional placeholders allowed here. */
function commandText(reading: Reading, string: TomlString, more: readonly Hole[]): Text {
  const cure = (): string => 'Make it a separate word, or put it in quotes.';
  return scriptText(reading.report, string, readParts(reading, string, more), { cure });
}

/** An environment value, a path, a text. */
export function plainText(reading: Reading, string: TomlString): Text {
  return verbatimText(readParts(reading, string, []));
}

export function hasPlaceholder(text: Text | null, name: Hole): boolean {
  return text !== null && referencesIn(text).some(({ path }) => path[0] === name);
}

function readParts(reading: Reading, string: TomlString, more: readonly Hole[]): readonly (string | TemplateHole)[] {
  const { report, root, used } = reading;
  const known: readonly string[] = [...ALWAYS, ...(root.entries.has('home') ? ['home'] : []), ...more];
  const parts = readTemplate(report, string);
  for (const part of parts) {
    if (typeof part === 'string') continue;
    const name = part.path.join('.');
    used.add(name);
    if (known.includes(name)) continue;
    const place = placeWithin(string, part.from, part.to);
    const elsewhere = PLACEHOLDERS.find((hole) => hole === name);
    if (elsewhere === undefined) {
      const hint = suggest(name, known, `Known here: ${listed(known)}.`);
      report.error('unknown-hole', place, `{{${name}}} is not a known placeholder`, hint);
    } else report.error('unknown-hole', place, `{{${name}}} has no value here`, ELSEWHERE[elsewhere] ?? '');
  }
  return parts;
}
