// `meow test --faults N`: repeats a test in random worlds in which things go wrong, and shrinks what breaks it.
//
//   search/1  The same seed gives the same worlds, whichever other tests run.
//   search/2  A world that did something new is a start for later worlds, which add a fault to it. So two faults in a certain
//             order are found soon if the first of them has a consequence.
//   search/3  A violation is shrunk until no fault can be left out, and printed with the rules that its run used.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';

import { Bug, present } from '../base/errors.ts';
import type { Json, JsonMap } from '../base/json.ts';
import { segmentMatcher } from '../base/names.ts';
import { below, hash, oneOf, type Random, randomFrom } from '../base/random.ts';
import { stepFile, stepFolder } from '../drivers/step-folder.ts';
import { plainText } from '../ir/text.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { namesIn } from '../testing/commands.ts';
import type { TestFailure } from '../testing/failures.ts';
import {
  answerFor,
  drawFault,
  FAULTS_MAX,
  type FaultyTest,
  faultText,
  faultyTest,
  faultyTestText,
  positionsOf,
  RULE_KINDS,
  type WrittenRule,
} from '../testing/faults.ts';
import { endOf, judgeFaultyWorld } from '../testing/judge.ts';
import { readTestFile, type TestFile, type WorkflowTest, writtenTest } from '../testing/test-file.ts';
import type { WorldEnd } from '../testing/world.ts';
import { type RanTest, runTest, type TestedWorkflow } from './test-run.ts';

export interface FaultOptions {
  /** How many worlds. */
  readonly worlds: number;
  readonly seed: number;
}

interface TestsOfFile {
  /** Absolute path of the test file. */
  readonly path: string;
  readonly content: TestFile;
}

/** One world, and what happened in it. */
interface Seen {
  readonly faults: readonly WrittenRule[];
  readonly end: WorldEnd;
  readonly failures: readonly TestFailure[];
  /** Those of the faults that the run met. */
  readonly happened: readonly WrittenRule[];
  /** The rules that were used. */
  readonly used: FaultyTest;
}

/** The run without faults. */
export interface CalmRun {
  readonly end: WorldEnd;
  /** How its real commands ended. */
  readonly answers: readonly WrittenRule[];
}

/** Returns one failure for each path. */
export async function searchFaults(
  workflow: TestedWorkflow,
  found: TestsOfFile,
  test: WorkflowTest,
  { worlds, seed }: FaultOptions,
  calm: CalmRun,
): Promise<readonly TestFailure[]> {
  const written = present(writtenTest(readFileSync(found.path, 'utf8'), test.name), `there is no test ${test.name}`);
  const search = new FaultSearch(workflow, found, withoutReality(written), calm);
  const random = randomFrom(seed ^ hash(test.name));
  const corpus: Pick<Seen, 'faults' | 'end'>[] = [{ faults: [], end: calm.end }];
  const known = new Set(happenings(calm.end));
  const broken = new Map<string, TestFailure>();
  for (let world = 0; world < worlds; world += 1) {
    const faults = drawFaults(random, corpus, written);
    if (faults === null) break;
    const seen = await search.run(faults);
    const fresh = happenings(seen.end).filter((each) => !known.has(each));
    for (const each of fresh) known.add(each);
    // Nothing follows from a fault that ends a run in waiting.
    const isStart = fresh.length > 0 && seen.end.kind === 'ended' && seen.happened.length < FAULTS_MAX;
    if (isStart) corpus.push({ faults: seen.happened, end: seen.end });
    for (const { expect } of seen.failures)
      if (!broken.has(expect)) broken.set(expect, await search.shrunk(seen, expect, seed));
  }
  return [...broken.values()];
}

/** Commands that really ran are answered. */
function withoutReality({ run: _run, ...written }: JsonMap): JsonMap {
  return written;
}

