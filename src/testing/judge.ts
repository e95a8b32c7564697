// Compares what happened in a test with what it expects. Pure: every broken expectation is a failure of its own, with its path
// in the test file.

import { isDeepStrictEqual } from 'node:util';

import { isJsonMap, type Json, own } from '../base/json.ts';
import { segmentMatcher } from '../base/names.ts';
import { exactDuration } from '../base/time.ts';
import type { Claim } from '../ir/claim.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { StatusView } from '../view/status.ts';
import { judgeClaims } from './claims.ts';
import { namesIn, type StepNames } from './commands.ts';
import type { Compared, ExpectedFile, ExpectedPrompt, Expectations } from './expectations.ts';
import type { TestFailure } from './failures.ts';
import { holds } from './fields.ts';
import { judgeNames } from './known-steps.ts';
import type { Ruled, WorkflowTest } from './test-file.ts';
import { endedSteps, type WorldEnd } from './world.ts';

/** Reads a file of the folder in which the run worked; null if it does not exist. */
export type ReadFile = (path: string) => string | null;

/** `status`: of the run at its end. */
export function judgeTest(
  test: WorkflowTest,
  claims: readonly Claim[],
  { end, status }: { readonly end: WorldEnd; readonly status: StatusView },
  readFile: ReadFile,
): readonly TestFailure[] {
  const { expect } = test;
  const judged = [
    ...judgeCommands(end),
    ...judgeRun(expect, end, status),
    ...judgeSteps(expect, status),
    ...judgeOutputs(expect, status),
    ...judgeError(expect, status),
    ...judgeHistory(expect, historyOf(end.records), namesIn(end.state.program)),
    ...judgeVisits(expect, status),
    ...expect.prompts.flatMap((prompt, index) => judgePrompt(prompt, index, end)),
    ...judgeCost(expect, end),
    ...judgeTook(expect, end),
    ...[...expect.files].flatMap(([path, file]) => judgeFile(path, file, readFile(path))),
    ...judgeClaims(claims, end),
    ...judgeRules(test, end),
    ...(end.kind === 'too-long' ? [tooLong(test, end)] : []),
  ];
  return withUnknownNames(judged, judgeNames(test, claims, end));
}

/** What fails because a name is unknown says so, and is no second failure. */
function withUnknownNames(judged: readonly TestFailure[], unknown: readonly TestFailure[]): readonly TestFailure[] {
  const problems = new Map(unknown.map(({ expect: path, message }) => [path, message]));
  const paths = new Set(judged.map(({ expect: path }) => path));
  return [
    ...judged.map((failure) => {
      const problem = problems.get(failure.expect);
      return problem === undefined ? failure : { ...failure, message: `${failure.message}: ${problem}` };
    }),
    ...unknown.filter(({ expect: path }) => !paths.has(path)),
  ];
}

/** What must hold in faulty worlds: `order`, `never`, claims, and that the run ends or waits. */
export function judgeFaultyWorld(
  { expect, recordsMax }: Pick<WorkflowTest, 'expect' | 'recordsMax'>,
  claims: readonly Claim[],
  end: WorldEnd,
): readonly TestFailure[] {
  const isEndless = end.kind === 'too-long';
  const why = `the run neither ended nor waits: it has more than ${recordsMax} records`;
  // A fault may stop what the claim assumes to answer.
  const isJudged = (index: number): boolean => claims[index]?.kind !== 'ends' || isEndless;
  return [
    ...judgeHistory(expect, historyOf(end.records), namesIn(end.state.program)),
    ...judgeClaims(claims, end).filter((failure) => isJudged(claimNumber(failure))),
    ...(isEndless ? [failureAt('run', null, endOf(end), why)] : []),
  ];
}

function claimNumber({ expect }: TestFailure): number {
  return Number(expect.replace('claim.', ''));
}

/** How the run ended, in the words of a test. */
export function endOf({ kind, state }: Pick<WorldEnd, 'kind' | 'state'>): string {
  return kind === 'ended' ? (state.end ?? 'running') : kind === 'waiting' ? 'waiting' : 'running';
}

function failureAt(expect: string, expected: Json, got: Json, message: string): TestFailure {
  return { expect, expected, got, message };
}

function judgeCommands({ refused }: WorldEnd): readonly TestFailure[] {
  const byStep = new Map(refused.map((refusal) => [refusal.step, refusal]));
  return [...byStep.values()].map(({ step, script }) => {
    const shown = script.length > SCRIPT_MAX ? `${script.slice(0, SCRIPT_MAX)}…` : script;
    const rule = `[[test.command]]\nstep = ${JSON.stringify(step)}\nexit = 0`;
    const message = `no rule answers the command of step ${step}, and run does not allow it:\n  ${shown}\nadd, for example:\n${rule}`;
    return failureAt('command', null, step, message);
  });
}

const SCRIPT_MAX = 200;

