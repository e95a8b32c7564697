// Reads a `*.test.toml` file: the tests of one workflow, as data. docs/testing.md describes the format.
//
// Keys of `[defaults]` are put under every test: tables are merged, lists are appended behind the test's own. Rules that come
// from the defaults are optional. All problems of a file are reported, and a file with an error has no tests.

import type { Json, JsonMap } from '../base/json.ts';
import { type Diagnostic, hasErrors, makeSource, type Place } from '../base/source.ts';
import type { Claim } from '../ir/claim.ts';
import { type KeyIn, namesOf, type Table } from '../languages/keys.ts';
import { checkKeys, createReport, missing, type Report } from '../languages/report.ts';
import { claimsIn } from '../languages/test-file/claims.ts';
import {
  COMMAND,
  DECISIONS,
  DEFAULTS,
  ENGINE,
  EVENT,
  FLAGS,
  GATE,
  ON,
  STOP,
  TEST,
  TEST_FILE,
} from '../languages/test-file/keys.ts';
import {
  booleanAt,
  countAt,
  durationAt,
  filledStringAt,
  stringAt,
  stringsAt,
  tableAt,
  wordAt,
} from '../languages/toml-fields.ts';
import {
  describeToml,
  type TomlEntry,
  type TomlList,
  type TomlTable,
  tomlToJson,
  type TomlValue,
} from '../languages/toml-tree.ts';
import { readToml } from '../languages/toml.ts';
import { readRule, type Rule } from '../sim/script.ts';
import { type Expectations, readExpectations } from './expectations.ts';
import { tablesIn } from './fields.ts';

export interface TestFile {
  /** The workflow that it names; null: the one beside it with its name. */
  readonly workflow: string | null;
  readonly tests: readonly WorkflowTest[];
  readonly claims: readonly Claim[];
}

export interface WorkflowTest {
  readonly name: string;
  readonly variables: JsonMap;
  /** Copied to the folder that the run works in; null: an empty one. */
  readonly folder: string | null;
  /** Texts by path, written into it. */
  readonly files: Readonly<Record<string, string>>;
  /** Patterns of steps whose commands really run. */
  readonly run: readonly string[];
  /** First moment of the clock. */
  readonly now: number;
  readonly flags: TestFlags;
  readonly recordsMax: number;
  readonly on: readonly (Rule & Ruled)[];
  readonly command: readonly CommandRule[];
  readonly gate: readonly GateRule[];
  readonly event: readonly EventRule[];
  readonly engine: readonly DeathRule[];
  readonly stop: readonly StopRule[];
  readonly expect: Expectations;
}

/** Flags of `meow run`; absent ones have their defaults. */
export interface TestFlags {
  readonly budgetUsd?: number;
  readonly budgetTokens?: number;
  readonly transitionsMax?: number;
  readonly agentsMax?: number;
  readonly depthMax?: number;
  readonly stepsMax?: number;
}

export interface Ruled {
  /** Position in the test's own list; null for a rule of the defaults or of the simulation script. */
  readonly number: number | null;
  /** Need not be used. */
  readonly optional: boolean;
}

export interface CommandRule extends Ruled {
  /** Pattern; null: any. */
  readonly step: string | null;
  readonly script: RegExp | null;
  /** How often each step follows it; null: always. */
  readonly times: number | null;
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly files: Readonly<Record<string, string>>;
  /** Null: it hangs. */
  readonly takesMs: number | null;
}

export interface GateRule extends Ruled {
  readonly gate: string;
  /** How many requests for each gate it decides; null: all. */
  readonly times: number | null;
  readonly afterMs: number;
  readonly decide: 'approve' | 'reject' | 'answer';
  readonly answer: string | null;
  readonly by: string;
  readonly notes: string | null;
}

/** A moment: some time after the start, or when a step has ended. */
export type When = { readonly kind: 'time'; readonly ms: number } | { readonly kind: 'step'; readonly step: string };

export interface EventRule extends Ruled {
  readonly when: When;
  readonly type: string;
  readonly agent: string | null;
  readonly data: JsonMap;
}

export interface DeathRule extends Ruled {
  readonly dies: { readonly kind: 'record'; readonly seq: number } | { readonly kind: 'step'; readonly step: string };
  /** Until the run is resumed. */
  readonly awayMs: number;
}

export interface StopRule extends Ruled {
  readonly when: When;
  readonly force: boolean;
}

/** The tests are null if a diagnostic is an error. `name`: the path as the user wrote it. */
export function readTestFile(
  text: string,
  name: string,
): { readonly file: TestFile | null; readonly diagnostics: readonly Diagnostic[] } {
  const report = createReport(makeSource(name, text));
  const root = readToml(report);
  const file = root === null ? null : readRoot(report, root);
  const diagnostics = report.diagnostics();
  return { file: hasErrors(diagnostics) ? null : file, diagnostics };
}

