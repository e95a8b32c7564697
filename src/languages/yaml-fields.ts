// Typed access to the keys of a map. An absent key is null; one of the wrong type is reported and null too, so that
// reading continues.

import type { Place } from '../base/source.ts';
import { DURATION_MAX_MS, parseDuration } from '../base/time.ts';
import type { Report } from './report.ts';
import { shownYaml, type YamlList, type YamlMap, type YamlScalar, type YamlValue } from './yaml-tree.ts';

/** Numbers and booleans count as text, as written: the name of a model may look like one. */
export function textAt(report: Report, map: YamlMap, key: string): YamlScalar | null {
  const value = valueAt(map, key);
  if (value === null) return null;
  if (value.kind === 'list' || value.kind === 'map')
    return wrongType(report, value, `"${key}" must be a text`, `For example ${key}: some words.`);
  if (value.text.trim() !== '') return value;
  return report.error('invalid-value', value.place, `"${key}" is empty`, 'Fill it in, or leave the key out.');
}

export function booleanAt(report: Report, map: YamlMap, key: string): boolean | null {
  const value = valueAt(map, key);
  if (value === null) return null;
  if (value.kind === 'boolean') return value.text === 'true';
  return wrongType(report, value, `"${key}" must be true or false`, `Write ${key}: true, or leave it out.`);
}

export function countAt(report: Report, map: YamlMap, key: string, least: number): number | null {
  const value = valueAt(map, key);
  if (value === null) return null;
  const count = value.kind === 'number' ? Number(value.text) : Number.NaN;
  if (Number.isSafeInteger(count) && count >= least) return count;
  return wrongType(report, value, `"${key}" must be an integer of at least ${String(least)}`, `For example ${key}: 3.`);
}

/** In milliseconds. A number counts seconds; 0 is unlimited. */
export function durationAt(report: Report, map: YamlMap, key: string): number | null {
  const value = valueAt(map, key);
  if (value === null) return null;
  const ms = value.kind === 'string' || value.kind === 'number' ? parseDuration(value.text) : null;
  if (ms === null)
    return wrongType(
      report,
      value,
      `"${key}" must be a duration`,
      `For example ${key}: 90s, 30m or 2h; a number counts seconds.`,
    );
  if (ms <= DURATION_MAX_MS) return ms;
  return wrongType(
    report,
    value,
    `"${key}" must be a shorter duration`,
    'At most 36500d, a hundred years; 0 means no limit.',
  );
}

export function mapAt(report: Report, map: YamlMap, key: string, hint: string): YamlMap | null {
  const value = valueAt(map, key);
  if (value === null) return null;
  return value.kind === 'map' ? value : wrongType(report, value, `"${key}" must be a map`, hint);
}

/** A single value is a list of one. */
export function listAt(map: YamlMap, key: string): YamlList | null {
  const value = valueAt(map, key);
  if (value === null) return null;
  return value.kind === 'list' ? value : { kind: 'list', place: value.place, items: [value] };
}

/** Positions of parts of a text in the source: the same occurrence of their words, or else the start of the text. */
export function placesIn(report: Report, { place, text }: YamlScalar): (from: number, to: number) => Place {
  const source = report.source.text;
  return (from, to) => {
    const [words = ''] = text.slice(from, to).split('\n');
    const nothing = { from: place.from, to: place.from + 1 };
    if (words === '') return nothing;
    let at = source.indexOf(words, place.from);
    for (let seen = text.indexOf(words); seen !== -1 && seen < from; seen = text.indexOf(words, seen + 1)) {
      at = at === -1 ? -1 : source.indexOf(words, at + 1);
    }
    return at === -1 || at >= place.to ? nothing : { from: at, to: at + words.length };
  };
}

/** A key without a value counts as absent. */
function valueAt(map: YamlMap, key: string): Exclude<YamlValue, { kind: 'nothing' }> | null {
  const value = map.entries.get(key)?.value;
  return value === undefined || value.kind === 'nothing' ? null : value;
}

/** `must`: what it is and should be, as in `"run" must be a list`. */
export function wrongType(report: Report, value: YamlValue, must: string, hint: string): null {
  return report.error('wrong-type', value.place, `${must}, got ${shownYaml(value)}`, hint);
}
