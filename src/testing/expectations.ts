// What a test expects of its run: the table `[test.expect]`, as data.

import type { Json } from '../base/json.ts';
import { namesOf } from '../languages/keys.ts';
import { checkKeys, listed, type Report, suggest } from '../languages/report.ts';
import {
  EXPECT,
  EXPECTED_COST,
  EXPECTED_ERROR,
  EXPECTED_FILE,
  EXPECTED_PROMPT,
  RUN_ENDS,
  STEP_STATUSES,
} from '../languages/test-file/keys.ts';
import { booleanAt, filledStringAt, listAt, stringAt, stringsAt, tableAt, wordAt } from '../languages/toml-fields.ts';
import { describeToml, type TomlTable, tomlToJson, type TomlValue } from '../languages/toml-tree.ts';
import { type Comparison, parseComparison, tablesIn } from './fields.ts';

export type ExpectedEnd = (typeof RUN_ENDS)[number];

export type ExpectedStatus = (typeof STEP_STATUSES)[number];

export interface Expectations {
  readonly run: ExpectedEnd;
  /** By a pattern of step ids. */
  readonly steps: ReadonlyMap<string, ExpectedStatus>;
  /** Outcomes of Conductor's visits, by a pattern. */
  readonly outcomes: ReadonlyMap<string, string>;
  /** By `STEP.OUTPUT`, with a path into a JSON value behind it. */
  readonly outputs: ReadonlyMap<string, Json>;
  readonly error: { readonly step: string | null; readonly type: string | null };
  readonly order: readonly { readonly text: string; readonly before: string; readonly after: string }[];
  /** Patterns of steps that must not start. */
  readonly never: readonly string[];
  readonly visits: ReadonlyMap<string, Compared>;
  readonly prompts: readonly ExpectedPrompt[];
  readonly cost: ReadonlyMap<CostName, Compared>;
  readonly took: Compared | null;
  readonly files: ReadonlyMap<string, ExpectedFile>;
  /** Path of a trace, relative to the test file. */
  readonly trace: string | null;
}

export type CostName = 'usd' | 'tokens' | 'turns';

/** `written`: as in the file. */
export type Compared = Comparison & { readonly written: Json };

export interface ExpectedPrompt {
  readonly step: string;
  readonly contains: string | null;
  readonly lacks: string | null;
}

export interface ExpectedFile {
  readonly absent: boolean;
  readonly contains: string | null;
  readonly lacks: string | null;
  /** The whole text. */
  readonly equals: string | null;
  /** As in the file. */
  readonly written: Json;
}

/** `table`: null if the test has none; then the run must be done. */
export function readExpectations(report: Report, table: TomlTable | null): Expectations {
  const given = table ?? EMPTY;
  checkKeys(report, given, namesOf(EXPECT.keys), '[test.expect]', 'error');
  const error = tableAt(report, given, 'error', 'For example error = { step = "build", type = "timeout" }.');
  if (error !== null) checkKeys(report, error, namesOf(EXPECTED_ERROR.keys), 'error', 'error');
  return {
    run: wordAt(report, given, 'run', RUN_ENDS) ?? 'done',
    steps: entriesAt(report, given, 'steps', (value) => statusIn(report, value)),
    outcomes: entriesAt(report, given, 'outcomes', (value) =>
      textIn(report, value, 'an outcome', 'For example "completed".'),
    ),
    outputs: outputsIn(report, given),
    error: {
      step: error === null ? null : (stringAt(report, error, 'step')?.value ?? null),
      type: error === null ? null : (stringAt(report, error, 'type')?.value ?? null),
    },
    order: orderIn(report, given),
    never: stringsAt(report, given, 'never', 'For example never = ["deploy-prod"].'),
    visits: entriesAt(report, given, 'visits', (value) =>
      comparedIn(report, value, 'number', 'For example "<= 2", or 3.'),
    ),
    prompts: promptsIn(report, given),
    cost: costIn(report, given),
    took: tookIn(report, given),
    files: entriesAt(report, given, 'files', (value) => fileIn(report, value)),
    trace: filledStringAt(report, given, 'trace', 'Name a file beside the test file.'),
  };
}

/** One for all tests: a file may have thousands, and most expect little. */
const NOTHING: ReadonlyMap<never, never> = new Map<never, never>();

const EMPTY: TomlTable = { kind: 'table', place: { from: 0, to: 0 }, entries: new Map() };

function entriesAt<T>(
  report: Report,
  table: TomlTable,
  key: string,
  read: (value: TomlValue) => T | null,
): ReadonlyMap<string, T> {
  const found = tableAt(report, table, key, `Write it as a table: ${key} = { … }.`);
  if (found === null) return NOTHING;
  const entries = [...(found?.entries.values() ?? [])].flatMap(({ key: name, value }) => {
    const one = read(value);
    return one === null ? [] : [[name, one] as const];
  });
  return new Map(entries);
}