/** A test as the file has it, defaults included; null if there is none with this name. The file must have no errors. */
export function writtenTest(text: string, test: string): JsonMap | null {
  const report = createReport(makeSource('', text));
  const root = readToml(report);
  if (root === null) return null;
  const defaults = tableAt(report, root, 'defaults', '');
  const found = tablesIn(report, root, 'test', TEST_HINT).find((table) => {
    const name = table.entries.get('name')?.value;
    return name?.kind === 'string' && name.value === test;
  });
  if (found === undefined) return null;
  return tomlToJson(defaults === null ? found : merged(found, defaults)) as JsonMap;
}

const RECORDS_MAX = 10_000;
const START_MS = Date.UTC(2026, 0, 1);
const TEST_HINT = 'Write each test as a table of its own: [[test]], and below it name = "…".';

function readRoot(report: Report, root: TomlTable): TestFile {
  checkKeys(report, root, namesOf(TEST_FILE.root.keys), 'the test file', 'error');
  const defaults = tableAt(report, root, 'defaults', 'Write it as a table: [defaults].');
  const shared: SharedRules = new Map();
  if (defaults !== null) {
    checkKeys(report, defaults, namesOf(DEFAULTS.keys), 'defaults', 'error');
    // Tests that override a value do not read it.
    readSettings(report, defaults, defaults, shared);
  }
  const seen = new Map<string, Place>();
  const tests = tablesIn(report, root, 'test', TEST_HINT).flatMap((table) => {
    const test = readTest(report, table, defaults, shared);
    if (test === null) return [];
    const place = table.entries.get('name')?.value.place ?? table.place;
    const earlier = seen.get(test.name);
    if (earlier !== undefined) {
      const related = [{ message: 'the other test', place: earlier }];
      report.error(
        'duplicate-name',
        place,
        `two tests are named ${JSON.stringify(test.name)}`,
        'Give each test a name of its own.',
        related,
      );
    }
    seen.set(test.name, place);
    return [test];
  });
  return {
    workflow: filledStringAt(report, root, 'workflow', 'Name the file or folder of the workflow.'),
    tests,
    claims: claimsIn(report, root),
  };
}

function readTest(
  report: Report,
  own: TomlTable,
  defaults: TomlTable | null,
  shared: SharedRules,
): WorkflowTest | null {
  checkKeys(report, own, namesOf(TEST.keys), 'a test', 'error');
  const name = filledStringAt(
    report,
    own,
    'name',
    'Say what the test shows: name = "a rejected release deploys nothing".',
  );
  if (!own.entries.has('name')) missing(report, own.place, 'the test', 'name', 'Say what it shows: name = "…".');
  const settings = readSettings(report, own, defaults === null ? own : merged(own, defaults), shared);
  return name === null ? null : { name, ...settings };
}

/** Rules of the defaults that tests without such rules of their own share, by their list: a file may have thousands. */
type SharedRules = Map<TomlValue, readonly Ruled[]>;

/** `table`: its own keys, and those of the defaults. */
function readSettings(
  report: Report,
  own: TomlTable,
  table: TomlTable,
  shared: SharedRules,
): Omit<WorkflowTest, 'name'> {
  const readRules = <R>(key: string, { keys }: Table, read: (rule: TomlTable) => R): readonly (R & Ruled)[] =>
    tablesIn(report, table, key, `Write each rule as a table of its own: [[test.${key}]].`).map((rule, index) => {
      checkKeys(report, rule, namesOf(keys), `a rule of [[test.${key}]]`, 'error');
      const isOwn = listOf(own, key).includes(rule);
      const optional = booleanAt(report, rule, 'optional') ?? !isOwn;
      return { ...read(rule), number: isOwn ? index : null, optional };
    });
  const rules = <R>(key: string, described: Table, read: (rule: TomlTable) => R): readonly (R & Ruled)[] => {
    const list = own.entries.has(key) ? undefined : table.entries.get(key)?.value;
    const known = list === undefined ? undefined : (shared.get(list) as readonly (R & Ruled)[] | undefined);
    const found = known ?? readRules(key, described, read);
    if (list !== undefined) shared.set(list, found);
    return found;
  };
  const expect = tableAt(report, table, 'expect', 'Write it as a table: [test.expect].');
  return {
    variables: mapAt(report, table, 'variables', 'For example variables = { channel = "beta" }.'),
    folder: filledStringAt(report, table, 'folder', 'Name a folder beside the test file.'),
    files: textsAt(report, table, 'files'),
    run: stringsAt(report, table, 'run', 'For example run = ["build", "lint-*"].'),
    now: momentAt(report, table, 'now') ?? START_MS,
    flags: readFlags(report, table),
    recordsMax: countAt(report, table, 'max_records', 1) ?? RECORDS_MAX,
    on: rules('on', ON, (rule) => readRule(report, rule)),
    command: rules('command', COMMAND, (rule) => readCommand(report, rule)),
    gate: rules('gate', GATE, (rule) => readGate(report, rule)),
    event: rules('event', EVENT, (rule) => readEvent(report, rule)),
    engine: rules('engine', ENGINE, (rule) => readDeath(report, rule)),
    stop: rules('stop', STOP, (rule) => readStop(report, rule)),
    expect: readExpectations(report, expect),
  };
}

