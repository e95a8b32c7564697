// What a page may do: each action takes the path of the command of the same name, as the user that the server runs as.

import type { IncomingMessage } from 'node:http';

import { messageOf } from '../app/agent-requests.ts';
import { decideGate, verbOf } from '../app/decide-gate.ts';
import { requireQuestion } from '../app/gate-choice.ts';
import { readSettings } from '../app/sources.ts';
import { userName } from '../app/user-name.ts';
import type { JsonMap } from '../base/json.ts';
import type { NamedRuns } from './named-runs.ts';
import type { Done } from './protocol.ts';
import { jsonReply, type Reply, refusalReply } from './reply.ts';
import { flagIn, optionalTextIn, readBody, runNameIn, textIn } from './request-body.ts';

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
    const verdict = { approved, by: userName(), notes: optionalTextIn(body, 'notes'), answer };
    if (answer !== null) await requireQuestion(store, id, gate);
    const { config } = readSettings(project);
    const reply = await decideGate(store, id, gate, verdict, { config, isNamed: false });
    if (reply.kind !== 'ack') return refusalReply(409, messageOf(reply));
    return jsonReply({ note: reply.note ?? `${gate} is ${verbOf(verdict)}` } satisfies Done);
  },
};

/** Null if there is no such action. */
export async function act(name: string, context: ActionContext, request: IncomingMessage): Promise<Reply | null> {
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
  return action === undefined ? null : action(context, await readBody(request));
}
