// The server of `meow ui`: it reads the files of runs, and writes nothing but decisions into their inboxes. It may be killed at
// any time. Everything that it says is in protocol.ts, and who may ask in guard.ts.

import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';

import { type Result, err, ok, UsageError } from '../base/errors.ts';
import { crash, isErrno } from '../sys/errors.ts';
import { Assets } from './assets.ts';
import { FleetDocuments } from './fleet-documents.ts';
import { FleetFeed } from './fleet-feed.ts';
import { Guard, inUrl } from './guard.ts';
import { securityHeaders } from './headers.ts';
import { NamedRuns } from './named-runs.ts';
import { MESSAGE_BYTES_MAX, SOCKET_PATH } from './protocol.ts';
import { replyToError, send } from './reply.ts';
import { replyTo, type RouteContext, splitAddress } from './routes.ts';
import { PageSocket } from './socket.ts';

export interface UiOptions {
  readonly version: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** PEM texts; null: plain HTTP. */
  readonly tls: { readonly cert: string; readonly key: string } | null;
  readonly readOnly: boolean;
  /** Folders of projects; without any, that of the working directory and all known ones. */
  readonly projects: readonly string[];
  /** Answers requests that are not of the page, and returns true for them. They are not checked. */
  readonly before?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

export interface UiServer {
  /** With the token in its fragment. */
  readonly url: string;
  readonly token: string;
  readonly port: number;
  /** Resolves when the port is free. */
  close(): Promise<void>;
}

/** What the operator can fix, as plain data: the caller is another bundle. */
export interface StartRefusal {
  readonly kind: 'in-use' | 'other';
  readonly message: string;
  readonly hint: string | null;
}

const SOCKETS_MAX = 64;
/** Of all kinds: beyond them the system would run out of descriptors for the files of runs. */
const CONNECTIONS_MAX = 4_000;

export async function startUi(options: UiOptions): Promise<Result<UiServer, StartRefusal>> {
  try {
    return ok(await serve(options));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const kind = isErrno(error.cause, 'EADDRINUSE') ? 'in-use' : 'other';
    return err({ kind, message: error.message, hint: error.hint });
  }
}

async function serve({ version, host, port, tls, readOnly, projects, before }: UiOptions): Promise<UiServer> {
  const assets = new Assets();
  const runs = new NamedRuns(projects);
  const start = randomUUID();
  const facts = { version, start, build: assets.build, readOnly };
  const listener: RequestListener = (request, response) => {
    if (before?.(request, response) === true) return;
    const reply = replyTo(context, request).catch(replyToError);
    reply.then((found) => send(request, response, found)).catch(crash);
  };
  const server: Server = tls === null ? createServer(listener) : createSecureServer(tls, listener);
  server.maxConnections = CONNECTIONS_MAX;
  server.headersTimeout = 10_000;
  server.requestTimeout = 60_000;
  const bound = await listen(server, host, port);
  const guard = new Guard({ host, port: bound, tls: tls !== null, readOnly });
  const fleet = new FleetFeed(projects);
  const context: RouteContext = { guard, assets, runs, fleet: new FleetDocuments(runs, fleet), facts };
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MESSAGE_BYTES_MAX });
  server.on('upgrade', (request, stream, head) => {
    // It may be closed at any moment; there is nobody to tell.
    stream.on('error', () => stream.destroy());
    const status = refusedUpgrade(guard, request, sockets.clients.size);
    if (status !== null) return refuseUpgrade(stream, status);
    sockets.handleUpgrade(request, stream, head, (socket) => {
      const page = new PageSocket(socket, { runs, fleet, ...facts });
      page.open();
    });
  });
  server.on('clientError', (_error, stream) => refuseUpgrade(stream, 400));
  const address = `${tls === null ? 'http' : 'https'}://${inUrl(host)}:${bound}/`;
  return {
    url: `${address}#token=${guard.token}`,
    token: guard.token,
    port: bound,
    async close() {
      fleet.close();
      for (const socket of sockets.clients) socket.terminate();
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      server.closeAllConnections();
      await closed;
    },
  };
}

async function listen(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(refusalOf(error, host, port)));
    server.listen({ host, port }, resolve);
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : port;
}

function refusalOf(error: Error, host: string, port: number): Error {
  const refusal = (message: string, cure: string): UsageError => {
    const made = new UsageError(message, cure);
    made.cause = error;
    return made;
  };
  if (isErrno(error, 'EADDRINUSE'))
    return refusal(
      `port ${port} of ${host} is in use`,
      'another meow ui may be running; choose another port: --port 0',
    );
  if (isErrno(error, 'EACCES')) return refusal(`port ${port} is reserved`, 'choose one from 1024 on: --port 8080');
  if (isErrno(error, 'EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'))
    return refusal(
      `${host} is not an address of this machine`,
      'listen on an address of this machine: --listen 127.0.0.1:0',
    );
  return error;
}

function createSecureServer(tls: { readonly cert: string; readonly key: string }, listener: RequestListener): Server {
  try {
    return createTlsServer(tls, listener);
  } catch (error) {
    // Of OpenSSL: the texts are not PEM, or the key does not fit the certificate.
    if (!(error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_OSSL'))) throw error;
    throw new UsageError(`the certificate and its key cannot be used (${error.message})`, 'give both in PEM format');
  }
}

/** The same checks as for requests, in the same order; null if the upgrade is allowed. */
function refusedUpgrade(guard: Guard, request: IncomingMessage, open: number): number | null {
  if (!guard.hasOurHost(request)) return 421;
  if (request.method !== 'GET') return 405;
  if (!guard.hasOurOrigin(request)) return 403;
  if (!guard.isKnown(request)) return 401;
  if (splitAddress(request)[0] !== SOCKET_PATH) return 404;
  return open >= SOCKETS_MAX ? 503 : null;
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  421: 'Misdirected Request',
  503: 'Service Unavailable',
};

function refuseUpgrade(stream: Duplex, status: number): void {
  if (!stream.writable) {
    stream.destroy();
    return;
  }
  const headers = Object.entries({ ...securityHeaders('page'), connection: 'close', 'content-length': '0' });
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  stream.end(`HTTP/1.1 ${status} ${REASONS[status] ?? ''}\r\n${lines}\r\n`, () => stream.destroy());
}