/** Null if nothing can go wrong in the run. */
function drawFaults(
  random: Random,
  corpus: readonly Pick<Seen, 'faults' | 'end'>[],
  written: JsonMap,
): readonly WrittenRule[] | null {
  const parent = oneOf(random, corpus);
  const faults = [...parent.faults];
  const isOneMore = faults.length > 0 || random() < 0.5;
  const more = isOneMore ? 1 : 1 + below(random, FAULTS_MAX);
  for (let count = 0; count < more; count += 1) {
    const fault = drawFault(random, parent.end, written);
    if (fault === null) return null;
    faults.push(fault);
  }
  return faults;
}

/** What a run did, so that a new world can be told from known ones. */
function happenings({ kind, state }: WorldEnd): readonly string[] {
  const steps = [...state.steps.values()].map(({ id, status, attempt, failure }) =>
    [id, status, attempt, failure?.kind ?? ''].join(' '),
  );
  return [`run ${kind} ${state.end ?? ''}`, ...steps];
}

class FaultSearch {
  readonly #workflow: TestedWorkflow;
  readonly #found: TestsOfFile;
  readonly #written: JsonMap;
  readonly #calm: WorldEnd;
  readonly #answers: WrittenRule[];

  constructor(workflow: TestedWorkflow, found: TestsOfFile, written: JsonMap, { end, answers }: CalmRun) {
    this.#workflow = workflow;
    this.#found = found;
    this.#written = written;
    this.#calm = end;
    this.#answers = [...answers];
  }

  /** Runs the test with these faults. Commands that nothing answers succeed. */
  async run(faults: readonly WrittenRule[]): Promise<Seen> {
    for (;;) {
      const tried = faultyTest(this.#written, faults, this.#answers);
      const seen = await this.#runOnce(tried, faults);
      const unanswered = new Set(seen.end.refused.map(({ step }) => step));
      if (unanswered.size === 0) return seen;
      this.#answers.push(...[...unanswered].map(answerFor));
    }
  }

  /** Leaves out faults as long as the same thing breaks. */
  async shrunk(first: Seen, path: string, seed: number): Promise<TestFailure> {
    let smallest = first;
    for (let at = 0; at < smallest.faults.length; ) {
      const fewer = await this.run(smallest.faults.filter((_, index) => index !== at));
      if (fewer.failures.some(({ expect }) => expect === path)) smallest = fewer;
      else at += 1;
    }
    const failure = present(
      smallest.failures.find(({ expect }) => expect === path),
      `${path} does not fail any more`,
    );
    const { faults } = smallest;
    const text = this.#printed(smallest, failure);
    const because = faults.map((fault) => `  ${faultText(fault)}`);
    const lines = [`${failure.message}, with ${countOf(faults.length)} (seed ${seed}):`, ...because, 'paste:', text];
    return { ...failure, message: lines.join('\n').trimEnd(), faults: faults.length, seed, test: text };
  }

  #printed({ used, end, faults }: Seen, failure: TestFailure): string {
    const name = `${plainText(this.#written['name'] ?? '')}, with ${countOf(faults.length)}`;
    const run = end.kind === 'too-long' ? {} : { run: endOf(end) };
    const { claims, workflow } = this.#found.content;
    const number = failure.expect.startsWith('claim.') ? Number(failure.expect.slice('claim.'.length)) : null;
    const claim = number === null ? undefined : claims[number];
    // The claim is not in the test: so that it fails in a file without it as well.
    const promised = claim?.kind === 'never' && typeof failure.got === 'string' ? [failure.got] : [];
    const never = [...new Set([...((used.expect['never'] as readonly Json[] | undefined) ?? []), ...promised])];
    const expect = { ...run, ...used.expect, ...(never.length === 0 ? {} : { never }) };
    return faultyTestText({ head: { ...used.head, name }, rules: used.rules, expect }, { workflow, optional: false });
  }

