// Typed access to the keys of a table. An absent key is null; one of the wrong type is reported and null too, so that
// reading continues.

import type { Place } from '../base/source.ts';
import { DURATION_MAX_MS, parseDuration } from '../base/time.ts';
import type { Report } from './report.ts';
import { listed, suggest } from './report.ts';
import type { TomlEntry, TomlList, TomlString, TomlTable, TomlValue } from './toml-tree.ts';
import { describeToml } from './toml-tree.ts';

export function stringAt(report: Report, table: TomlTable, key: string): TomlString | null {
  const entry = table.entries.get(key);
  if (entry === undefined) return null;
  if (entry.value.kind === 'string') return entry.value;
  const quotable = entry.value.kind !== 'list' && entry.value.kind !== 'table';
  const written = quotable ? report.source.text.slice(entry.value.place.from, entry.value.place.to) : '…';
  return wrongType(report, entry, 'a string', `Put it in quotes: ${key} = "${written}".`);
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
export function wordAt<Word extends string>(
  report: Report,
  table: TomlTable,
  key: string,
  words: readonly Word[],
): Word | null {
  const string = stringAt(report, table, key);
  return string === null ? null : word(report, key, string, words);
}

export function word<Word extends string>(
  report: Report,
  key: string,
  { value, place }: TomlString,
  words: readonly Word[],
): Word | null {
  const known = words.find((each) => each === value);
  if (known !== undefined) return known;
  const hint = suggest(value, words, `It is one of ${listed(words)}.`);
  report.error('invalid-value', place, `"${key}" cannot be ${JSON.stringify(value)}`, hint);
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
  if (ms !== null) {
    report.error('invalid-duration', value.place, `"${key}" is too long: ${got}`, 'At most 36500d, a hundred years.');
    return null;
  }
  report.error('invalid-duration', value.place, `"${key}" must be a duration, got ${got}`, DURATION_HINT);
  return null;
}

/** The caller decides whether an unknown key is an error or a warning. */
export function checkKeys(
  report: Report,
  table: TomlTable,
  known: readonly string[],
  what: string,
  severity: 'error' | 'warning',
): void {
  for (const { key, keyPlace } of table.entries.values()) {
    if (known.includes(key)) continue;
    const hint = suggest(key, known, `Known here: ${listed(known)}.`);
    report[severity]('unknown-key', keyPlace, `${what} has no key "${key}"`, hint);
  }
}

export function missing(report: Report, place: Place, what: string, key: string, hint: string): void {
  report.error('missing-key', place, `${what} has no "${key}"`, hint);
}

function wrongType(report: Report, { key, value }: TomlEntry, expected: string, hint: string): null {
  report.error('wrong-type', value.place, `"${key}" must be ${expected}, got ${describeToml(value)}`, hint);
  return null;
}
