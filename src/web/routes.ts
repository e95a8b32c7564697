// From the path of a request to its reply, after the guard has let it pass.

import type { IncomingMessage } from 'node:http';

import { hasRun } from '../app/runs.ts';
import { act } from './actions.ts';
import type { Assets } from './assets.ts';
import type { FleetDocuments } from './fleet-documents.ts';
import { type Guard, TOKEN_PATH } from './guard.ts';
import type { NamedRuns } from './named-runs.ts';
import { RUN_VIEWS, TERMINAL_FRAME_PATH } from './protocol.ts';
import { Query } from './query.ts';
import { jsonReply, type Reply, refusalReply } from './reply.ts';
import { readBody } from './request-body.ts';
import { RUN_DOCUMENTS } from './run-documents.ts';
import { schedulesDocument } from './schedule-documents.ts';
import { type ServerFacts, sessionDocument } from './session.ts';
import { workflowProgram, workflowsDocument } from './workflow-documents.ts';

export interface RouteContext {
  readonly guard: Guard;
  readonly assets: Assets;
  readonly runs: NamedRuns;
  readonly fleet: FleetDocuments;
  readonly facts: ServerFacts;
}

export async function replyTo(context: RouteContext, request: IncomingMessage): Promise<Reply> {
  const { guard } = context;
  const [path, query] = splitAddress(request);
  const refused = guard.refuse(request, path);
  if (refused !== null) return refused;
  const parts = decodedParts(path);
  if (request.method === 'POST')
    return path === TOKEN_PATH ? exchangeToken(guard, request) : action(context, request, parts);
  if (parts?.[0] === 'data') return (await document(context, parts.slice(1), new Query(query))) ?? missing(path);
  if (parts?.[0] === 'assets' && parts.length === 2)
    return context.assets.asset(parts[1] ?? '', request) ?? missing(path);
  if (path === TERMINAL_FRAME_PATH) return context.assets.terminalFrame() ?? missing(path);
  if (parts?.[0] === 'do') return { ...refusalReply(405, `${path} takes only POST`), headers: { allow: 'POST' } };
  if (!guard.isKnown(request)) return context.assets.enter();
  return context.assets.page(await missingOf(context, parts));
}

/** Path and query, without the question mark. */
export function splitAddress({ url = '/' }: IncomingMessage): readonly [path: string, query: string] {
  const at = url.indexOf('?');
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
}

/** Null if an escape in the path is wrong. A slash at the end does not count. */
function decodedParts(path: string): readonly string[] | null {
  try {
    return path.replace(/^\//, '').replace(/\/$/, '').split('/').map(decodeURIComponent);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

async function exchangeToken(guard: Guard, request: IncomingMessage): Promise<Reply> {
  const cookie = guard.cookieFor((await readBody(request))['token']);
  if (cookie === null)
    return refusalReply(401, 'this token is not valid', 'open the address that meow ui has printed last');
  return { ...jsonReply(null, 204), body: '', headers: { 'set-cookie': cookie } };
}

async function action(
  context: RouteContext,
  request: IncomingMessage,
  parts: readonly string[] | null,
): Promise<Reply> {
  const [first, name = '', ...rest] = parts ?? [];
  const reply = first === 'do' && rest.length === 0 ? await act(name, context, request) : null;
  return reply ?? missing(request.url ?? '');
}

/** Null if there is no such document. */
async function document(
  { runs, fleet, facts }: RouteContext,
  [name = '', ...rest]: readonly string[],
  query: Query,
): Promise<Reply | null> {
  if (rest.length === 0) {
    if (name === 'session') return jsonReply(sessionDocument(facts, runs));
    if (name === 'decided') return jsonReply(await fleet.decided());
    if (name === 'agent-lines') return jsonReply(await fleet.agentLines());
    if (name === 'schedules') return jsonReply(await schedulesDocument(runs));
    if (name === 'usage') return jsonReply(await fleet.usage());
    if (name === 'workflows') return jsonReply(workflowsDocument(runs));
    if (name === 'workflow') return workflowProgram(runs, query);
  }
  const [project = '', run = '', document = '', ...more] = rest;
  const read = Object.hasOwn(RUN_DOCUMENTS, document) ? RUN_DOCUMENTS[document] : undefined;
  if (name !== 'run' || read === undefined || more.length > 0) return null;
  return read(await runs.run({ project, run }), query);
}

const PAGES: readonly string[] = ['', 'inbox', 'workflows', 'compare', 'usage', 'schedule'];

/** What the address of a page names that does not exist, as a sentence; null if it is a page. */
async function missingOf({ runs }: RouteContext, parts: readonly string[] | null): Promise<string | null> {
  const [first = '', project = '', r, run = '', view = 'timeline', ...rest] = parts ?? ['?'];
  if (PAGES.includes(first) && parts?.length === 1) return null;
  const isRun = first === 'p' && r === 'r' && rest.length === 0 && RUN_VIEWS.some((each) => each === view);
  if (!isRun) return 'There is no such page.';
  const found = runs.find({ project, run });
  if (found !== null && (await hasRun(found.store, found.id))) return null;
  const isKnown = runs.shown().projects.some(({ name }) => name === project);
  return isKnown ? `Project ${project} has no run ${run}.` : `There is no project ${project}.`;
}

function missing(path: string): Reply {
  return refusalReply(404, `meow ui has nothing at ${path}`);
}
