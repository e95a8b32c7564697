// `meow graph`: the steps of a file as written, or of a run with their status.

import { Adapters } from '../../app/adapters.ts';
import { type CompiledWorkflow, compileWorkflow } from '../../app/compile.ts';
import { findProject, type Project } from '../../app/project.ts';
import { hasRun, isRunId, readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { readSettings } from '../../app/sources.ts';
import { TestCoverage } from '../../app/test-coverage.ts';
import { findTestFiles, readTestFiles, runTests } from '../../app/testing.ts';
import { UsageError } from '../../base/errors.ts';
import { hasErrors } from '../../base/source.ts';
import { graphSvg } from '../../view/graph-svg.ts';
import { type Graph, graphDot, graphMermaid, graphText, programGraph, runGraph } from '../../view/graph.ts';
import { EXIT, printLine, warn } from '../output.ts';
import { paletteFor, printDiagnostics } from '../terminal.ts';

const FORMATS = {
  mermaid: graphMermaid,
  dot: graphDot,
  svg: graphSvg,
  text: graphText,
  json: (drawn: Graph) => JSON.stringify(drawn, null, 2),
};

type Format = keyof typeof FORMATS;

export async function graph(
  what: string,
  { format = 'text', coverage }: { readonly format?: Format; readonly coverage?: string },
): Promise<number> {
  const found = await graphOf(findProject(), what, coverage ?? null);
  if (found === null) return EXIT.failed;
  printLine(FORMATS[format](found).trimEnd());
  return EXIT.done;
}

/** The run of that id, else the file, else the run whose id begins so. Null if the file is invalid, which is reported. */
async function graphOf(project: Project, what: string, tests: string | null): Promise<Graph | null> {
  const store = storeOf(project);
  if (tests === null && (await hasRun(store, what))) return runGraph((await readRun(store, what)).state);
  const around = { project, config: readSettings(project).config, adapters: new Adapters(project) };
  let compiled: CompiledWorkflow;
  try {
    compiled = compileWorkflow({ ...around, reference: what, language: null, adapter: null }, null);
  } catch (error) {
    if (!(error instanceof UsageError) || !isRunId(what) || tests !== null) throw error;
    if ((await store.list({ prefix: what })).length === 0) throw error;
    return runGraph((await readRun(store, await resolveRun(store, what))).state);
  }
  const { program, diagnostics } = compiled;
  if (hasErrors(diagnostics)) printDiagnostics(diagnostics, paletteFor(process.stderr));
  if (program === null) return null;
  if (tests === null) return programGraph(program);
  const coverage = await coverageBy(tests, project.cwd);
  if (coverage === null) return null;
  const tested = coverage.programOf(compiled.path);
  if (tested === null)
    throw new UsageError(`${tests} has no test of ${what}`, 'name its own test file after --coverage');
  return { ...programGraph(tested, (block, step) => coverage.hasStarted(block, step)), title: program.source.name };
}

/** What the tests of a file reach; null if it has mistakes, which are reported. */
async function coverageBy(file: string, cwd: string): Promise<TestCoverage | null> {
  const { tests, diagnostics } = readTestFiles(findTestFiles([file], cwd), cwd);
  printDiagnostics(diagnostics, paletteFor(process.stderr));
  if (hasErrors(diagnostics)) return null;
  const coverage = new TestCoverage(cwd);
  for (const found of tests) {
    const results = runTests(found, {
      pattern: null,
      crash: false,
      faults: null,
      update: false,
      onRun: (ran) => coverage.add(ran),
    });
    for await (const { status, name } of results)
      if (status !== 'passed') warn(`meow: the test ${JSON.stringify(name)} has not passed`);
  }
  return coverage;
}