function judgeRun({ run }: Expectations, end: WorldEnd, { error }: StatusView): readonly TestFailure[] {
  const got = endOf(end);
  if (got === run || end.kind === 'too-long') return [];
  const why =
    error === null
      ? ''
      : `: ${error.step === null ? '' : `step ${error.step} failed (${error.type ?? ''}): `}${error.message}`;
  return [failureAt('run', run, got, `the run is ${got}, expected ${run}${got === 'failed' ? why : ''}`)];
}

function judgeSteps({ steps, outcomes }: Expectations, status: StatusView): readonly TestFailure[] {
  return [
    ...[...steps].flatMap(([pattern, expected]) =>
      judgeMatches(status, 'steps', pattern, expected, (step) => step.status),
    ),
    ...[...outcomes].flatMap(([pattern, expected]) =>
      judgeMatches(status, 'outcomes', pattern, expected, (step) => step.outcome),
    ),
  ];
}

function judgeMatches(
  { steps }: StatusView,
  key: 'steps' | 'outcomes',
  pattern: string,
  expected: string,
  valueOf: (step: StatusView['steps'][string]) => string | null,
): readonly TestFailure[] {
  const isMeant = segmentMatcher(pattern);
  const matching = Object.entries(steps).filter(([id]) => isMeant(id));
  const path = `${key}.${pattern}`;
  if (matching.length === 0)
    return [failureAt(path, expected, null, `no step ${pattern} exists, expected ${expected}`)];
  const wrong = matching.find(([, step]) => valueOf(step) !== expected);
  if (wrong === undefined) return [];
  const got = valueOf(wrong[1]);
  return [failureAt(path, expected, got, `${wrong[0]} is ${got ?? 'without an outcome'}, expected ${expected}`)];
}

function judgeOutputs({ outputs }: Expectations, { steps }: StatusView): readonly TestFailure[] {
  return [...outputs].flatMap(([key, expected]) => {
    const got = outputAt(steps, key);
    if (isDeepStrictEqual(got ?? null, expected)) return [];
    const shown = got === undefined ? 'does not exist' : `is ${JSON.stringify(got)}`;
    return [
      failureAt(
        `outputs.${key}`,
        expected,
        got ?? null,
        `output ${key} ${shown}, expected ${JSON.stringify(expected)}`,
      ),
    ];
  });
}

/** `STEP.OUTPUT.PART`: ids of steps may have dots, so the longest id counts that has such an output. */
function outputAt(steps: StatusView['steps'], key: string): Json | undefined {
  const parts = key.split('.');
  for (let length = parts.length - 1; length > 0; length -= 1) {
    const step = own(steps, parts.slice(0, length).join('.'));
    if (step === undefined) continue;
    const value = parts.slice(length).reduce<Json | undefined>((at, part) => partOf(at, part), step.outputs);
    if (value !== undefined) return value;
  }
  return undefined;
}

function partOf(value: Json | undefined, part: string): Json | undefined {
  if (Array.isArray(value)) return (value as readonly Json[])[Number(part)];
  return isJsonMap(value) ? own(value, part) : undefined;
}

function judgeError({ error }: Expectations, status: StatusView): readonly TestFailure[] {
  return (['step', 'type'] as const).flatMap((key) => {
    const [expected, got] = [error[key], status.error?.[key] ?? null];
    if (expected === null || expected === got) return [];
    return [
      failureAt(`error.${key}`, expected, got, `the ${key} of the error is ${got ?? 'none'}, expected ${expected}`),
    ];
  });
}

export interface StepHistory {
  readonly started: readonly { readonly step: string; readonly seq: number }[];
  readonly ended: readonly { readonly step: string; readonly seq: number }[];
}

/** When steps started and ended, by the numbers of their records. */
function historyOf(records: readonly JournalRecord[]): StepHistory {
  const started = records.flatMap(({ seq, decisions }) =>
    decisions.flatMap((each) => (each.kind === 'step-started' ? [{ step: each.step, seq }] : [])),
  );
  const ended = records.flatMap((record) => endedSteps(record).map((step) => ({ step, seq: record.seq })));
  return { started, ended };
}

/** `order` and `never`: what holds in every world. */
export function judgeHistory(
  { order, never }: Pick<Expectations, 'order' | 'never'>,
  { started, ended }: StepHistory,
  namesOf: StepNames,
): readonly TestFailure[] {
  const matching = (list: StepHistory['started'], pattern: string): StepHistory['started'] =>
    list.filter(({ step }) => namesOf(step).some(segmentMatcher(pattern)));
  return [
    ...order.flatMap(({ text, before, after }, index) => {
      const first = Math.min(...matching(started, after).map(({ seq }) => seq));
      if (first === Number.POSITIVE_INFINITY) return [];
      const begun = matching(started, before);
      const over = matching(ended, before);
      const lasts = new Map(over.map(({ step, seq }) => [step, seq]));
      const late = begun.find(({ step }) => (lasts.get(step) ?? Number.POSITIVE_INFINITY) > first);
      if (over.length > 0 && late === undefined) return [];
      const why = over.length === 0 ? `no ${before} has ended` : `${late?.step ?? before} had not ended`;
      return [failureAt(`order.${index}`, text, null, `${after} started when ${why}, expected ${text}`)];
    }),
    ...never.flatMap((pattern, index) => {
      const [found] = matching(started, pattern);
      if (found === undefined) return [];
      return [failureAt(`never.${index}`, pattern, found.step, `${found.step} started, expected never`)];
    }),
  ];
}

