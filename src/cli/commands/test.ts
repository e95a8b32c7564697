// `meow test`: runs the tests of workflows.

import { randomInt } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { writeTestFrom } from '../../app/test-from-run.ts';
import { TestCoverage, type ShownCoverage } from '../../app/test-coverage.ts';
import {
  type CompletedRun,
  type FoundTests,
  findTestFiles,
  readTestFiles,
  runTests,
  type TestResult,
} from '../../app/testing.ts';
import { findProject } from '../../app/project.ts';
import { stampOf } from '../../app/test-watch.ts';
import { UsageError } from '../../base/errors.ts';
import { sanitize } from '../../base/sanitize.ts';
import { hasErrors } from '../../base/source.ts';
import { formatDuration } from '../../base/time.ts';
import { asUsageError, tolerate, UNUSABLE } from '../../sys/errors.ts';
import { junitXml } from '../../view/junit.ts';
import type { Palette } from '../../view/row.ts';
import { EXIT, isOutputClosed, printJson, printLine, warn } from '../output.ts';
import { paletteFor, printDiagnostics } from '../terminal.ts';

interface TestCommandOptions {
  readonly t?: string;
  readonly from?: string;
  readonly name?: string;
  readonly o?: string;
  readonly crash?: true;
  readonly faults?: number;
  readonly seed?: number;
  readonly update?: true;
  readonly watch?: true;
  readonly junit?: string;
  /** True, a percentage, or a path that follows the flag. */
  readonly coverage?: string | true;
  readonly json?: true;
}

export async function test(written: readonly string[], options: TestCommandOptions): Promise<number> {
  if (options.from !== undefined) return printTestFrom(options.from, options);
  if (options.name !== undefined || options.o !== undefined)
    throw new UsageError('--name and -o are for --from', 'meow test --from RUN --name NAME -o FILE');
  if (options.seed !== undefined && options.faults === undefined)
    throw new UsageError('--seed is for --faults', 'meow test --faults 200 --seed 42');
  endCleanly();
  const { coverage } = options;
  const isPath = typeof coverage === 'string' && !/^\d+(?:\.\d+)?%?$/.test(coverage);
  if (typeof coverage === 'string' && !isPath && Number(coverage.replace('%', '')) > 100)
    throw new UsageError(`--coverage=${coverage} is more than everything`, 'meow test --coverage=80');
  return testPaths(isPath ? [...written, coverage] : written, isPath ? { ...options, coverage: true } : options);
}

async function printTestFrom(run: string, { name, o: file }: TestCommandOptions): Promise<number> {
  const text = await writeTestFrom(run, { name: name ?? null, file: file ?? null });
  if (file === undefined) printLine(text.trimEnd());
  else {
    const path = resolve(findProject().cwd, file);
    try {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text, { flag: 'wx' });
    } catch (error) {
      throw asUsageError(error, `write ${file}`, path);
    }
    printLine(`wrote ${file}`);
  }
  return EXIT.done;
}

/** Ctrl-C leaves nothing behind: temporary folders are removed at the exit. */
function endCleanly(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
}

async function testPaths(paths: readonly string[], options: TestCommandOptions): Promise<number> {
  const { cwd } = findProject();
  const files = findTestFiles(paths, cwd);
  const { tests, diagnostics } = readTestFiles(files, cwd);
  printDiagnostics(diagnostics, paletteFor(process.stderr));
  if (hasErrors(diagnostics) && !options.watch) return EXIT.usage;
  const exit = await runAll(tests, options, cwd);
  return options.watch ? watch(paths, options, cwd, tests) : exit;
}