function readCommand(report: Report, rule: TomlTable): Omit<CommandRule, keyof Ruled> {
  const hangs = booleanAt(report, rule, 'hangs') ?? false;
  const takesMs = durationAt(report, rule, 'takes');
  if (hangs && rule.entries.has('takes')) {
    report.error('invalid-value', rule.place, 'a command that hangs takes no time', 'Leave out takes or hangs.');
  }
  return {
    step: stringAt(report, rule, 'step')?.value ?? null,
    script: expressionAt(report, rule, 'script'),
    times: countAt(report, rule, 'times', 1),
    exit: exitAt(report, rule),
    stdout: stringAt(report, rule, 'stdout')?.value ?? '',
    stderr: stringAt(report, rule, 'stderr')?.value ?? '',
    files: textsAt(report, rule, 'files'),
    takesMs: hangs ? null : (takesMs ?? 0),
  };
}

function exitAt(report: Report, rule: TomlTable): number {
  const status = countAt(report, rule, 'exit', 0) ?? 0;
  if (status <= 255) return status;
  report.error(
    'invalid-value',
    rule.place,
    `exit cannot be ${String(status)}`,
    'Exit codes are numbers from 0 to 255.',
  );
  return 0;
}

function readGate(report: Report, rule: TomlTable): Omit<GateRule, keyof Ruled> {
  const gate = filledStringAt(report, rule, 'gate', 'Name the gate; * is a wildcard.');
  if (!rule.entries.has('gate')) missing(report, rule.place, 'the rule', 'gate', 'Name the gate: gate = "review".');
  if (!rule.entries.has('decide'))
    missing(report, rule.place, 'the rule', 'decide', 'Say decide = "approve", "reject" or "answer".');
  const answer = stringAt(report, rule, 'answer')?.value ?? null;
  const decide = wordAt(report, rule, 'decide', DECISIONS) ?? 'approve';
  if (decide === 'answer' && answer === null && rule.entries.has('decide'))
    missing(report, rule.place, 'the rule', 'answer', 'Write the text: answer = "…".');
  return {
    gate: gate ?? '',
    times: countAt(report, rule, 'times', 1),
    afterMs: durationAt(report, rule, 'after') ?? 0,
    decide,
    answer,
    by: stringAt(report, rule, 'by')?.value ?? 'tester',
    notes: stringAt(report, rule, 'notes')?.value ?? null,
  };
}

function readEvent(report: Report, rule: TomlTable): Omit<EventRule, keyof Ruled> {
  const type = filledStringAt(report, rule, 'type', 'Name the event: type = "tool-completed".');
  if (!rule.entries.has('type')) missing(report, rule.place, 'the rule', 'type', 'Name the event: type = "…".');
  return {
    when: whenOf(report, rule),
    type: type ?? '',
    agent: stringAt(report, rule, 'agent')?.value ?? null,
    data: mapAt(report, rule, 'data', 'For example data = { tool = "Write" }.'),
  };
}

function readDeath(report: Report, rule: TomlTable): Omit<DeathRule, keyof Ruled> {
  const seq = countAt(report, rule, 'dies_at', 1);
  const step = filledStringAt(report, rule, 'dies_after', 'Name a step.');
  const awayMs = durationAt(report, rule, 'away') ?? 0;
  if (rule.entries.has('dies_at') === rule.entries.has('dies_after')) {
    const hint = 'Write dies_at = 7 (a record), or dies_after = "build" (a step).';
    report.error('invalid-value', rule.place, 'the rule must say when the engine dies, once', hint);
  }
  return { dies: step === null ? { kind: 'record', seq: seq ?? 1 } : { kind: 'step', step }, awayMs };
}

function readStop(report: Report, rule: TomlTable): Omit<StopRule, keyof Ruled> {
  return { when: whenOf(report, rule), force: booleanAt(report, rule, 'force') ?? false };
}

