// Runs one test of a workflow: compiles the workflow, makes a temporary folder, lets the run live in a simulated world, and
// judges the result. Nothing outside of the temporary folder is written.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import { once } from '../base/once.ts';
import { type Diagnostic, hasErrors } from '../base/source.ts';
import type { RunFiles } from '../engine/ports.ts';
import { conductorOf, type Program, type RunRequest } from '../ir/program.ts';
import { type Rule, readSimScript } from '../sim/script.ts';
import { localRunFiles } from '../stores/local-run-files.ts';
import type { Ruled, WorkflowTest } from '../testing/test-file.ts';
import { type Death, World, type WorldEnd } from '../testing/world.ts';
import { Adapters } from './adapters.ts';
import { compileWorkflow, type CompiledWorkflow } from './compile.ts';
import { DEFAULT_ALLOWANCE, placed, readSimulation, resolveVariables } from './prepare-run.ts';
import { findProject, ownEnvironment, type Project } from './project.ts';
import { readSettings, type Settings } from './sources.ts';
import { actsReally, agentShell, realParts, RUN_ID } from './test-reality.ts';
import type { Config } from '../languages/config.ts';

/** A workflow that tests run: compiled once for each set of variables. */
export class TestedWorkflow {
  /** Absolute. */
  readonly path: string;
  readonly #project: Project;
  readonly #settings: Settings;
  readonly #adapters: Adapters;
  readonly #compiled = new Map<string, CompiledTest>();
  #script: readonly Rule[] | null = null;

  constructor(path: string) {
    this.path = path;
    this.#project = findProject(dirname(path));
    this.#settings = readSettings(this.#project);
    this.#adapters = new Adapters(this.#project);
  }