async function runAll(tests: readonly FoundTests[], options: TestCommandOptions, cwd: string): Promise<number> {
  const results: TestResult[] = [];
  const [crash, update] = [options.crash === true, options.update === true];
  const seed = options.faults === undefined ? null : (options.seed ?? randomInt(SEED_MAX));
  const faults = options.faults === undefined || seed === null ? null : { worlds: options.faults, seed };
  const coverage = options.coverage === undefined ? null : new TestCoverage(cwd);
  const onRun = (ran: CompletedRun): void => coverage?.add(ran);
  for (const found of tests) {
    for await (const result of runTests(found, { pattern: options.t ?? null, crash, faults, update, onRun })) {
      results.push(result);
      if (options.json) printJson(resultJson(result, crash));
      else for (const line of resultLines(result, paletteFor(process.stdout))) printLine(line);
    }
  }
  if (options.junit !== undefined) writeJunit(resolve(cwd, options.junit), options.junit, tests, results);
  const [passed, failed, errors] = (['passed', 'failed', 'error'] as const).map(
    (wanted) => results.filter(({ status }) => status === wanted).length,
  );
  const covered = coverage?.result() ?? null;
  const wanted = typeof options.coverage === 'string' ? Number(options.coverage.replace('%', '')) : 0;
  const isTooLittle = covered !== null && covered.percent < wanted;
  const exit = results.length === 0 || passed !== results.length || isTooLittle ? EXIT.failed : EXIT.done;
  const deaths = results.reduce((sum, result) => sum + result.deaths, 0);
  if (options.json) {
    const died = crash ? { deaths } : {};
    const share = covered === null ? null : { steps: covered.steps, routes: covered.routes };
    printJson({ kind: 'tests-ended', passed, failed, errors, exit, seed, coverage: share, ...died });
  } else if (results.length === 0) {
    warn('meow: there are no tests: write NAME.test.toml beside a workflow (meow help test)');
  } else {
    const parts = [
      `${passed ?? 0} passed`,
      `${failed ?? 0} failed`,
      ...(errors === 0 ? [] : [`${errors} with errors`]),
    ];
    const survived = crash ? `; survived ${deaths} deaths of the engine` : '';
    const worlds = faults === null ? '' : `; ${faults.worlds} faulty worlds for each test, seed ${faults.seed}`;
    printLine(`${parts.join(', ')}${survived}${worlds}`);
    if (covered !== null) for (const line of coverageLines(covered, isTooLittle ? wanted : null)) printLine(line);
  }
  return exit;
}

/** `wanted`: the percentage that was not reached; null if there is none. */
function coverageLines({ steps, routes, percent, missing }: ShownCoverage, wanted: number | null): readonly string[] {
  const share = `${Math.floor(percent)}%${wanted === null ? '' : `, and ${wanted}% is required`}`;
  return [
    `coverage: ${steps.join(' of ')} steps, ${routes.join(' of ')} routes (${share})`,
    ...missing.map((line) => `  not reached: ${sanitize(line)}`),
  ];
}

/** Seeds that are drawn are short enough to be typed. */
const SEED_MAX = 1_000_000_000;

const WATCH_MS = 300;

/** Repeats the tests of each file when it, its workflow or something that they use changes. Ctrl-C ends it. */
async function watch(
  paths: readonly string[],
  options: TestCommandOptions,
  cwd: string,
  first: readonly FoundTests[],
): Promise<number> {
  const stamps = new Map<string, string>();
  for (const found of first) stamps.set(found.path, await stampOf(found));
  let complaint = '';
  while (!isOutputClosed()) {
    await sleep(WATCH_MS);
    const { tests, diagnostics } = readTestFiles(
      tolerate('any', [], () => findTestFiles(paths, cwd)),
      cwd,
    );
    const told = JSON.stringify(diagnostics);
    if (told !== complaint) printDiagnostics(diagnostics, paletteFor(process.stderr));
    complaint = told;
    const changed: FoundTests[] = [];
    for (const found of tests) {
      const stamp = await stampOf(found);
      if (stamps.get(found.path) !== stamp) changed.push(found);
      stamps.set(found.path, stamp);
    }
    if (changed.length > 0) await runAll(changed, options, cwd);
  }
  return EXIT.done;
}

function writeJunit(path: string, named: string, tests: readonly FoundTests[], results: readonly TestResult[]): void {
  const suites = tests.map(({ file }) => ({
    name: file,
    cases: results.flatMap(({ file: of, name, status, realMs, failures }) =>
      of === file ? [{ name, status, ms: realMs, messages: failures.map(({ message }) => message) }] : [],
    ),
  }));
  const written = tolerate([...UNUSABLE, 'EEXIST'], false, () => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, junitXml(suites));
    return true;
  });
  if (!written) throw new UsageError(`cannot write ${named}`, 'name another file after --junit');
}

function resultJson(result: TestResult, crash: boolean): object {
  const { file, name, status, run, virtualMs, realMs, records, failures, deaths } = result;
  const times = { virtual_ms: virtualMs, real_ms: realMs };
  return { kind: 'test', file, name, status, run, ...times, records, failures, ...(crash ? { deaths } : {}) };
}

function resultLines(result: TestResult, palette: Palette): readonly string[] {
  const { file, name, status, failures, virtualMs, deaths } = result;
  const mark = status === 'passed' ? palette.green('✓') : palette.red('✗');
  const survived = deaths === 0 ? '' : `, survived ${deaths} deaths`;
  const took = palette.dim(`(${formatDuration(virtualMs)}${survived})`);
  const details = failures.flatMap(({ message }) => message.split('\n').map((line) => `    ${sanitize(line)}`));
  return [`${mark} ${sanitize(file)} › ${sanitize(name)} ${took}`, ...details];
}
