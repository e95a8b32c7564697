// Typed access to the keys of a table. An absent key is null; one of the wrong type is reported and null too, so that
// reading continues.

import type { Place } from '../base/source.ts';
import { DURATION_MAX_MS, parseDuration } from '../base/time.ts';
import type { Text } from '../ir/text.ts';
import { listed, missing, oneOf, type Report, suggest } from './report.ts';
import type { TomlEntry, TomlList, TomlString, TomlTable, TomlValue } from './toml-tree.ts';
import { describeToml } from './toml-tree.ts';

/** `hint`: for a value of another type; otherwise it is to be put in quotes. */
export function stringAt(report: Report, table: TomlTable, key: string, hint?: string): TomlString | null {
  return kindAt(report, table, key, 'string', 'a string', ({ kind, place: { from, to } }) => {
    const written = kind === 'list' || kind === 'table' ? '…' : report.source.text.slice(from, to);
    return hint ?? `Put it in quotes: ${key} = "${written}".`;
  });
}

/** Reports an absent key too. */
export function neededStringAt(report: Report, step: TomlTable, key: string, hint: string): TomlString | null {
  if (!step.entries.has(key)) missing(report, step.place, 'this step', key, hint);
  return stringAt(report, step, key);
}

/** A text that must not be empty. */
export function filledStringAt(report: Report, table: TomlTable, key: string, hint: string): string | null {
  const string = stringAt(report, table, key);
  if (string === null || string.value.trim() !== '') return string?.value ?? null;
  return report.error('invalid-value', string.place, `"${key}" is empty`, hint);
}

export function booleanAt(report: Report, table: TomlTable, key: string): boolean | null {
  const hint = `Write ${key} = true or ${key} = false, without quotes.`;
  return kindAt(report, table, key, 'boolean', 'true or false', () => hint)?.value ?? null;
}

export function tableAt(report: Report, table: TomlTable, key: string, hint: string): TomlTable | null {
  return kindAt(report, table, key, 'table', 'a table', () => hint);
}

export function listAt(report: Report, table: TomlTable, key: string, hint: string): TomlList | null {
  return kindAt(report, table, key, 'list', 'a list', () => hint);
}

/** Strings of a list; anything else in it is reported. */
export function stringsAt(report: Report, table: TomlTable, key: string, hint: string): readonly string[] {
  return (listAt(report, table, key, hint)?.items ?? []).flatMap((item) => {
    if (item.kind === 'string') return [item.value];
    report.error('wrong-type', item.place, `"${key}" must be a list of strings, got ${describeToml(item)}`, hint);
    return [];
  });
}

function kindAt<Kind extends TomlValue['kind']>(
  report: Report,
  table: TomlTable,
  key: string,
  kind: Kind,
  expected: string,
  hint: (value: TomlValue) => string,
): OfKind<Kind> | null {
  const entry = table.entries.get(key);
  if (entry === undefined) return null;
  return hasKind(entry.value, kind)
    ? entry.value
    : wrongType(report, entry.value, `"${key}" must be ${expected}`, hint(entry.value));
}

export function countAt(report: Report, table: TomlTable, key: string, least: number): number | null {
  const entry = table.entries.get(key);
  if (entry === undefined) return null;
  const { value } = entry;
  if (value.kind === 'integer' && Number.isSafeInteger(value.value) && value.value >= least) return value.value;
  const must = `"${key}" must be an integer of at least ${String(least)}`;
  return wrongType(report, value, must, `For example ${key} = 3, without quotes.`);
}

export function wordAt<W extends string>(report: Report, table: TomlTable, key: string, words: readonly W[]): W | null {
  const string = stringAt(report, table, key, `It is one of ${listed(words)}.`);
  return string === null ? null : word(report, key, string, words);
}

export function word<W extends string>(report: Report, key: string, string: TomlString, words: readonly W[]): W | null {
  return oneOf(report, key, { text: string.value, place: string.place }, words);
}

