// How a session with an agent begins: who we are, and which session it is to be in. Pure.

import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import type { JsonMap } from '../../../base/json.ts';
import { isJsonMap } from '../../../base/json.ts';
import type { RpcError } from './rpc.ts';
import type { Answered } from './conversation.ts';

/** What an agent was started for, kept with its start. */
export interface SessionWish {
  /** Null begins a session. */
  readonly resumeSession: string | null;
  readonly forks: boolean;
}

export interface SessionPlace {
  /** Absolute. */
  readonly workdir: string;
  readonly mcpServers: readonly JsonMap[];
}

const VERSION = 1;

/** We offer it nothing: it has files and a shell of its own. */
export const INITIALIZE: JsonMap = {
  protocolVersion: VERSION,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
};

export interface SessionRequest {
  readonly method: string;
  readonly params: JsonMap;
}

/** By what the agent has answered to `INITIALIZE`. An error is a sentence. */
export function sessionRequest(
  hello: Answered,
  { resumeSession, forks }: SessionWish,
  { workdir, mcpServers }: SessionPlace,
): Result<SessionRequest, string> {
  if (hello.error !== null) return err(refusalText(hello.error, hello));
  const { protocolVersion, agentCapabilities } = hello.result;
  if (protocolVersion !== VERSION) {
    return err(
      `it speaks version ${JSON.stringify(protocolVersion ?? null)} of the Agent Client Protocol, and not ${VERSION}`,
    );
  }
  const params = { cwd: workdir, mcpServers };
  if (resumeSession === null) return ok({ method: 'session/new', params });
  const offered = isJsonMap(agentCapabilities) ? agentCapabilities : {};
  const sessions = isJsonMap(offered['sessionCapabilities']) ? offered['sessionCapabilities'] : {};
  const inSession = { sessionId: resumeSession, ...params };
  if (forks) {
    if (isOffered(sessions['fork'])) return ok({ method: 'session/fork', params: inSession });
    return err('it cannot go on in a copy of a session: it does not offer session/fork');
  }
  // What was said in the session need not be said again.
  if (isOffered(sessions['resume'])) return ok({ method: 'session/resume', params: inSession });
  if (offered['loadSession'] === true) return ok({ method: 'session/load', params: inSession });
  return err('it cannot go on with a session: it offers neither session/resume nor session/load');
}

/** The session that it is in. An error is a sentence. */
export function sessionOf(
  answered: Answered,
  { resumeSession, forks }: SessionWish,
  hello: Answered,
): Result<string, string> {
  if (answered.error !== null) return err(refusalText(answered.error, hello));
  const { sessionId } = answered.result;
  if (typeof sessionId === 'string') return ok(sessionId);
  return resumeSession === null || forks ? err('it began a session without telling which') : ok(resumeSession);
}

const AUTH_REQUIRED = -32_000;

function refusalText({ code, message }: RpcError, { result }: Answered): string {
  if (code !== AUTH_REQUIRED) return message;
  const ways = Array.isArray(result['authMethods']) ? result['authMethods'] : [];
  const names = ways.flatMap((way) => (isJsonMap(way) && typeof way['name'] === 'string' ? [way['name']] : []));
  return names.length === 0 ? message : `${message} (it knows these ways to log in: ${names.join(', ')})`;
}

/** Supported, where it is there at all. */
function isOffered(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
