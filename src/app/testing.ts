// `meow test`: finds test files, reads all of them before anything runs, and runs their tests one after the other.

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { segmentMatcher } from '../base/names.ts';
import { type Diagnostic, hasErrors } from '../base/source.ts';
import { ABSENT, tolerate } from '../sys/errors.ts';
import type { TestFailure } from '../testing/failures.ts';
import { endOf, judgeTest } from '../testing/judge.ts';
import { explained, judgeStory, storyOf, storyText } from '../testing/story.ts';
import { readTestFile, type TestFile, type WorkflowTest } from '../testing/test-file.ts';
import type { Death, WorldEnd } from '../testing/world.ts';
import type { CompiledWorkflow } from './compile.ts';
import { answersOf, type CalmRun, type FaultOptions, searchFaults } from './test-faults.ts';
import { type RanTest, runTest, TestedWorkflow, TestError } from './test-run.ts';
import { workflowBeside } from './workflow-beside.ts';
import { type StatusView, statusView } from '../view/status.ts';

export interface TestOptions {
  /** Part of a name, with wildcards; null: all tests. */
  readonly pattern: string | null;
  /** Repeats every test with the engine killed before and after each record. */
  readonly crash: boolean;
  /** Repeats every test in random worlds in which things go wrong. */
  readonly faults: FaultOptions | null;
  /** Writes traces instead of comparing them. */
  readonly update: boolean;
  /** Gets the result of each test, of the run without additional deaths. */
  readonly onRun?: (ran: CompletedRun) => void;
}

export interface CompletedRun {
  readonly found: FoundTests;
  readonly compiled: CompiledWorkflow;
  readonly end: WorldEnd;
}

export interface FoundTests {
  /** Absolute path of the test file. */
  readonly path: string;
  /** Relative to the working directory. */
  readonly file: string;
  readonly content: TestFile;
}

export interface TestResult {
  readonly file: string;
  readonly name: string;
  readonly status: 'passed' | 'failed' | 'error';
  /** How the run ended; null if it could not run. */
  readonly run: string | null;
  readonly virtualMs: number;
  readonly realMs: number;
  readonly records: number;
  readonly failures: readonly TestFailure[];
  /** How many deaths of the engine it survived. */
  readonly deaths: number;
}

const ENDING = '.test.toml';

/** Test files below the paths, which are files or folders. Throws a UsageError for a path that does not exist. */
export function findTestFiles(paths: readonly string[], cwd: string): readonly string[] {
  const found = (paths.length === 0 ? ['.'] : paths).flatMap((path) => {
    const at = resolve(cwd, path);
    const stats = tolerate(['ENOENT', 'ENOTDIR'], null, () => statSync(at));
    if (stats === null)
      throw new UsageError(`there is no file ${path}`, 'name a *.test.toml file, or a folder with some');
    if (stats.isDirectory()) return filesBelow(at);
    if (at.endsWith(ENDING)) return [at];
    throw new UsageError(`${path} is not a test file`, `the tests of a workflow are in NAME${ENDING} beside it`);
  });
  return [...new Set(found)].toSorted();
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const at = join(folder, entry.name);
    if (entry.isDirectory()) return LEFT_OUT.has(entry.name) ? [] : filesBelow(at);
    return entry.isFile() && entry.name.endsWith(ENDING) ? [at] : [];
  });
}

const LEFT_OUT = new Set(['node_modules', '.git', '.meow']);

/** All mistakes of all files are reported; `tests` is empty if there are any. */
export function readTestFiles(
  paths: readonly string[],
  cwd: string,
): { readonly tests: readonly FoundTests[]; readonly diagnostics: readonly Diagnostic[] } {
  const read = paths.map((path) => {
    const file = relative(cwd, path);
    const { file: content, diagnostics } = readTestFile(readFileSync(path, 'utf8'), file);
    return { path, file, content, diagnostics };
  });
  const diagnostics = read.flatMap((each) => each.diagnostics);
  const tests = read.flatMap(({ path, file, content }) => (content === null ? [] : [{ path, file, content }]));
  return { tests: hasErrors(diagnostics) ? [] : tests, diagnostics };
}

/** The workflow of a test file: the one that it names, or the one beside it with its name. */
export function workflowOf({ path, content }: Pick<FoundTests, 'path' | 'content'>): string | null {
  const folder = dirname(path);
  if (content.workflow !== null) return resolve(folder, content.workflow);
  return workflowBeside(path, (each) => tolerate(['ENOENT'], null, () => statSync(each)) !== null);
}

/** Runs the tests of a file that match. Yields each result as soon as it is known. */
export async function* runTests(found: FoundTests, options: TestOptions): AsyncGenerator<TestResult> {
  const { pattern } = options;
  const isWanted = pattern === null ? () => true : segmentMatcher(`*${pattern}*`);
  const tests = found.content.tests.filter(({ name }) => isWanted(name));
  if (tests.length === 0) return;
  const path = workflowOf(found);
  const workflow = path === null ? null : new TestedWorkflow(path);
  for (const test of tests) yield await resultOf(found, workflow, test, options);
}

