// Start of a session with an agent: version, capabilities, and the session to open. Pure.

import type {
  AgentCapabilities,
  ForkSessionResponse,
  InitializeRequest,
  InitializeResponse,
  McpServer,
  SessionCapabilities,
} from '@agentclientprotocol/sdk/unstable';

import { err, ok, type Result } from '../../../base/errors.ts';
import { isJsonMap } from '../../../base/json.ts';
import type { Answered } from './conversation.ts';
import type { RpcError, SessionRequest, Unchecked } from './rpc.ts';

/** The session that an agent was started for; kept with its start. */
export interface SessionChoice {
  /** Null begins a session. */
  readonly resumeSession: string | null;
  readonly forks: boolean;
}

const VERSION = 1;

/** We offer no capabilities: the agent has files and a shell of its own. */
export const INITIALIZE: InitializeRequest = {
  protocolVersion: VERSION,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
};

/** Chosen by the agent's answer to `INITIALIZE`. */
export function sessionRequest(
  hello: Answered,
  { resumeSession, forks }: SessionChoice,
  setup: { readonly workdir: string; readonly mcpServers: readonly McpServer[] },
): Result<SessionRequest, string> {
  if (hello.error !== null) return err(errorText(hello.error, hello));
  const { protocolVersion, agentCapabilities }: Unchecked<InitializeResponse> = hello.result;
  if (protocolVersion !== VERSION) {
    const found = JSON.stringify(protocolVersion ?? null);
    return err(`it speaks version ${found} of the Agent Client Protocol, not version ${VERSION}`);
  }
  const params = { cwd: setup.workdir, mcpServers: [...setup.mcpServers] };
  if (resumeSession === null) return ok({ method: 'session/new', params });
  const offered: Unchecked<AgentCapabilities> = isJsonMap(agentCapabilities) ? agentCapabilities : {};
  const { sessionCapabilities, loadSession } = offered;
  const sessions: Unchecked<SessionCapabilities> = isJsonMap(sessionCapabilities) ? sessionCapabilities : {};
  const inSession = { sessionId: resumeSession, ...params };
  if (forks) {
    if (isOffered(sessions.fork)) return ok({ method: 'session/fork', params: inSession });
    return err('it cannot continue in a copy of a session: it does not offer session/fork');
  }
  // Preferred to session/load, which repeats the whole session.
  if (isOffered(sessions.resume)) return ok({ method: 'session/resume', params: inSession });
  if (loadSession === true) return ok({ method: 'session/load', params: inSession });
  return err('it cannot continue a session: it offers neither session/resume nor session/load');
}

/** Id of the session that was opened. */
export function sessionOf(
  answered: Answered,
  { resumeSession, forks }: SessionChoice,
  hello: Answered,
): Result<string, string> {
  if (answered.error !== null) return err(errorText(answered.error, hello));
  const { sessionId }: Unchecked<ForkSessionResponse> = answered.result;
  if (typeof sessionId === 'string') return ok(sessionId);
  return resumeSession === null || forks ? err('it began a session without giving its id') : ok(resumeSession);
}

const AUTH_REQUIRED = -32_000;

function errorText({ code, message }: RpcError, { result }: Answered): string {
  if (code !== AUTH_REQUIRED) return message;
  const { authMethods }: Unchecked<InitializeResponse> = result;
  const methods = Array.isArray(authMethods) ? authMethods : [];
  const names = methods.flatMap((each) => (isJsonMap(each) && typeof each['name'] === 'string' ? [each['name']] : []));
  return names.length === 0 ? message : `${message} (it offers these logins: ${names.join(', ')})`;
}

/** A capability is offered if it is present at all. */
function isOffered(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}
