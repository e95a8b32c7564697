// Reading maps: unknown keys are errors, lists and words have types. A problem is reported and yields null, so that
// reading continues.

import type { Place } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { textAt } from '../yaml-fields.ts';
import type { YamlList, YamlMap, YamlScalar, YamlValue } from '../yaml-tree.ts';
import { describeYaml } from '../yaml-tree.ts';

/** `elsewhere`: hint for a key that belongs elsewhere; null if it is unknown everywhere. */
export function strictKeys(
  report: Report,
  map: YamlMap,
  known: readonly string[],
  what: string,
  elsewhere: (key: string) => string | null = () => null,
): void {
  for (const { key, keyPlace } of map.entries.values()) {
    if (known.includes(key)) continue;
    const hint = (): string => elsewhere(key) ?? suggest(key, known, `Known here: ${listed(known)}.`);
    report.error('unknown-key', keyPlace, `${what} has no key "${key}"`, hint);
  }
  checkValues(report, map);
}

/** An empty value could silently mean nothing: a policy, a list of approvers. */
export function checkValues(report: Report, map: YamlMap): void {
  for (const { key, keyPlace, value } of map.entries.values()) {
    if (value.kind !== 'nothing') continue;
    report.error('missing-value', keyPlace, `"${key}" has no value`, 'Fill it in, or remove the key.');
  }
}

export function missingKey(report: Report, place: Place, what: string, key: string, hint: string): null {
  report.error('missing-key', place, `${what} has no "${key}"`, hint);
  return null;
}

/** A required text. */
export function neededText(
  report: Report,
  map: YamlMap,
  key: string,
  { place, what, hint }: { readonly place: Place; readonly what: string; readonly hint: string },
): YamlScalar | null {
  return map.entries.has(key) ? textAt(report, map, key) : missingKey(report, place, what, key, hint);
}

export function wordAt<Word extends string>(
  report: Report,
  map: YamlMap,
  key: string,
  words: readonly Word[],
): Word | null {
  const value = textAt(report, map, key);
  return value === null ? null : oneOf(report, key, value, words);
}

export function oneOf<Word extends string>(
  report: Report,
  key: string,
  { text, place }: YamlScalar,
  words: readonly Word[],
): Word | null {
  const known = words.find((each) => each === text);
  if (known !== undefined) return known;
  const hint = (): string => suggest(text, words, `It is one of ${listed(words)}.`);
  report.error('invalid-value', place, `"${key}" cannot be ${JSON.stringify(text)}`, hint);
  return null;
}

/** A list, not a single value. */
export function listAt(report: Report, map: YamlMap, key: string, example: string): YamlList | null {
  const value = map.entries.get(key)?.value;
  if (value === undefined || value.kind === 'nothing') return null;
  if (value.kind === 'list') return value;
  report.error('wrong-type', value.place, `"${key}" must be a list, got ${shown(value)}`, `For example ${example}.`);
  return null;
}

export function textsAt(report: Report, map: YamlMap, key: string, example: string): readonly YamlScalar[] | null {
  const list = listAt(report, map, key, example);
  if (list === null) return null;
  return list.items.flatMap((item) => {
    if (isScalar(item)) return [item];
    const message = `"${key}" is a list of texts, got ${describeYaml(item)}`;
    report.error('wrong-type', item.place, message, `For example ${example}.`);
    return [];
  });
}

export function isScalar(value: YamlValue): value is YamlScalar {
  return value.kind === 'string' || value.kind === 'number' || value.kind === 'boolean';
}

/** For messages: `got "yes"`. */
export function shown(value: YamlValue): string {
  return value.kind === 'string' ? JSON.stringify(value.text) : describeYaml(value);
}
