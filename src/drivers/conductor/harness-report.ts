// Harness reports: results of a generated test suite, as JSON.
//
// harness/1  An artifact is a report if its name contains `harness_report` and ends with `.json`, or if it is a JSON
//            file with `suite_id`, `cases` and `summary`, or with `proposed_goldens`. So renaming a report does not
//            hide its goldens.
// harness/2  A report must have the form: `suite_id` a string, `cases` a list of objects, `summary` an object;
//            `proposed_goldens`, if present, a list of paths.
// harness/3  Proposed goldens count, whatever else is wrong with the report.
// harness/4  Everything else is left to the evaluation: nothing here is read as a verdict.

import { isJsonMap } from '../../base/json.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import { jsonErrorPosition } from '../json-error-position.ts';

export interface HarnessReport {
  readonly suiteId: string;
  readonly summary: JsonMap;
  /** Number of cases by status; cases without a status count as `unknown`. */
  readonly statuses: Readonly<Record<string, number>>;
}

export interface Reading {
  /** Null if the file is not a report (harness/1) or has the wrong form. */
  readonly report: HarnessReport | null;
  /** What is wrong with its form: a sentence, without the file's name. */
  readonly problem: string | null;
  readonly proposedGoldens: readonly string[];
}

/** Whether a file of this name must be read. */
export function mayBeReport(name: string): boolean {
  return /\.json$/i.test(name);
}

export function isNamedReport(name: string): boolean {
  return /(?:^|\/)[^/]*harness_report[^/]*\.json$/i.test(name);
}

export function readReport(name: string, bytes: Uint8Array): Reading {
  const named = isNamedReport(name);
  const none = (why: string): Reading => ({
    report: null,
    problem: named ? `is not a harness report: ${why}` : null,
    proposedGoldens: [],
  });
  let text: string;
  let value: Json;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return none('it is not UTF-8');
  }
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return none(`it is not JSON from ${placeIn(text)} on`);
  }
  if (!isJsonMap(value) || (!named && !isMarked(value))) return none('it is not an object');
  const faults = faultsOf(value);
  return {
    report: faults.length === 0 ? reportOf(value) : null,
    problem: faults.length === 0 ? null : `is not a harness report: ${faults.join('; ')}`,
    proposedGoldens: goldensOf(value).paths,
  };
}

function isMarked(value: JsonMap): boolean {
  const has = (key: string): boolean => Object.hasOwn(value, key);
  return has('proposed_goldens') || (has('suite_id') && has('cases') && has('summary'));
}

function faultsOf(value: JsonMap): readonly string[] {
  const expected: readonly (readonly [string, string, (found: Json) => boolean])[] = [
    ['suite_id', 'a string', (found) => typeof found === 'string'],
    ['cases', 'a list of objects', (found) => Array.isArray(found) && found.every((one: Json) => isJsonMap(one))],
    ['summary', 'an object', (found) => isJsonMap(found)],
  ];
  const faults = expected.flatMap(([key, form, fits]) => {
    const found = Object.hasOwn(value, key) ? value[key] : undefined;
    if (found === undefined) return [`${key} is missing`];
    return fits(found) ? [] : [`${key} is not ${form}`];
  });
  return goldensOf(value).fits ? faults : [...faults, 'proposed_goldens is not a list of paths'];
}

function goldensOf(value: JsonMap): { readonly paths: readonly string[]; readonly fits: boolean } {
  const found = Object.hasOwn(value, 'proposed_goldens') ? (value['proposed_goldens'] ?? null) : null;
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
  return {
    suiteId: value['suite_id'] as string,
    summary: value['summary'] as JsonMap,
    statuses: Object.fromEntries(statuses),
  };
}

/** `line 3, column 7`. */
function placeIn(text: string): string {
  const before = text.slice(0, jsonErrorPosition(text) ?? 0).split('\n');
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
}
