// A scripted model for real agents: HTTP on loopback, in the protocols of Anthropic (Messages) and OpenAI (Responses).
// A script answers each turn; it is a plain function of the request, so the same conversation always proceeds in the
// same way.
//
//   await using model = await ModelServer.start(({ last }) => (last === 'go' ? { say: 'gone' } : { say: 'what?' }));
// await model.asked(({ last }) => last === 'go');
//
// An agent's own requests (titles, probes, warm-ups) are answered here, and no script sees them. A script that throws
// fails the turn, and the test when the server is closed.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

import type { JsonMap } from '../../../src/base/json.ts';
import { anthropic } from './anthropic.ts';
import { textAt } from './json-parts.ts';
import { INPUT_TOKENS, type ModelError, type ModelRequest, type Protocol, type Reply } from './model-talk.ts';
import { openai } from './openai.ts';

/** Less than the timeout of a test, which would skip the cleanup. */
const PATIENCE_MS = 30_000;

export type Script = (request: ModelRequest) => Reply;

/** Everything that reached the server, turns and other requests. */
export interface Logged {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** The request to the script, if there was one. */
  readonly request: ModelRequest | null;
}

interface Waiting {
  readonly fits: (request: ModelRequest) => boolean;
  readonly found: (request: ModelRequest) => void;
  readonly deadline: NodeJS.Timeout;
}

export class ModelServer implements AsyncDisposable {
  /** `http://127.0.0.1:PORT`: the part before `/v1/messages` and `/v1/responses`. */
  readonly url: string;
  readonly log: Logged[] = [];
  readonly #server: Server;
  readonly #script: Script;
  readonly #mistakes: unknown[] = [];
  readonly #waiting = new Set<Waiting>();
  #replies = 0;

  static async start(script: Script): Promise<ModelServer> {
    const server = createServer();
    await new Promise<void>((listening, failed) => {
      server.once('error', failed);
      server.listen(0, '127.0.0.1', listening);
    });
    return new ModelServer(server, script);
  }

  private constructor(server: Server, script: Script) {
    this.#server = server;
    this.#script = script;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (request, response) => {
      this.#serve(request, response).catch((mistake: unknown) => {
        this.#mistakes.push(mistake);
        response.destroy();
      });
    });
  }

  /** The turns of the script, in order. */
  get turns(): readonly ModelRequest[] {
    return this.log.flatMap(({ request }) => (request === null ? [] : [request]));
  }

  /** The first matching turn, past or future. */
  asked(fits: (request: ModelRequest) => boolean): Promise<ModelRequest> {
    const past = this.turns.find(fits);
    if (past !== undefined) return Promise.resolve(past);
    return new Promise((found, failed) => {
      const giveUp = (): void => failed(new Error(`waited in vain for a turn; these came:\n${this.#told()}`));
      this.#waiting.add({ fits, found, deadline: setTimeout(giveUp, PATIENCE_MS) });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { deadline } of this.#waiting) clearTimeout(deadline);
    const closed = new Promise((done) => this.#server.close(done));
    this.#server.closeAllConnections();
    await closed;
    if (this.#mistakes.length > 0) throw new AggregateError(this.#mistakes, 'the script of the model failed');
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', headers } = incoming;
    const path = new URL(incoming.url ?? '/', this.url).pathname;
    const body = await bodyOf(incoming);
    if (body === null) return;
    const protocol = method === 'POST' ? PROTOCOLS.get(path) : undefined;
    if (protocol === undefined) {
      this.log.push({ method, path, body, request: null });
      serveRest(method, path, response);
      return;
    }
    const asked = JSON.parse(body) as JsonMap;
    const request = protocol.understand(asked, headers);
    this.log.push({ method, path, body, request });
    const reply = request === null ? protocol.aside(asked) : this.#reply(request);
    this.#replies += 1;
    await send(response, protocol, asked, reply, String(this.#replies));
  }

  #told(): string {
    return this.turns.map(({ provider, last }) => `${provider}: ${last}`).join('\n');
  }

  #reply(request: ModelRequest): Reply {
    for (const waiting of this.#waiting) {
      if (!waiting.fits(request)) continue;
      this.#waiting.delete(waiting);
      clearTimeout(waiting.deadline);
      waiting.found(request);
    }
    try {
      return this.#script(request);
    } catch (mistake) {
      this.#mistakes.push(mistake);
      // An error that agents do not retry.
      return {
        error: { status: 400, type: 'invalid_request_error', message: `the script failed: ${String(mistake)}` },
      };
    }
  }
}

const PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ['/v1/messages', anthropic],
  ['/v1/responses', openai],
]);

/** Null if the agent disconnected before it had sent everything. */
async function bodyOf(incoming: IncomingMessage): Promise<string | null> {
  try {
    return await text(incoming);
  } catch (error) {
    if (incoming.complete) throw error;
    return null;
  }
}

/** Health probes, token counts, lists of models. */
function serveRest(method: string, path: string, response: ServerResponse): void {
  if (path === '/v1/messages/count_tokens') sendJson(response, 200, { input_tokens: INPUT_TOKENS });
  else if (method === 'HEAD' || method === 'GET') sendJson(response, 200, { data: [], models: [] });
  else sendJson(response, 404, { error: { type: 'not_found_error', message: `no ${method} ${path} here` } });
}

async function send(
  response: ServerResponse,
  protocol: Protocol,
  body: JsonMap,
  reply: Reply,
  id: string,
): Promise<void> {
  if (reply.delayMs !== undefined) await sleep(reply.delayMs);
  if (reply.error !== undefined) {
    await reply.hold;
    sendError(response, protocol, reply.error);
    return;
  }
  if (body['stream'] !== true) {
    await reply.hold;
    sendJson(response, 200, protocol.whole(reply, body, id));
    return;
  }
  const { begin, end } = protocol.stream(reply, body, id);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of begin) sendEvent(response, event);
  await reply.hold;
  if (response.destroyed) return; // The agent has been interrupted, or is gone.
  for (const event of end) sendEvent(response, event);
  response.end();
}

function sendEvent(response: ServerResponse, event: JsonMap): void {
  response.write(`event: ${textAt(event, 'type')}\ndata: ${JSON.stringify(event)}\n\n`);
}

function sendError(response: ServerResponse, protocol: Protocol, error: ModelError): void {
  sendJson(response, error.status, protocol.error(error), error.headers);
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: JsonMap,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
