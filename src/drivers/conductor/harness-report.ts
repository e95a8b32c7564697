// Harness reports: results of a generated test suite, as JSON.
//
// harness/1  An artifact is a report if its name contains `harness_report` and ends with `.json`, or if it is a JSON
//            file with `suite_id`, `cases` and `summary`, or with `proposed_goldens`. So renaming a report does not
//            hide its goldens.
// harness/2  A report must have the form: `suite_id` a string, `cases` a list of objects, `summary` an object;
//            `proposed_goldens`, if present, a list of paths.
// harness/3  Proposed goldens count, whatever else is wrong with the report.
// harness/4  Everything else is left to the evaluation: nothing here is read as a verdict.

import { isUtf8 } from 'node:buffer';

import { isJsonMap, type Json, jsonErrorPosition, type JsonMap, own, parseJson } from '../../base/json.ts';

/** Part of a validator's outputs. */
export type Reading = {
  /** Null if the file is not a report (harness/1) or has the wrong form. */
  readonly report: HarnessReport | null;
  /** What is wrong with its form: a sentence, without the file's name. */
  readonly problem: string | null;
  readonly proposedGoldens: readonly string[];
};

type HarnessReport = {
  readonly suiteId: string;
  readonly summary: JsonMap;
  /** Number of cases by status; cases without a status count as `unknown`. */
  readonly statuses: Readonly<Record<string, number>>;
};

/** Whether a file of this name must be read. */
export function mayBeReport(name: string): boolean {
  return /\.json$/i.test(name);
}

export function readReport(name: string, bytes: Uint8Array): Reading {
  const named = /(?:^|\/)[^/]*harness_report[^/]*\.json$/i.test(name);
  const wrong = (why: string): string => `is not a harness report: ${why}`;
  const none = (why: string): Reading => ({ report: null, problem: named ? wrong(why) : null, proposedGoldens: [] });
  if (!isUtf8(bytes)) return none('it is not UTF-8');
  const text = new TextDecoder().decode(bytes);
  const value = parseJson(text);
  const brokenAt = value === null ? jsonErrorPosition(text) : null;
  if (brokenAt !== null) {
    const before = text.slice(0, brokenAt).split('\n');
    return none(`it is not JSON from line ${before.length}, column ${(before.at(-1) ?? '').length + 1} on`);
  }
  if (!isJsonMap(value) || (!named && !isMarked(value))) return none('it is not an object');
  const { paths: proposedGoldens, fits } = goldensOf(value);
  const faults = [...faultsOf(value), ...(fits ? [] : ['proposed_goldens is not a list of paths'])];
  if (faults.length > 0) return { report: null, problem: wrong(faults.join('; ')), proposedGoldens };
  return { report: reportOf(value), problem: null, proposedGoldens };
}

function isMarked(value: JsonMap): boolean {
  const has = (key: string): boolean => Object.hasOwn(value, key);
  return has('proposed_goldens') || ['suite_id', 'cases', 'summary'].every(has);
}

function faultsOf(value: JsonMap): readonly string[] {
  const expected: readonly (readonly [string, string, (found: Json) => boolean])[] = [
    ['suite_id', 'a string', (found) => typeof found === 'string'],
    ['cases', 'a list of objects', (found) => Array.isArray(found) && found.every((one: Json) => isJsonMap(one))],
    ['summary', 'an object', (found) => isJsonMap(found)],
  ];
  return expected.flatMap(([key, form, fits]) => {
    const found = own(value, key);
    if (found === undefined) return [`${key} is missing`];
    return fits(found) ? [] : [`${key} is not ${form}`];
  });
}

function goldensOf(value: JsonMap): { readonly paths: readonly string[]; readonly fits: boolean } {
  const found = own(value, 'proposed_goldens') ?? null;
  if (found === null) return { paths: [], fits: true };
  const all: readonly Json[] = Array.isArray(found) ? found : [found];
  const paths = all.filter((one): one is string => typeof one === 'string' && one !== '');
  return { paths, fits: Array.isArray(found) && paths.length === all.length };
}

/** The value has the right form. */
function reportOf(value: JsonMap): HarnessReport {
  const cases = value['cases'] as readonly JsonMap[];
  const statuses = new Map<string, number>();
  for (const { status } of cases) {
    const word = typeof status === 'string' ? status : 'unknown';
    statuses.set(word, (statuses.get(word) ?? 0) + 1);
  }
  const { suite_id: suiteId, summary } = value as { readonly suite_id: string; readonly summary: JsonMap };
  return { suiteId, summary, statuses: Object.fromEntries(statuses) };
}
