// The workflows that can run here: valid ones with a form that starts them, the others with the places of their mistakes.

import type { WorkflowDocument, WorkflowsDocument } from '../web/protocol.ts';
import { workflowAddress } from './addresses.ts';
import { useDocument } from './document-store.ts';
import { isFound } from './find.ts';
import { pageTitle } from './fleet-store.ts';
import { StatusIcon } from './icons.tsx';
import { MessagePage } from './message-page.tsx';
import { navigate } from './router.ts';
import { session } from './session.ts';
import { line } from './shown-text.ts';
import { StartForm } from './start-form.tsx';
import { Diagnostic } from './workflow-diagnostic.tsx';
import { WorkflowGraph } from './workflow-graph.tsx';

/** `file`: the workflow whose form is open, as in `workflowKey`. */
export function WorkflowsPage({ file }: { readonly file: string | null }) {
  pageTitle.value = 'Workflows';
  const listed = useDocument<WorkflowsDocument>('/data/workflows');
  if (listed.kind === 'loading') return <main class="workflows" aria-busy="true" />;
  if (listed.kind === 'refused') {
    return (
      <MessagePage title="Workflows cannot be listed">
        <p>{line(listed.refusal.message)}</p>
      </MessagePage>
    );
  }
  const { workflows } = listed.document;
  const shown = workflows.filter(({ path, workflow, description, project }) =>
    isFound([path, workflow, description, project]),
  );
  const open = workflows.find((workflow) => workflow.valid && workflowKey(workflow) === file);
  const starts = open !== undefined && session.value?.readOnly !== true;
  return (
    <main class={starts ? 'workflows two' : 'workflows'}>
      <div class="pane">
        <h1 class="unseen">Workflows</h1>
        {open !== undefined && <WorkflowGraph key={workflowKey(open)} of={open} />}
        {shown.map((workflow) => (
          <Listed key={workflowKey(workflow)} workflow={workflow} isOpen={workflow === open} />
        ))}
        {workflows.length === 0 && (
          <p class="card quiet">
            No workflow is here. <code>meow init</code> writes an example; files like <code>NAME.meow.toml</code> in the
            project's folder, in <code>.meow/workflows/</code> and in <code>.meow/templates/</code> are listed.
          </p>
        )}
        {workflows.length > 0 && shown.length === 0 && <p class="card quiet">No workflow contains this text.</p>}
      </div>
      {starts && <StartForm key={workflowKey(open)} of={open} />}
    </main>
  );
}

function workflowKey({ project, path, workflow }: WorkflowDocument): string {
  return `${project}/${path}${workflow === null ? '' : `#${workflow}`}`;
}

function Listed({ workflow, isOpen }: { readonly workflow: WorkflowDocument; readonly isOpen: boolean }) {
  const { project, path, workflow: name, language, description, valid, variables, diagnostics } = workflow;
  const status = valid ? 'valid' : 'invalid';
  const title = name === null ? path : `${path}#${name}`;
  return (
    <article
      class="card workflow"
      aria-label={`${line(title)}, project ${line(project)}, ${status}`}
      data-status={status}
      data-item
      tabIndex={-1}
    >
      <div class="l1">
        <StatusIcon status={status} />
        <b class="cut">{line(title)}</b>
        <span class="chip">{line(project, 40)}</span>
        {language !== null && <span class="chip">{line(language, 20)}</span>}
        <span class="grow" />
        {valid && session.value?.readOnly !== true && (
          <button
            type="button"
            class="b s"
            aria-expanded={isOpen}
            onClick={() => navigate(isOpen ? '/workflows' : workflowAddress(workflowKey(workflow)))}
          >
            {isOpen ? 'Close' : 'Start…'}
          </button>
        )}
      </div>
      {description !== null && <p class="dim">{line(description)}</p>}
      {valid && variables.length > 0 && (
        <p class="dim">
          {variables
            .map((variable) => `${line(variable.name, 60)}${variable.required ? ' (required)' : ''}`)
            .join(', ')}
        </p>
      )}
      {diagnostics.length > 0 && (
        <ul class="diagnostics">
          {diagnostics.map((diagnostic, index) => (
            <Diagnostic key={index} of={diagnostic} />
          ))}
        </ul>
      )}
    </article>
  );
}