function judgeVisits({ visits }: Expectations, { steps }: StatusView): readonly TestFailure[] {
  return [...visits].flatMap(([pattern, expected]) => {
    const got = Object.keys(steps).filter(segmentMatcher(pattern)).length;
    return judgeAmount(`visits.${pattern}`, expected, got, `steps ${pattern}: ${got}`);
  });
}

function judgeAmount(path: string, expected: Compared, got: number, sentence: string): readonly TestFailure[] {
  return holds(expected, got)
    ? []
    : [failureAt(path, expected.written, got, `${sentence}, expected ${textOf(expected)}`)];
}

function textOf({ written }: Compared): string {
  return typeof written === 'string' ? written : JSON.stringify(written);
}

function judgePrompt(
  { step, contains, lacks }: ExpectedPrompt,
  index: number,
  { prompts, state }: WorldEnd,
): readonly TestFailure[] {
  const namesOf = namesIn(state.program);
  const given = prompts.filter((prompt) => namesOf(prompt.step).some(segmentMatcher(step)));
  const fail = (key: string, text: string, got: string | null, message: string): readonly TestFailure[] => [
    failureAt(`prompts.${index}.${key}`, text, got, message),
  ];
  const [key, text] = contains === null ? ['lacks', lacks ?? ''] : ['contains', contains];
  if (given.length === 0) return fail(key, text, null, `no step ${step} was given a prompt`);
  const without = contains === null ? undefined : given.find(({ prompt }) => !prompt.includes(contains));
  const having = lacks === null ? undefined : given.find(({ prompt }) => prompt.includes(lacks));
  return [
    ...(without === undefined || contains === null
      ? []
      : fail(
          'contains',
          contains,
          without.prompt,
          `the prompt of ${without.step} does not contain ${JSON.stringify(contains)}:\n${without.prompt}`,
        )),
    ...(having === undefined || lacks === null
      ? []
      : fail(
          'lacks',
          lacks,
          having.prompt,
          `the prompt of ${having.step} contains ${JSON.stringify(lacks)}:\n${having.prompt}`,
        )),
  ];
}

function judgeCost({ cost }: Expectations, { state, prompts }: WorldEnd): readonly TestFailure[] {
  const got = { usd: state.cost.usd, tokens: state.cost.tokens, turns: prompts.length };
  return [...cost].flatMap(([name, expected]) =>
    judgeAmount(`cost.${name}`, expected, got[name], `the run used ${got[name]} ${name}`),
  );
}

function judgeTook({ took }: Expectations, { virtualMs }: WorldEnd): readonly TestFailure[] {
  if (took === null || holds(took, virtualMs)) return [];
  const text = exactDuration(virtualMs);
  return [failureAt('took', took.written, text, `the run took ${text}, expected ${textOf(took)}`)];
}

function judgeFile(
  path: string,
  { absent, contains, lacks, equals, written }: ExpectedFile,
  text: string | null,
): readonly TestFailure[] {
  const fail = (message: string): readonly TestFailure[] => [failureAt(`files.${path}`, written, text, message)];
  if (absent) return text === null ? [] : fail(`${path} exists, expected absent`);
  if (text === null) return fail(`${path} does not exist`);
  if (contains !== null && !text.includes(contains))
    return fail(`${path} does not contain ${JSON.stringify(contains)}`);
  if (lacks !== null && text.includes(lacks)) return fail(`${path} contains ${JSON.stringify(lacks)}`);
  if (equals !== null && text !== equals) return fail(`${path} has another content than expected`);
  return [];
}

const RULES = ['on', 'command', 'gate', 'event', 'engine', 'stop'] as const;

function judgeRules(test: WorkflowTest, { used, state }: WorldEnd): readonly TestFailure[] {
  const gates = [...state.gates.keys()];
  const asked = gates.length === 0 ? 'no gate was asked' : `the gates that were asked: ${gates.join(', ')}`;
  return RULES.flatMap((kind) =>
    test[kind].flatMap((rule: Ruled) => {
      if (rule.optional || rule.number === null || used.has(rule)) return [];
      const path = `${kind}.${rule.number}`;
      const why = kind === 'gate' ? ` (${asked})` : '';
      const message = `the rule [[test.${kind}]] number ${rule.number + 1} was never used${why}; remove it, or add optional = true`;
      return [failureAt(path, null, null, message)];
    }),
  );
}

function tooLong({ recordsMax }: WorkflowTest, { records }: WorldEnd): TestFailure {
  const message = `the run has more than ${recordsMax} records and was ended; a loop may have no end; if not, raise max_records`;
  return failureAt('max_records', recordsMax, records.length, message);
}
