// Reading maps: unknown keys are errors; lists, words and ids have types. A problem is reported and yields null, so that
// reading continues.

import type { Place } from '../../base/source.ts';
import { listed, type Report, suggest } from '../report.ts';
import { textAt } from '../yaml-fields.ts';
import { describeYaml, type YamlList, type YamlMap, type YamlScalar, type YamlValue } from '../yaml-tree.ts';

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

/** Of two things with one id, the second is reported. */
export function checkDuplicates(
  report: Report,
  all: readonly { readonly id: string; readonly place: Place }[],
  message: (id: string) => string,
): void {
  const seen = new Map<string, Place>();
  for (const { id, place } of all) {
    const before = seen.get(id);
    seen.set(id, before ?? place);
    if (before === undefined) continue;
    const related = [{ message: 'the first one', place: before }];
    report.error('duplicate-id', place, message(id), 'Give one of them another id.', related);
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

export function wordAt<W extends string>(report: Report, map: YamlMap, key: string, words: readonly W[]): W | null {
  const value = textAt(report, map, key);
  return value === null ? null : oneOf(report, key, value, words);
}

export function oneOf<W extends string>(report: Report, key: string, value: YamlScalar, words: readonly W[]): W | null {
  const known = words.find((each) => each === value.text);
  if (known !== undefined) return known;
  const hint = (): string => suggest(value.text, words, `It is one of ${listed(words)}.`);
  report.error('invalid-value', value.place, `"${key}" cannot be ${JSON.stringify(value.text)}`, hint);
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
  const items = listAt(report, map, key, example)?.items.flatMap((item) => {
    if (isScalar(item)) return [item];
    const message = `"${key}" is a list of texts, got ${describeYaml(item)}`;
    report.error('wrong-type', item.place, message, `For example ${example}.`);
    return [];
  });
  return items ?? null;
}

export function isScalar(value: YamlValue): value is YamlScalar {
  return value.kind === 'string' || value.kind === 'number' || value.kind === 'boolean';
}

/** For messages: `got "yes"`. */
export function shown(value: YamlValue): string {
  return value.kind === 'string' ? JSON.stringify(value.text) : describeYaml(value);
}

/** The keys of a policy, in the front matter of a prompt and in a configuration. */
export const POLICY_KEYS: readonly string[] = [
  'allowed_paths',
  'forbidden_paths',
  'forbidden_operations',
  'network',
  'execution',
  'on_prompt',
  'lockfiles',
];

export function checkId(report: Report, { text, place }: YamlScalar, what: string): void {
  if (isId(text)) return;
  const hint = 'Ids begin with a letter, and have letters, digits, _ and - in them.';
  report.error('invalid-id', place, `${JSON.stringify(text)} is not a valid ${what}`, hint);
}

export function isId(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_-]*$/.test(text);
}
