// `meow graph`: the steps of a file as they are written, or of a run as they stand.

import { hasErrors } from '../../base/diagnostic.ts';
import { UsageError } from '../../base/usage-error.ts';
import { isRunId } from '../../app/runs.ts';
import type { Graph } from '../../view/graph.ts';
import { graphDot, graphMermaid, graphText, programGraph, runGraph } from '../../view/graph.ts';
import { graphSvg } from '../../view/graph-svg.ts';
import { paletteFor } from '../terminal.ts';
import { EXIT } from '../exit.ts';
import type { Project } from '../../app/project.ts';
import { findProject } from '../../app/project.ts';
import { hasRun, readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { printLine } from '../output.ts';
import { Adapters } from '../../app/adapters.ts';
import type { CompiledWorkflow } from '../../app/compile.ts';
import { compileWorkflow } from '../../app/compile.ts';
import { readSettings } from '../../app/settings.ts';
import { printDiagnostics } from '../diagnostics.ts';

export interface GraphOptions {
  readonly format?: 'mermaid' | 'dot' | 'text' | 'json' | 'svg';
}

export async function graph(what: string, { format = 'text' }: GraphOptions): Promise<number> {
  const found = await graphOf(findProject(), what);
  if (found === null) return EXIT.failed;
  printLine(render(found, format).trimEnd());
  return EXIT.done;
}

function render(drawn: Graph, format: NonNullable<GraphOptions['format']>): string {
  switch (format) {
    case 'mermaid':
      return graphMermaid(drawn);
    case 'dot':
      return graphDot(drawn);
    case 'svg':
      return graphSvg(drawn);
    case 'text':
      return graphText(drawn);
    case 'json':
      return JSON.stringify(drawn, null, 2);
  }
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
