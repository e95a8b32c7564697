// The workflows of all projects as the page gets them.

import { isValid, type ListedWorkflow, listWorkflows, programOf } from '../app/list-workflows.ts';
import type { NamedProject } from '../app/projects.ts';
import type { Diagnostic } from '../base/source.ts';
import type { NamedRuns } from './named-runs.ts';
import type { DiagnosticDocument, WorkflowDocument, WorkflowsDocument } from './protocol.ts';
import type { Query } from './query.ts';
import { jsonReply, type Reply, RequestRefused } from './reply.ts';

export function workflowsDocument(runs: NamedRuns): WorkflowsDocument {
  const { projects } = runs.shown();
  return {
    workflows: projects.flatMap((project) => listWorkflows(project).map((each) => workflowDocument(project, each))),
  };
}

/** The Program of one, as its graph is drawn. */
export function workflowProgram(runs: NamedRuns, query: Query): Reply {
  const project = runs.project(query.text('project'));
  const [path, workflow] = [query.text('path'), query.optional('workflow')];
  // A path of a request is never opened: only listed workflows are compiled.
  if (!listWorkflows(project).some((each) => each.path === path && each.workflow === workflow))
    throw new RequestRefused(404, `project ${project.name} has no workflow ${path}`);
  return jsonReply(programOf(project, path, workflow));
}

export function diagnosticDocument({ severity, code, message, hint, span }: Diagnostic): DiagnosticDocument {
  return { severity, code, file: span.file, line: span.line, column: span.column, message, hint };
}

function workflowDocument({ name: project }: NamedProject, listed: ListedWorkflow): WorkflowDocument {
  const { path, workflow, language, description, variables, diagnostics, problem } = listed;
  const unreadable: readonly DiagnosticDocument[] =
    problem === null
      ? []
      : [{ severity: 'error', code: 'unreadable', file: path, line: null, column: null, ...problem }];
  return {
    project,
    path,
    workflow,
    language,
    description,
    valid: isValid(listed),
    variables: variables.map(({ fallback, ...variable }) => ({ ...variable, default: fallback })),
    diagnostics: [...unreadable, ...diagnostics.map(diagnosticDocument)],
  };
}
