// Typed access to the keys of a table. An absent key is null; one of the wrong type is reported and null too, so that
// reading continues.

import type { Place } from '../base/source.ts';
import { DURATION_MAX_MS, parseDuration } from '../base/time.ts';
import type { Text } from '../ir/text.ts';
import { listed, type Report, suggest } from './report.ts';
import type { TomlEntry, TomlList, TomlString, TomlTable, TomlValue } from './toml-tree.ts';
import { describeToml } from './toml-tree.ts';

/** `hint`: for a value of another type; otherwise it is to be put in quotes. */
export function stringAt(report: Report, table: TomlTable, key: string, hint?: string): TomlString | null {
  const entry = table.entries.get(key);
  if (entry === undefined) return null;
  if (entry.value.kind === 'string') return entry.value;
  const quotable = entry.value.kind !== 'list' && entry.value.kind !== 'table';
  const written = quotable ? report.source.text.slice(entry.value.place.from, entry.value.place.to) : '…';
  return wrongType(report, entry, 'a string', hint ?? `Put it in quotes: ${key} = "${written}".`);
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
  report.error('invalid-value', string.place, `"${key}" is empty`, hint);
  return null;
}

export function booleanAt(report: Report, table: TomlTable, key: string): boolean | null {
  const entry = table.entries.get(key);
  if (entry === undefined) return null;
  if (entry.value.kind === 'boolean') return entry.value.value;
  return wrongType(report, entry, 'true or false', `Write ${key} = true or ${key} = false, without quotes.`);
}

export function tableAt(report: Report, table: TomlTable, key: string, hint: string): TomlTable | null {
  const entry = table.entries.get(key);
  if (entry === undefined) return null;
  return entry.value.kind === 'table' ? entry.value : wrongType(report, entry, 'a table', hint);
}

export function listAt(report: Report, table: TomlTable, key: string, hint: string): TomlList | null {
  const entry = table.entries.get(key);
  if (entry === undefined) return null;
  return entry.value.kind === 'list' ? entry.value : wrongType(report, entry, 'a list', hint);
}

export function countAt(report: Report, table: TomlTable, key: string, least: number): number | null {
  const entry = table.entries.get(key);
  if (entry === undefined) return null;
  const { value } = entry;
  if (value.kind === 'integer' && Number.isSafeInteger(value.value) && value.value >= least) return value.value;
  return wrongType(report, entry, `an integer of at least ${String(least)}`, `For example ${key} = 3, without quotes.`);
}

/** One of a few words. */
export function wordAt<W extends string>(report: Report, table: TomlTable, key: string, words: readonly W[]): W | null {
  const string = stringAt(report, table, key, `It is one of ${listed(words)}.`);
  return string === null ? null : word(report, key, string, words);
}

export function word<W extends string>(report: Report, key: string, string: TomlString, words: readonly W[]): W | null {
  const { value, place } = string;
  const known = words.find((each) => each === value);
  if (known !== undefined) return known;
  const hint = suggest(value, words, `It is one of ${listed(words)}.`);
  report.error('invalid-value', place, `"${key}" cannot be ${JSON.stringify(value)}`, hint);
  return null;
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
  report.error('invalid-value', string.place, `there is no ${key} "${string.value}"`, hint);
  return null;
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
  report.error(
    'invalid-duration',
    value.place,
    message,
    ms === null ? DURATION_HINT : 'At most 36500d, a hundred years.',
  );
  return null;
}

/** Whether the name is valid; if not, that is reported. */
export function checkName(report: Report, place: Place, name: string, of: 'variable' | 'output'): boolean {
  if (NAME.test(name)) return true;
  const message = `"${name}" is not a valid name for ${of === 'output' ? 'an' : 'a'} ${of}`;
  report.error('invalid-name', place, message, `Names of ${of}s are made of letters, digits, - and _.`);
  return false;
}

export const NAME = /^[A-Za-z0-9_-]+$/;

export function missing(report: Report, place: Place, what: string, key: string, hint: string): void {
  report.error('missing-key', place, `${what} has no "${key}"`, hint);
}

function wrongType(report: Report, { key, value }: TomlEntry, expected: string, hint: string): null {
  report.error('wrong-type', value.place, `"${key}" must be ${expected}, got ${describeToml(value)}`, hint);
  return null;
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
      const message = `"${key}" must be a string, got ${describeToml(value)}`;
      report.error('wrong-type', value.place, message, 'Environment variables are strings; write JSON in quotes.');
    } else env.push([key, String(value.value)]);
  }
  return Object.fromEntries(env);
}

/** The value of a key if it has that kind. Reports nothing. */
export function valueOf<Kind extends 'string' | 'list' | 'table'>(
  table: TomlTable,
  key: string,
  kind: Kind,
): Extract<TomlValue, { kind: Kind }> | null {
  const value = table.entries.get(key)?.value;
  return value !== undefined && hasKind(value, kind) ? value : null;
}

function hasKind<Kind extends string>(value: TomlValue, kind: Kind): value is Extract<TomlValue, { kind: Kind }> {
  return value.kind === kind;
}

/** The entries of an inner table; none if the key is absent or has another kind. */
export function entriesOf(table: TomlTable, key: string): readonly TomlEntry[] {
  return [...(valueOf(table, key, 'table')?.entries.values() ?? [])];
}

export function isVariableName(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
}