/** One of a few words; `otherwise`: the hint if none is similar. */
export function choiceAt<W extends string>(
  report: Report,
  table: TomlTable,
  key: string,
  words: readonly W[],
  otherwise: string,
): W | null {
  const string = stringAt(report, table, key, otherwise);
  const known = words.find((each) => each === string?.value) ?? null;
  if (string === null || known !== null) return known;
  const hint = suggest(string.value, words, otherwise);
  return report.error('invalid-value', string.place, `there is no ${key} "${string.value}"`, hint);
}

/** In milliseconds. A number counts seconds. */
export function durationAt(report: Report, table: TomlTable, key: string): number | null {
  const entry = table.entries.get(key);
  return entry === undefined ? null : duration(report, key, entry.value);
}

const DURATION_HINT = 'For example "90s", "5m" or "1h30m"; a number counts seconds.';

export function duration(report: Report, key: string, value: TomlValue): number | null {
  const text =
    value.kind === 'string' || value.kind === 'integer' || value.kind === 'float' ? String(value.value) : null;
  const ms = text === null ? null : parseDuration(text);
  if (ms !== null && ms <= DURATION_MAX_MS) return ms;
  const got = text === null ? describeToml(value) : JSON.stringify(text);
  const message = ms === null ? `"${key}" must be a duration, got ${got}` : `"${key}" is too long: ${got}`;
  const hint = ms === null ? DURATION_HINT : 'At most 36500d, a hundred years.';
  return report.error('invalid-duration', value.place, message, hint);
}

/** Whether the name is valid; if not, that is reported. */
export function checkName(report: Report, place: Place, name: string, of: 'variable' | 'output'): boolean {
  if (NAME.test(name)) return true;
  const message = `"${name}" is not a valid name for ${of === 'output' ? 'an' : 'a'} ${of}`;
  report.error('invalid-name', place, message, `Names of ${of}s are made of letters, digits, - and _.`);
  return false;
}

export const NAME = /^[A-Za-z0-9_-]+$/;

/** `must`: what it is and should be, as in `"needs" must be a list`. */
export function wrongType(report: Report, value: TomlValue, must: string, hint: string): null {
  return report.error('wrong-type', value.place, `${must}, got ${describeToml(value)}`, hint);
}

export function readEnvironment(
  report: Report,
  table: TomlTable | null,
  lower: (string: TomlString) => Text,
): Readonly<Record<string, Text>> {
  const env: [string, Text][] = [];
  for (const { key, keyPlace, value } of table?.entries.values() ?? []) {
    if (!isVariableName(key)) {
      const hint = 'It is made of letters, digits and _, and does not begin with a digit.';
      report.error('invalid-name', keyPlace, `"${key}" is not a valid name for an environment variable`, hint);
    } else if (key.startsWith('MEOW_')) {
      const message = `"${key}" is reserved for meow itself: this value is left out`;
      report.warning('reserved-name', keyPlace, message, 'Choose a name that does not begin with MEOW_.');
      continue;
    }
    if (value.kind === 'string') env.push([key, lower(value)]);
    else if (value.kind === 'list' || value.kind === 'table') {
      wrongType(report, value, `"${key}" must be a string`, 'Environment variables are strings; write JSON in quotes.');
    } else env.push([key, String(value.value)]);
  }
  return Object.fromEntries(env);
}

type OfKind<Kind> = Extract<TomlValue, { kind: Kind }>;

/** The value of a key if it has that kind. Reports nothing. */
export function valueOf<Kind extends TomlValue['kind']>(
  table: TomlTable,
  key: string,
  kind: Kind,
): OfKind<Kind> | null {
  const value = table.entries.get(key)?.value;
  return value !== undefined && hasKind(value, kind) ? value : null;
}

function hasKind<Kind extends TomlValue['kind']>(value: TomlValue, kind: Kind): value is OfKind<Kind> {
  return value.kind === kind;
}

/** The entries of an inner table; none if the key is absent or has another kind. */
export function entriesOf(table: TomlTable, key: string): readonly TomlEntry[] {
  return [...(valueOf(table, key, 'table')?.entries.values() ?? [])];
}

export function isVariableName(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
}