  /** The Program is null if there are errors. */
  async compile({ variables, flags }: Pick<WorkflowTest, 'variables' | 'flags'>): Promise<CompiledTest> {
    const key = JSON.stringify([variables, flags.depthMax ?? null, flags.stepsMax ?? null]);
    const known = this.#compiled.get(key);
    if (known !== undefined) return known;
    const limits = {
      ...this.#settings.config.limits,
      ...(flags.depthMax === undefined ? {} : { expansionDepthMax: flags.depthMax }),
      ...(flags.stepsMax === undefined ? {} : { stepsMax: flags.stepsMax }),
    };
    const config = { ...this.#settings.config, limits };
    const around = { project: this.#project, config, adapters: this.#adapters, language: null, adapter: 'sim' };
    const compiled = compileWorkflow({ ...around, reference: this.path }, { values: variables, meta: [] });
    const script = await readSimulation(this.path, this.#project.cwd);
    const diagnostics = [...this.#settings.diagnostics, ...compiled.diagnostics, ...script.diagnostics];
    this.#script ??= script.text === null ? [] : (readSimScript(script.text, '').script?.rules ?? []);
    const found = { compiled, config, diagnostics, script: this.#script };
    this.#compiled.set(key, found);
    return found;
  }
}

export interface CompiledTest {
  readonly compiled: CompiledWorkflow;
  readonly config: Config;
  readonly diagnostics: readonly Diagnostic[];
  readonly script: readonly Rule[];
}

/** The test could not run at all. */
export class TestError extends Error {}

export interface RanTest {
  readonly end: WorldEnd;
  readonly program: Program;
  /** A file of the folder that the run worked in; null if it does not exist. */
  readonly readFile: (path: string) => string | null;
  /** The folder that the run was started in. Absolute. */
  readonly cwd: string;
  readonly files: RunFiles;
}

/** `use` gets the result while the temporary folder exists. */
export async function runTest<T>(
  workflow: TestedWorkflow,
  test: WorkflowTest,
  { testFile, death = null }: { readonly testFile: string; readonly death?: Death | null },
  use: (ran: RanTest) => T,
): Promise<T> {
  const { compiled, config, diagnostics, script } = await workflow.compile(test);
  if (compiled.program === null || hasErrors(diagnostics)) throw new TestError(errorsText(diagnostics));
  const { folder, mark } = newFolder();
  try {
    const cwd = join(folder, 'work');
    const simulated = script.map((rule): Rule & Ruled => ({ ...rule, number: null, optional: true }));
    const on = [...test.on, ...simulated];
    const isConductor = conductorOf(compiled.program) !== null;
    if (isConductor || actsReally({ run: test.run, on })) mkdirSync(join(cwd, '.meow/workflows', RUN_ID), RECURSIVE);
    layOut(cwd, test, dirname(testFile), isConductor);
    const program = await placed(compiled.program, cwd, {});
    const request = { ...requestOf(program, compiled.fileVariables, test, cwd), mark };
    const files = localRunFiles(join(cwd, '.meow/workflows', RUN_ID));
    const real = { program, config, test: { ...test, on }, cwd, files, mark };
    const world = new World({
      program,
      request,
      test: { ...test, on },
      cwd,
      files,
      within: cwd,
      death,
      real: (run) => realParts(run, real),
      shell: (command, by, signal) => agentShell(real, command, by, signal),
    });
    const end = await world.run();
    const work = existsSync(join(cwd, '.meow/worktrees', RUN_ID)) ? join(cwd, '.meow/worktrees', RUN_ID) : cwd;
    const readFile = (path: string): string | null => {
      const at = resolve(work, path);
      return existsSync(at) && statSync(at).isFile() ? readFileSync(at, 'utf8') : null;
    };
    return use({ end, program, readFile, cwd, files });
  } catch (error) {
    if (error instanceof UsageError) throw new TestError(error.message);
    throw error;
  } finally {
    // Most tests write nothing; an error that `force` ignores takes longer than a question.
    if (existsSync(folder)) rmSync(folder, { recursive: true, force: true });
  }
}

const RECURSIVE = { recursive: true } as const;

/** Contains the folders of all tests of this process, and vanishes with it. */
const parentFolder = once(() => {
  const folder = mkdtempSync(join(tmpdir(), 'meow-test-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
});

let folderCount = 0;

/** A name for the folder of a test. Most tests write nothing, and then it never exists. */
function newFolder(): { readonly folder: string; readonly mark: string } {
  folderCount += 1;
  const number = String(folderCount);
  const parent = parentFolder();
  return { folder: join(parent, number), mark: `${parent.slice(parent.lastIndexOf('-') + 1)}-${number}` };
}

function errorsText(diagnostics: readonly Diagnostic[]): string {
  const errors = diagnostics.filter(({ severity }) => severity === 'error');
  return errors
    .map(({ span, code, message }) => `${span.file}:${span.line}:${span.column}: error ${code}: ${message}`)
    .join('\n');
}

/** Puts what the test wants into the folder in which the run works. */
function layOut(cwd: string, { folder, files, now }: WorkflowTest, beside: string, isRepository: boolean): void {
  if (folder !== null) {
    const from = resolve(beside, folder);
    if (!existsSync(from)) throw new TestError(`there is no folder ${folder}`);
    cpSync(from, cwd, { ...RECURSIVE, filter: (path) => isCopied(relative(from, path), path) });
  }
  for (const [path, text] of Object.entries(files)) {
    const target = join(cwd, path);
    mkdirSync(dirname(target), RECURSIVE);
    writeFileSync(target, text);
  }
  if (isRepository) makeRepository(cwd, now);
}

/** Without what belongs to another run or to another worktree: git would change that. */
function isCopied(path: string, at: string): boolean {
  if (/^\.meow\/(?:workflows|run|worktrees)$/.test(path) || path === '.git/worktrees') return false;
  return path !== '.git' || statSync(at).isDirectory();
}

/** Everything in the folder is committed. The same for every repetition of the test. */
function makeRepository(cwd: string, now: number): void {
  const date = new Date(now).toISOString();
  const dates = { GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date };
  const env = { ...ownEnvironment(), ...dates, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' };
  const who = ['-c', 'user.name=test', '-c', 'user.email=test@localhost', '-c', 'commit.gpgSign=false'];
  const git = (...args: readonly string[]): void =>
    void execFileSync('git', [...who, ...args], { cwd, env, stdio: ['ignore', 'ignore', 'pipe'] });
  if (!existsSync(join(cwd, '.git'))) git('init', '--quiet', '--initial-branch=main');
  git('add', '-A');
  git('commit', '--quiet', '--allow-empty', '--no-verify', '-m', 'the folder of the test');
}

function requestOf(program: Program, fileVariables: readonly string[], test: WorkflowTest, cwd: string): RunRequest {
  const entries = Object.entries(test.variables);
  const texts = new Map(
    entries.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value] as const] : [])),
  );
  const values = new Map<string, Json>(entries.filter(([, value]) => typeof value !== 'string'));
  const given = { texts, values, references: new Map<string, string>() };
  const keeps = new Set(Object.keys(test.variables));
  const place = { id: RUN_ID, at: test.now, cwd, fileVariables, keeps };
  const { variables } = resolveVariables(given, program, place);
  const { budgetUsd, budgetTokens, transitionsMax, agentsMax } = test.flags;
  return {
    id: RUN_ID,
    mark: RUN_ID,
    variables,
    meta: {},
    cwd,
    folder: join(cwd, '.meow/workflows', RUN_ID),
    allowOutside: false,
    allowance: {
      usd: budgetUsd ?? program.budgetUsd ?? null,
      tokens: budgetTokens ?? null,
      transitions: transitionsMax ?? DEFAULT_ALLOWANCE.transitions,
      agents: agentsMax ?? AGENTS_MAX,
    },
  };
}

/** The same on every machine. */
const AGENTS_MAX = 4;