function whenOf(report: Report, rule: TomlTable): When {
  const ms = durationAt(report, rule, 'after');
  const step = filledStringAt(report, rule, 'after_step', 'Name a step.');
  if (rule.entries.has('after') && rule.entries.has('after_step')) {
    report.error('invalid-value', rule.place, 'the rule has two moments', 'Write after, or after_step.');
  }
  return step === null ? { kind: 'time', ms: ms ?? 0 } : { kind: 'step', step };
}

const FLAG_FIELDS: Readonly<Record<KeyIn<typeof FLAGS>, keyof TestFlags>> = {
  budget_usd: 'budgetUsd',
  budget_tokens: 'budgetTokens',
  max_transitions: 'transitionsMax',
  max_agents: 'agentsMax',
  max_depth: 'depthMax',
  max_steps: 'stepsMax',
};

function readFlags(report: Report, table: TomlTable): TestFlags {
  const flags = tableAt(report, table, 'flags', 'For example flags = { budget_usd = 1.0 }.');
  if (flags === null) return {};
  checkKeys(report, flags, namesOf(FLAGS.keys), 'flags', 'error');
  const entries = FLAGS.keys.flatMap(({ name }) => {
    const value = flags.entries.get(name)?.value;
    if (value === undefined) return [];
    const isAmount = name === 'budget_usd';
    if ((value.kind === 'integer' || (isAmount && value.kind === 'float')) && value.value >= 0)
      return [[FLAG_FIELDS[name], value.value]];
    report.error(
      'wrong-type',
      value.place,
      `"${name}" must be a number, got ${describeToml(value)}`,
      `For example ${name} = 2.`,
    );
    return [];
  });
  return Object.fromEntries(entries) as TestFlags;
}

/** Regular expression between slashes, or text that must occur. */
function expressionAt(report: Report, table: TomlTable, key: string): RegExp | null {
  const text = stringAt(report, table, key);
  if (text === null) return null;
  const { value, place } = text;
  const isExpression = value.length > 2 && value.startsWith('/') && value.endsWith('/');
  try {
    return new RegExp(
      isExpression ? value.slice(1, -1) : value.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`),
      's',
    );
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    report.error('invalid-pattern', place, error.message, 'Text between slashes is a regular expression.');
    return null;
  }
}

function momentAt(report: Report, table: TomlTable, key: string): number | null {
  const value = table.entries.get(key)?.value;
  if (value === undefined) return null;
  const text = value.kind === 'string' || value.kind === 'moment' ? value.value : null;
  const ms = text === null ? Number.NaN : Date.parse(text);
  if (!Number.isNaN(ms)) return ms;
  report.error(
    'invalid-value',
    value.place,
    `"${key}" must be a moment, got ${describeToml(value)}`,
    'For example now = "2026-03-01T08:00:00Z".',
  );
  return null;
}

function textsAt(report: Report, table: TomlTable, key: string): Readonly<Record<string, string>> {
  const hint = `For example ${key} = { "todo.md" = "one thing\\n" }.`;
  const texts = [...(tableAt(report, table, key, hint)?.entries.values() ?? [])].flatMap(
    ({ key: name, keyPlace, value }) => {
      if (name === '' || name.startsWith('/') || name.split('/').includes('..'))
        report.error('invalid-path', keyPlace, `${JSON.stringify(name)} is not a path in the folder of the run`, hint);
      if (value.kind === 'string') return [[name, value.value] as const];
      report.error(
        'wrong-type',
        value.place,
        `the contents of ${name} must be a string, got ${describeToml(value)}`,
        hint,
      );
      return [];
    },
  );
  return Object.fromEntries(texts);
}

function mapAt(report: Report, table: TomlTable, key: string, hint: string): JsonMap {
  const found = tableAt(report, table, key, hint);
  return found === null ? {} : (tomlToJson(found) as Readonly<Record<string, Json>>);
}

function listOf(table: TomlTable, key: string): TomlList['items'] {
  const value = table.entries.get(key)?.value;
  return value?.kind === 'list' ? value.items : [];
}

function merged(own: TomlTable, below: TomlTable): TomlTable {
  const entries = new Map<string, TomlEntry>(own.entries);
  for (const [key, entry] of below.entries) {
    const mine = entries.get(key);
    entries.set(key, mine === undefined ? entry : { ...mine, value: mergedValue(mine.value, entry.value) });
  }
  return { ...own, entries };
}

function mergedValue(own: TomlValue, below: TomlValue): TomlValue {
  if (own.kind === 'table' && below.kind === 'table') return merged(own, below);
  if (own.kind === 'list' && below.kind === 'list') return { ...own, items: [...own.items, ...below.items] };
  return own;
}
