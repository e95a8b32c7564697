// `meow graph`: the steps of a file as written, or of a run with their status.

import { Adapters } from '../../app/adapters.ts';
import { type CompiledWorkflow, compileWorkflow } from '../../app/compile.ts';
import { findProject, type Project } from '../../app/project.ts';
import { hasRun, isRunId, readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { readSettings } from '../../app/sources.ts';
import { UsageError } from '../../base/errors.ts';
import { hasErrors } from '../../base/source.ts';
import { graphSvg } from '../../view/graph-svg.ts';
import { type Graph, graphDot, graphMermaid, graphText, programGraph, runGraph } from '../../view/graph.ts';
import { EXIT, printLine } from '../output.ts';
import { paletteFor, printDiagnostics } from '../terminal.ts';

const FORMATS = {
  mermaid: graphMermaid,
  dot: graphDot,
  svg: graphSvg,
  text: graphText,
  json: (drawn: Graph) => JSON.stringify(drawn, null, 2),
};

type Format = keyof typeof FORMATS;

export async function graph(what: string, { format = 'text' }: { readonly format?: Format }): Promise<number> {
  const found = await graphOf(findProject(), what);
  if (found === null) return EXIT.failed;
  printLine(FORMATS[format](found).trimEnd());
  return EXIT.done;
}

/** The run of that id, else the file, else the run whose id begins so. Null if the file is invalid, which is reported. */
async function graphOf(project: Project, what: string): Promise<Graph | null> {
  const store = storeOf(project);
  if (await hasRun(store, what)) return runGraph((await readRun(store, what)).state);
  const around = { project, config: readSettings(project).config, adapters: new Adapters(project) };
  let compiled: CompiledWorkflow;
  try {
    compiled = compileWorkflow({ ...around, reference: what, language: null, adapter: null }, null);
  } catch (error) {
    if (!(error instanceof UsageError) || !isRunId(what)) throw error;
    if ((await store.list({ prefix: what })).length === 0) throw error;
    return runGraph((await readRun(store, await resolveRun(store, what))).state);
  }
  const { program, diagnostics } = compiled;
  if (hasErrors(diagnostics)) printDiagnostics(diagnostics, paletteFor(process.stderr));
  return program === null ? null : programGraph(program);
}