/** A value may be null. */
function outputsIn(report: Report, table: TomlTable): Expectations['outputs'] {
  const found = entriesAt(report, table, 'outputs', (value) => ({ json: tomlToJson(value) }));
  return found.size === 0 ? NOTHING : new Map([...found].map(([key, { json }]) => [key, json]));
}

function statusIn(report: Report, value: TomlValue): ExpectedStatus | null {
  const status = STEP_STATUSES.find((each) => value.kind === 'string' && each === value.value);
  if (status !== undefined) return status;
  const written = value.kind === 'string' ? JSON.stringify(value.value) : describeToml(value);
  const hint = suggest(
    value.kind === 'string' ? value.value : '',
    STEP_STATUSES,
    `It is one of ${listed(STEP_STATUSES)}.`,
  );
  report.error('invalid-value', value.place, `a step cannot be ${written}`, hint);
  return null;
}

function textIn(report: Report, value: TomlValue, what: string, hint: string): string | null {
  if (value.kind === 'string') return value.value;
  report.error('wrong-type', value.place, `${what} must be a string, got ${describeToml(value)}`, hint);
  return null;
}

function orderIn(report: Report, table: TomlTable): Expectations['order'] {
  const hint = 'For example order = ["build < deploy"].';
  return (listAt(report, table, 'order', hint)?.items ?? []).flatMap((item) => {
    const [, before, after] =
      (item.kind === 'string' ? /^\s*([^<\s]+)\s*<\s*([^<\s]+)\s*$/.exec(item.value) : null) ?? [];
    if (item.kind === 'string' && before !== undefined && after !== undefined)
      return [{ text: item.value, before, after }];
    report.error('invalid-value', item.place, 'an order must be two patterns of steps with < between them', hint);
    return [];
  });
}

function promptsIn(report: Report, table: TomlTable): readonly ExpectedPrompt[] {
  const hint = 'For example prompts = [{ step = "review", contains = "line 12" }].';
  return tablesIn(report, table, 'prompts', hint).flatMap((item) => {
    checkKeys(report, item, namesOf(EXPECTED_PROMPT.keys), 'a prompt', 'error');
    const step = filledStringAt(report, item, 'step', hint);
    const contains = stringAt(report, item, 'contains')?.value ?? null;
    const lacks = stringAt(report, item, 'lacks')?.value ?? null;
    if (!item.entries.has('step') || (contains === null && lacks === null))
      report.error('missing-key', item.place, 'an expected prompt needs "step", and "contains" or "lacks"', hint);
    return step === null ? [] : [{ step, contains, lacks }];
  });
}

const COSTS = ['usd', 'tokens', 'turns'] as const;

function costIn(report: Report, table: TomlTable): Expectations['cost'] {
  const found = tableAt(report, table, 'cost', 'For example cost = { usd = "<= 2.50" }.');
  if (found === null) return NOTHING;
  checkKeys(report, found, namesOf(EXPECTED_COST.keys), 'cost', 'error');
  return new Map(
    COSTS.flatMap((name) => {
      const value = found.entries.get(name)?.value;
      const compared =
        value === undefined ? null : comparedIn(report, value, 'number', `For example ${name} = "<= 4".`);
      return compared === null ? [] : [[name, compared] as const];
    }),
  );
}

function tookIn(report: Report, table: TomlTable): Compared | null {
  const value = table.entries.get('took')?.value;
  return value === undefined ? null : comparedIn(report, value, 'duration', 'For example took = "< 40h".');
}

function comparedIn(report: Report, value: TomlValue, unit: 'number' | 'duration', hint: string): Compared | null {
  const isNumber = value.kind === 'integer' || value.kind === 'float';
  const text = isNumber || value.kind === 'string' ? String(value.value) : null;
  const comparison = text === null ? null : parseComparison(text, unit);
  if (comparison !== null) return { ...comparison, written: tomlToJson(value) };
  report.error('invalid-value', value.place, `a ${unit}, or a comparison with one, is expected here`, hint);
  return null;
}

function fileIn(report: Report, value: TomlValue): ExpectedFile | null {
  const hint = 'For example { contains = "2 files" }, { absent = true }, or the whole text.';
  const nothing = { absent: false, contains: null, lacks: null, equals: null };
  if (value.kind === 'string') return { ...nothing, equals: value.value, written: value.value };
  if (value.kind !== 'table') {
    report.error('wrong-type', value.place, `a file must be a table or a string, got ${describeToml(value)}`, hint);
    return null;
  }
  checkKeys(report, value, namesOf(EXPECTED_FILE.keys), 'a file', 'error');
  return {
    absent: booleanAt(report, value, 'absent') ?? false,
    contains: stringAt(report, value, 'contains')?.value ?? null,
    lacks: stringAt(report, value, 'lacks')?.value ?? null,
    equals: stringAt(report, value, 'equals')?.value ?? null,
    written: tomlToJson(value),
  };
}