async function resultOf(
  found: FoundTests,
  workflow: TestedWorkflow | null,
  test: WorkflowTest,
  { crash, faults, update, onRun }: TestOptions,
): Promise<TestResult> {
  const begun = performance.now();
  const common = { file: found.file, name: test.name };
  try {
    if (workflow === null) throw new TestError(`${found.file} has no workflow beside it; name one: workflow = "…"`);
    const judged = await judgeOnce(workflow, found, test, null);
    const { end } = judged;
    onRun?.({ found, compiled: (await workflow.compile(test)).compiled, end });
    const isStoryWanted = judged.failures.length > 0 || test.expect.trace !== null;
    const story = isStoryWanted ? storyOf(end) : [];
    const failures = [
      ...judged.failures.map((failure) => explained(failure, story)),
      ...judgeTrace(found, test, storyText(story), update),
    ];
    const swept =
      crash && failures.length === 0 ? await sweep(workflow, found, test, judged) : { deaths: 0, failures: [] };
    const { answers } = judged;
    const faulty =
      faults !== null && failures.length === 0
        ? await searchFaults(workflow, found, test, faults, { end, answers })
        : [];
    const all = [...failures, ...swept.failures, ...faulty];
    return {
      ...common,
      status: all.length === 0 ? 'passed' : 'failed',
      run: endOf(end),
      virtualMs: end.virtualMs,
      realMs: Math.round(performance.now() - begun),
      records: end.records.length,
      failures: all,
      deaths: swept.deaths,
    };
  } catch (error) {
    if (!(error instanceof TestError)) throw error;
    const failures = [{ expect: 'test', expected: null, got: null, message: error.message }];
    const realMs = Math.round(performance.now() - begun);
    return { ...common, status: 'error', run: null, virtualMs: 0, realMs, records: 0, failures, deaths: 0 };
  }
}

function judgeOnce(
  workflow: TestedWorkflow,
  { path, content }: FoundTests,
  test: WorkflowTest,
  death: Death | null,
): Promise<JudgedRun> {
  return runTest(workflow, test, { testFile: path, death }, (ran: RanTest) => {
    const { end, readFile } = ran;
    const status = statusView(end.state);
    const failures = judgeTest(test, content.claims, { end, status }, readFile);
    return { end, status, failures, answers: answersOf(test, ran) };
  });
}

type JudgedRun = CalmRun & { readonly status: StatusView; readonly failures: readonly TestFailure[] };

function judgeTrace(
  { path }: FoundTests,
  { expect: { trace } }: WorkflowTest,
  story: string,
  update: boolean,
): readonly TestFailure[] {
  if (trace === null) return [];
  const file = resolve(dirname(path), trace);
  const stored = tolerate(ABSENT, null, () => readFileSync(file, 'utf8'));
  const failures = judgeStory(stored, story);
  if (failures.length === 0 || !update) return failures;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, story);
  return [];
}

/** Repeats a test with a death at every record. The run must end in the same way, with the same results. */
async function sweep(
  workflow: TestedWorkflow,
  found: FoundTests,
  test: WorkflowTest,
  calm: Pick<JudgedRun, 'end' | 'status'>,
): Promise<{ readonly deaths: number; readonly failures: readonly TestFailure[] }> {
  let deaths = 0;
  const wanted = resultsOf(calm);
  for (let seq = 1; seq <= calm.end.records.length; seq += 1) {
    for (const when of ['before', 'after'] as const) {
      const judged = await judgeOnce(workflow, found, test, { seq, when });
      const { end, failures } = judged;
      deaths += end.deaths;
      const told = failures.map((each) => ({ ...each, message: `killed ${when} record ${seq}: ${each.message}` }));
      if (told.length > 0) return { deaths, failures: told };
      const different = differenceOf(wanted, resultsOf(judged), isComplete(end));
      if (different !== null) {
        const message = `killed ${when} record ${seq}: ${different}`;
        return { deaths, failures: [{ expect: 'crash', expected: null, got: null, message }] };
      }
    }
  }
  return { deaths, failures: [] };
}

/** Everything happened that can happen. In other runs, how far a step came depends on the order of answers. */
function isComplete({ kind, state }: WorldEnd): boolean {
  return kind === 'waiting' || state.end === 'done';
}

/**
 * What a crash must not change, by step: its result, how often it was attempted, and how often an agent was prompted for it.
 * Every repetition works in a folder of its own.
 */
function resultsOf({ end, status: { steps } }: Pick<JudgedRun, 'end' | 'status'>): ReadonlyMap<string, string> {
  const { state, prompts } = end;
  const folder = dirname(state.request?.cwd ?? '');
  const isCompared = (status: string): boolean => isComplete(end) || status === 'done' || status === 'failed';
  const turns = new Map<string, number>();
  for (const { step } of prompts) turns.set(step, (turns.get(step) ?? 0) + 1);
  const compared = Object.entries(steps).filter(([, { status }]) => isCompared(status));
  return new Map(
    compared.map(([id, { status, outcome, outputs, attempt, error }]) => {
      const result = { status, outcome, outputs, attempt, error: error?.type ?? null, turns: turns.get(id) ?? 0 };
      return [id, JSON.stringify(result).replaceAll(folder, '').replaceAll(COMMIT_ID, 'COMMIT')];
    }),
  );
}

/** Commits of agents contain the time. */
const COMMIT_ID = /\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b/g;

/** `isWhole`: a step that only one of them has is a difference. */
function differenceOf(
  wanted: ReadonlyMap<string, string>,
  got: ReadonlyMap<string, string>,
  isWhole: boolean,
): string | null {
  for (const id of new Set([...wanted.keys(), ...got.keys()])) {
    if (!isWhole && !(wanted.has(id) && got.has(id))) continue;
    const [one = 'absent', other = 'absent'] = [wanted.get(id), got.get(id)];
    if (one === other) continue;
    const length = Math.max(one.length, other.length);
    const at = Array.from({ length }, (_, index) => index).findIndex((index) => one[index] !== other[index]);
    const part = (text: string): string => text.slice(Math.max(0, at - SHOWN_BEFORE), at + SHOWN_AFTER);
    return `step ${id} is …${part(other)}…, and without the death …${part(one)}…`;
  }
  return null;
}

const SHOWN_BEFORE = 60;
const SHOWN_AFTER = 100;
