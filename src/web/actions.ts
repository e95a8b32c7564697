// What a page may do: each action takes the path of the command of the same name, as the user that the server runs as.

import type { IncomingMessage } from 'node:http';

import { messageOf } from '../app/agent-requests.ts';
import { decideGate, verbOf } from '../app/decide-gate.ts';
import { requireQuestion } from '../app/gate-choice.ts';
import { listWorkflows } from '../app/list-workflows.ts';
import { readSettings } from '../app/sources.ts';
import { startWorkflow } from '../app/start-workflow.ts';
import { userName } from '../app/user-name.ts';
import type { JsonMap } from '../base/json.ts';
import type { NamedRuns } from './named-runs.ts';
import type { Done, Refusal } from './protocol.ts';
import { jsonReply, type Reply, refusalReply } from './reply.ts';
import { flagIn, optionalTextIn, readBody, runNameIn, textIn, textsIn } from './request-body.ts';
import { pauseRun, resumeRun, stopRun } from './steer.ts';
import { diagnosticDocument } from './workflow-documents.ts';

export interface ActionContext {
  readonly runs: NamedRuns;
}

type Action = (context: ActionContext, body: JsonMap) => Promise<Reply>;

const ACTIONS: Readonly<Record<string, Action>> = {
  decide: async ({ runs }, body) => {
    const { project, store, id } = await runs.run(runNameIn(body));
    const gate = textIn(body, 'gate');
    const answer = optionalTextIn(body, 'answer');
    const approved = answer !== null || flagIn(body, 'approved');
    const verdict = { approved, by: userName(), notes: optionalTextIn(body, 'notes'), answer, via: 'page' };
    if (answer !== null) await requireQuestion(store, id, gate);
    const { config } = readSettings(project);
    const reply = await decideGate(store, id, gate, verdict, { config, isNamed: false });
    if (reply.kind !== 'ack') return refusalReply(409, messageOf(reply));
    return jsonReply({ note: reply.note ?? `${gate} is ${verbOf(verdict)}` } satisfies Done);
  },
  stop: async ({ runs }, body) => stopRun(await runs.run(runNameIn(body)), flagIn(body, 'force')),
  pause: async ({ runs }, body) => pauseRun(await runs.run(runNameIn(body))),
  resume: async ({ runs }, body) => resumeRun(await runs.run(runNameIn(body)), false),
  retry: async ({ runs }, body) => resumeRun(await runs.run(runNameIn(body)), true),
  start: async ({ runs }, body) => {
    const project = runs.project(textIn(body, 'project'));
    const path = textIn(body, 'path');
    const workflow = optionalTextIn(body, 'workflow');
    // A path of a request is never opened: only listed workflows start.
    if (!listWorkflows(project).some((each) => each.path === path && each.workflow === workflow))
      return refusalReply(404, `project ${project.name} has no workflow ${path}`, 'list them again: reload the page');
    const form = { path, workflow, variables: textsIn(body, 'variables'), sim: flagIn(body, 'sim') };
    const answer = await startWorkflow(project, form);
    if (answer.kind === 'started')
      return jsonReply({ note: `${answer.id} runs`, run: { project: project.name, run: answer.id } } satisfies Done);
    const { message, cure, fields, diagnostics } = answer;
    const refusal: Refusal = { message, cure, fields, diagnostics: diagnostics.map(diagnosticDocument) };
    return jsonReply(refusal, Object.keys(fields).length > 0 ? 400 : 409);
  },
};

/** Null if there is no such action. */
export async function act(name: string, context: ActionContext, request: IncomingMessage): Promise<Reply | null> {
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
  return action === undefined ? null : action(context, await readBody(request));
}
