// Typed access to the keys of a map. An absent key is null; one of the wrong type is reported and null too, so that
// reading continues.

import { DURATION_MAX_MS, parseDuration } from '../base/time.ts';
import type { Report } from './report.ts';
import { listed, suggest } from './report.ts';
import type { YamlEntry, YamlList, YamlMap, YamlScalar, YamlValue } from './yaml-tree.ts';
import { describeYaml } from './yaml-tree.ts';

/** Numbers and booleans count as text, as written: the name of a model may look like one. */
export function textAt(report: Report, map: YamlMap, key: string): YamlScalar | null {
  const entry = entryAt(map, key);
  if (entry === null) return null;
  const { value } = entry;
  if (value.kind !== 'string' && value.kind !== 'number' && value.kind !== 'boolean')
    return wrongType(report, entry, 'a text', `For example ${key}: some words.`);
  if (value.text.trim() !== '') return value;
  report.error('invalid-value', value.place, `"${key}" is empty`, 'Fill it in, or leave the key out.');
  return null;
}

export function booleanAt(report: Report, map: YamlMap, key: string): boolean | null {
  const entry = entryAt(map, key);
  if (entry === null) return null;
  if (entry.value.kind === 'boolean') return entry.value.text === 'true';
  return wrongType(report, entry, 'true or false', `Write ${key}: true, or leave it out.`);
}

export function countAt(report: Report, map: YamlMap, key: string, least: number): number | null {
  const entry = entryAt(map, key);
  if (entry === null) return null;
  const { value } = entry;
  const count = value.kind === 'number' ? Number(value.text) : Number.NaN;
  if (Number.isSafeInteger(count) && count >= least) return count;
  return wrongType(report, entry, `an integer of at least ${String(least)}`, `For example ${key}: 3.`);
}

/** In milliseconds. A number counts seconds; 0 is unlimited. */
export function durationAt(report: Report, map: YamlMap, key: string): number | null {
  const entry = entryAt(map, key);
  if (entry === null) return null;
  const { value } = entry;
  const ms = value.kind === 'string' || value.kind === 'number' ? parseDuration(value.text) : null;
  if (ms !== null && ms <= DURATION_MAX_MS) return ms;
  if (ms !== null)
    return wrongType(report, entry, 'a shorter duration', 'At most 36500d, a hundred years; 0 means no limit.');
  return wrongType(report, entry, 'a duration', `For example ${key}: 90s, 30m or 2h; a number counts seconds.`);
}

export function mapAt(report: Report, map: YamlMap, key: string, hint: string): YamlMap | null {
  const entry = entryAt(map, key);
  if (entry === null) return null;
  return entry.value.kind === 'map' ? entry.value : wrongType(report, entry, 'a map', hint);
}

/** A single value is a list of one. */
export function listAt(map: YamlMap, key: string): YamlList | null {
  const entry = entryAt(map, key);
  if (entry === null) return null;
  const { value } = entry;
  return value.kind === 'list' ? value : { kind: 'list', place: value.place, items: [value] };
}

/** An unknown key is harmless, so it is a warning. */
export function checkKeys(report: Report, map: YamlMap, known: readonly string[], what: string): void {
  for (const { key, keyPlace } of map.entries.values()) {
    if (known.includes(key)) continue;
    const hint = suggest(key, known, `Known here: ${listed(known)}.`);
    report.warning('unknown-key', keyPlace, `${what} has no key "${key}"`, hint);
  }
}

/** A key without a value counts as absent. */
function entryAt(map: YamlMap, key: string): YamlEntry | null {
  const entry = map.entries.get(key);
  return entry === undefined || entry.value.kind === 'nothing' ? null : entry;
}

function wrongType(report: Report, { key, value }: YamlEntry, expected: string, hint: string): null {
  report.error('wrong-type', value.place, `"${key}" must be ${expected}, got ${got(value)}`, hint);
  return null;
}

function got(value: YamlValue): string {
  return value.kind === 'string' ? JSON.stringify(value.text) : describeYaml(value);
}
