// Reading maps: unknown keys are errors; lists, words, ids, paths and globs with `${…}` have types. A problem is
// reported and yields null, so that reading continues.

import type { Place } from '../../base/source.ts';
import { checkKeys, listed, missing, oneOf, type Report, suggest } from '../report.ts';
import { textAt, wrongType } from '../yaml-fields.ts';
import { isScalar, type YamlList, type YamlMap, type YamlScalar } from '../yaml-tree.ts';

/** Unknown keys and keys without a value. `elsewhere`: hint for a key that belongs elsewhere; null if it is unknown everywhere. */
export function strictKeys(
  report: Report,
  map: YamlMap,
  known: readonly string[],
  what: string,
  elsewhere?: (key: string) => string | null,
): void {
  checkKeys(report, map, known, what, 'error', elsewhere);
  checkValues(report, map);
}

/** An empty value could silently mean nothing: a policy, a list of approvers. */
export function checkValues(report: Report, map: YamlMap): void {
  for (const { key, keyPlace, value } of map.entries.values()) {
    if (value.kind !== 'nothing') continue;
    report.error('missing-value', keyPlace, `"${key}" has no value`, 'Fill it in, or remove the key.');
  }
}

/** If two things have one id, reports the second. */
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

export function neededText(
  report: Report,
  map: YamlMap,
  key: string,
  { place, what, hint }: { readonly place: Place; readonly what: string; readonly hint: string },
): YamlScalar | null {
  return map.entries.has(key) ? textAt(report, map, key) : missing(report, place, what, key, hint);
}

export function wordAt<W extends string>(report: Report, map: YamlMap, key: string, words: readonly W[]): W | null {
  const value = textAt(report, map, key);
  return value === null ? null : oneOf(report, key, value, words);
}

/** A list, not a single value. */
export function listAt(report: Report, map: YamlMap, key: string, example: string): YamlList | null {
  const value = map.entries.get(key)?.value;
  if (value === undefined || value.kind === 'nothing') return null;
  if (value.kind === 'list') return value;
  return wrongType(report, value, `"${key}" must be a list`, `For example ${example}.`);
}

export function textsAt(report: Report, map: YamlMap, key: string, example: string): readonly YamlScalar[] | null {
  const items = listAt(report, map, key, example)?.items.flatMap((item) => {
    if (isScalar(item)) return [item];
    return wrongType(report, item, `"${key}" is a list of texts`, `For example ${example}.`) ?? [];
  });
  return items ?? null;
}

export function checkId(report: Report, { text, place }: YamlScalar, what: string): void {
  if (isId(text)) return;
  const hint = 'Ids begin with a letter, and have letters, digits, _ and - in them.';
  report.error('invalid-id', place, `${JSON.stringify(text)} is not a valid ${what}`, hint);
}

export function isId(text: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_-]*$/.test(text);
}

/** Built-in names of every step and prompt. */
export const RUN_WORDS: readonly string[] = ['run_id', 'run_dir', 'worktree', 'step_id'];

/** Files in the worktree. */
export function globsAt(report: Report, map: YamlMap, key: string, example: string): readonly string[] | null {
  const globs = textsAt(report, map, key, example);
  for (const { text, place } of globs ?? []) checkPath(report, key, text, place);
  return globs?.map(({ text }) => tidyPath(text)) ?? null;
}

/** Artifacts of a validator. They may contain `${…}`, but nothing that makes them absolute. */
export function artifactsAt(report: Report, map: YamlMap): readonly string[] {
  const globs = textsAt(report, map, 'artifacts', 'artifacts: ["harness_report.json", "logs/**"]') ?? [];
  for (const glob of globs) {
    checkWords(report, 'artifacts', glob);
    if (ABSOLUTE_WORD.test(glob.text)) {
      const message = `"artifacts": ${JSON.stringify(glob.text)} is absolute`;
      report.error('invalid-path', glob.place, message, 'Globs are relative to "cwd": set cwd to that folder.');
    } else checkPath(report, 'artifacts', glob.text, glob.place);
  }
  return globs.map(({ text }) => text);
}

const ABSOLUTE_WORD = /^\$\{(?:run_dir|worktree)\}/;

/** Relative to the worktree, unless it starts with a folder of the run. */
export function cwdAt(report: Report, map: YamlMap): string | null {
  const cwd = textAt(report, map, 'cwd');
  if (cwd === null) return null;
  checkWords(report, 'cwd', cwd);
  checkPath(report, 'cwd', cwd.text.replace(ABSOLUTE_WORD, '.'), cwd.place);
  return cwd.text;
}

/** Reports a path that does not stay below its base folder. */
export function checkPath(report: Report, key: string, path: string, place: Place): void {
  const complain = (message: string, hint: string): null =>
    report.error('invalid-path', place, `"${key}": ${message}`, hint);
  const written = JSON.stringify(path);
  if (path.trim() === '') complain('the path is empty', 'Fill it in, or remove it.');
  else if (/^(?:[/~\\]|[A-Za-z]:[/\\])/.test(path))
    complain(`${written} is absolute`, 'Write a relative path, without / or ~ in front.');
  else if (path.split('/').includes('..')) complain(`${written} is outside of its folder`, 'Write it without "..".');
}

/** Every `${…}` must be one of the known names. */
export function checkWords(report: Report, key: string, value: YamlScalar): void {
  for (const { 0: whole, 1: word = '', index } of value.text.matchAll(/\$\{([^}]*)\}?/g)) {
    if (RUN_WORDS.includes(word) && whole.endsWith('}')) continue;
    const known = `Known: ${listed(RUN_WORDS.map((each) => `\${${each}}`))}.`;
    const message = `"${key}": ${whole} is not a known placeholder`;
    const place = within(report, value, whole, index);
    report.error('unknown-word', place, message, () => {
      const meant = suggest(word, RUN_WORDS, known);
      return whole.endsWith('}') || meant === known ? meant : `Close it: ${whole}}.`;
    });
  }
}

/** Position of words in the source, if they appear there literally. */
function within(report: Report, { place, text }: YamlScalar, words: string, at: number): Place {
  const written = report.source.text.slice(place.from, place.to);
  const found = written.indexOf(words, Math.max(0, written.indexOf(text.slice(0, at)) + at));
  const from = found === -1 ? written.indexOf(words) : found;
  return from === -1 ? place : { from: place.from + from, to: place.from + from + words.length };
}

/** A folder may be written with or without a trailing slash. */
export function tidyPath(path: string): string {
  return path.replace(/^(?:\.\/+)+/, '').replace(/\/+$/, '') || '.';
}