  async #runOnce(tried: FaultyTest, faults: readonly WrittenRule[]): Promise<Seen> {
    const { path, content } = this.#found;
    const { file, diagnostics } = readTestFile(faultyTestText(tried, { workflow: null, optional: true }), path);
    const [test] = file?.tests ?? [];
    if (test === undefined) throw new Bug(`a faulty test cannot be read: ${diagnostics[0]?.message ?? ''}`);
    try {
      return await runTest(this.#workflow, test, { testFile: path }, ({ end }) => {
        const rules = usedRules(tried.rules, test, end);
        return {
          faults,
          end,
          failures: judgeFaultyWorld(test, content.claims, end),
          happened: faults.filter((fault) => rules.includes(fault)),
          used: { ...tried, rules },
        };
      });
    } catch (error) {
      if (!(error instanceof Bug)) throw error;
      const message = `meow has a bug here: ${error.message}`;
      const failures = [{ expect: 'run', expected: null, got: null, message }];
      return { faults, end: this.#calm, failures, happened: faults, used: tried };
    }
  }
}

function countOf(faults: number): string {
  return faults === 1 ? '1 fault' : `${faults} faults`;
}

function usedRules(rules: readonly WrittenRule[], test: WorkflowTest, { used }: WorldEnd): readonly WrittenRule[] {
  const kept = RULE_KINDS.flatMap((kind) =>
    positionsOf(rules, kind).filter((_, number) => {
      const rule = test[kind][number];
      return rule !== undefined && used.has(rule);
    }),
  );
  return kept.toSorted((one, other) => one - other).flatMap((index) => rules[index] ?? []);
}

/**
 * How the commands ended that `run` allows, as rules. The first of them writes all files that the run has changed:
 * the journal does not say which command wrote which.
 */
export function answersOf(
  { run, files: laidOut, command }: Pick<WorkflowTest, 'run' | 'files' | 'command'>,
  { end: { state, records }, files, cwd }: RanTest,
): readonly WrittenRule[] {
  if (run.length === 0) return [];
  const namesOf = namesIn(state.program);
  const isAllowed = (step: string): boolean => run.some((pattern) => namesOf(step).some(segmentMatcher(pattern)));
  const answered = command.flatMap(({ step }) => (step === null ? [] : [step]));
  const read = (step: string, attempt: number, stream: string): string =>
    tolerate(UNUSABLE, '', () => readFileSync(stepFile(stepFolder(files, step, attempt), stream), 'utf8'));
  const commands = records.flatMap(({ decisions }) =>
    decisions.flatMap((each) =>
      each.kind === 'step-started' && each.effect?.kind === 'command' && isAllowed(each.step) ? [each.step] : [],
    ),
  );
  const answers = [...new Set(commands)].flatMap((id) => {
    const step = state.steps.get(id);
    if (step === undefined || answered.some((pattern) => namesOf(id).some(segmentMatcher(pattern)))) return [];
    const { attempt, failure, outputs } = step;
    const exit = Number(failure?.code ?? outputs['exit_code'] ?? 0);
    const [stdout, stderr] = [read(id, attempt, 'stdout'), read(id, attempt, 'stderr')];
    return [{ kind: 'command' as const, entries: { step: id, exit, stdout, stderr } }];
  });
  const [first, ...others] = answers;
  if (first === undefined) return [];
  const changed = changedFiles(cwd, laidOut);
  return [{ ...first, entries: { ...first.entries, files: changed } }, ...others];
}

/** Texts of the folder that the test did not lay there itself. */
function changedFiles(cwd: string, laidOut: Readonly<Record<string, string>>): JsonMap {
  const filesIn = (folder: string): readonly string[] =>
    readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const at = join(folder, entry.name);
      if (entry.isDirectory()) return LEFT_OUT.has(entry.name) ? [] : filesIn(at);
      return entry.isFile() && statSync(at).size <= FILE_BYTES_MAX ? [at] : [];
    });
  return Object.fromEntries(
    filesIn(cwd).flatMap((at) => {
      const [path, text] = [relative(cwd, at), readFileSync(at, 'utf8')];
      return laidOut[path] === text || text.includes('\0') ? [] : [[path, text]];
    }),
  );
}

const LEFT_OUT = new Set(['.git', '.meow', 'node_modules']);
const FILE_BYTES_MAX = 1_000_000;
