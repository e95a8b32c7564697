// One tab's socket: what it has subscribed to, and what it is sent.
//
//   page-socket/1  A page that does not read is dropped, and asks again for what it lacks: at most QUEUED_BYTES_MAX are queued for
//             it beside the message that is being sent, and nothing may stay unsent for STALLED_MS.
//   page-socket/2  A message that is not one of the protocol closes the socket. Nothing that a page sends stops the server.
//   page-socket/3  Records are sent in the order of the journal, and the next ones are read only when the last ones have left.

import type { RawData, WebSocket } from 'ws';

import { isJsonMap, type Json, type JsonMap, parseJson } from '../base/json.ts';
import { crash } from '../sys/errors.ts';
import { PANE_SIZE, terminalFeed } from '../app/terminal-feed.ts';
import { userName } from '../app/user-name.ts';
import type { FleetFeed } from './fleet-feed.ts';
import type { NamedRun, NamedRuns } from './named-runs.ts';
import { KEYS_BYTES_MAX, type RunName, type ServerMessage } from './protocol.ts';
import { sendRun } from './run-subscription.ts';
import { Typist } from './typist.ts';

export interface SocketContext {
  readonly runs: NamedRuns;
  readonly fleet: FleetFeed;
  readonly start: string;
  readonly build: string;
  readonly readOnly: boolean;
}

const QUEUED_BYTES_MAX = 1024 * 1024;
const STALLED_MS = 10_000;
/** More than a page shows. */
const SUBSCRIPTIONS_MAX = 64;
/** WebSocket: the message violates the policy of the server. */
const POLICY_VIOLATION = 1008;

export class PageSocket {
  readonly #socket: WebSocket;
  readonly #context: SocketContext;
  readonly #subscriptions = new Map<string, AbortController>();
  readonly #typists = new Map<string, Typist>();
  #unwatchFleet: (() => void) | null = null;
  /** The latest fleet, while the one before it is being sent. */
  #nextFleet: string | null = null;
  #isSendingFleet = false;

  constructor(socket: WebSocket, context: SocketContext) {
    this.#socket = socket;
    this.#context = context;
    socket.on('message', (data, isBinary) => {
      if (isBinary || !this.#receive(parseJson(textOf(data)))) socket.close(POLICY_VIOLATION, 'unknown message');
    });
    socket.on('close', () => this.#close());
    // `close` follows, and the page connects again.
    socket.on('error', () => socket.terminate());
  }

  /** Says who the server is. Subscriptions follow from what the page sends. */
  open(): void {
    const { start, build, readOnly } = this.#context;
    this.#push({ kind: 'hello', start, build, readOnly });
  }

  /** False if it is not a message of the protocol. */
  #receive(message: Json): boolean {
    if (!isJsonMap(message)) return false;
    switch (message['kind']) {
      case 'ping':
        this.#push({ kind: 'pong' });
        return true;
      case 'watch-fleet':
        this.#unwatchFleet ??= this.#context.fleet.watch((fleet) => this.#sendFleet(fleet));
        return true;
      case 'follow':
        return this.#follow(message);
      case 'unfollow':
        return this.#end('run', message);
      case 'watch-terminal':
        return this.#watchTerminal(message);
      case 'unwatch-terminal':
        return this.#end('terminal', message);
      case 'type-keys':
        return this.#typeKeys(message);
      default:
        return false;
    }
  }

  #follow(message: JsonMap): boolean {
    const of = runNameIn(message['of']);
    const { fromSeq, generation, lastAt } = message;
    if (of === null || typeof fromSeq !== 'number' || !Number.isSafeInteger(fromSeq) || fromSeq < 1) return false;
    const known = {
      fromSeq,
      ...(typeof generation === 'string' ? { generation } : {}),
      ...(typeof lastAt === 'number' ? { lastAt } : {}),
    };
    return this.#begin('run', of, null, (found, signal) =>
      sendRun(of, found, known, (next) => this.#send(JSON.stringify(next)), signal),
    );
  }

  #watchTerminal(message: JsonMap): boolean {
    const of = runNameIn(message['of']);
    const { agent, from } = message;
    if (of === null || typeof agent !== 'string' || typeof from !== 'number' || !Number.isSafeInteger(from))
      return false;
    return this.#begin('terminal', of, agent, async ({ store, id }, signal) => {
      for await (const { bytes, ...piece } of terminalFeed(store, id, agent, from, signal)) {
        const text = Buffer.from(bytes).toString('base64');
        await this.#send(JSON.stringify({ kind: 'terminal', of, agent, ...piece, bytes: text, size: PANE_SIZE }));
        if (signal.aborted) return;
      }
      if (!signal.aborted) this.#push({ kind: 'terminal-ended', of, agent, message: `agent ${agent} has no terminal` });
    });
  }

  #typeKeys(message: JsonMap): boolean {
    const of = runNameIn(message['of']);
    const { agent, bytes, intoDialog } = message;
    if (of === null || typeof agent !== 'string' || typeof bytes !== 'string') return false;
    if (this.#context.readOnly) return true;
    const keys = Buffer.from(bytes, 'base64');
    if (keys.length === 0 || keys.length > KEYS_BYTES_MAX) return false;
    const found = this.#context.runs.find(of);
    if (found === null) return true;
    const key = subscriptionKey('keys', of, agent);
    const typist = this.#typists.get(key) ?? new Typist(found, agent);
    this.#typists.set(key, typist);
    if (this.#typists.size > SUBSCRIPTIONS_MAX) return false;
    typist
      .type(keys, { by: userName(), intoDialog: intoDialog === true })
      .then((typed) => {
        if (!typed.ok) this.#push({ kind: 'keys-refused', of, agent, message: typed.error });
      })
      .catch(crash);
    return true;
  }

  /** Starts a subscription, and ends an earlier one to the same. */
  #begin(
    what: string,
    of: RunName,
    agent: string | null,
    serve: (found: NamedRun, signal: AbortSignal) => Promise<void>,
  ): boolean {
    const key = subscriptionKey(what, of, agent);
    this.#subscriptions.get(key)?.abort();
    if (!this.#subscriptions.has(key) && this.#subscriptions.size >= SUBSCRIPTIONS_MAX) return false;
    const found = this.#context.runs.find(of);
    if (found === null) {
      const message = `there is no run ${of.run} in project ${of.project}`;
      this.#push({ kind: 'lost', of, why: 'missing', message, cure: 'all runs: meow list' });
      return true;
    }
    const subscription = new AbortController();
    this.#subscriptions.set(key, subscription);
    serve(found, subscription.signal)
      .finally(() => {
        if (this.#subscriptions.get(key) === subscription) this.#subscriptions.delete(key);
      })
      .catch(crash);
    return true;
  }

  #end(what: string, message: JsonMap): boolean {
    const of = runNameIn(message['of']);
    const { agent = null } = message;
    if (of === null || (agent !== null && typeof agent !== 'string')) return false;
    const key = subscriptionKey(what, of, agent);
    this.#subscriptions.get(key)?.abort();
    this.#subscriptions.delete(key);
    return true;
  }

  #sendFleet(fleet: string): void {
    this.#nextFleet = fleet;
    if (this.#isSendingFleet) return;
    this.#isSendingFleet = true;
    const sendAll = async (): Promise<void> => {
      for (let next = this.#nextFleet; next !== null; next = this.#nextFleet) {
        this.#nextFleet = null;
        await this.#send(next);
      }
      this.#isSendingFleet = false;
    };
    sendAll().catch(crash);
  }

  /** A short message. */
  #push(message: ServerMessage): void {
    if (this.#socket.bufferedAmount > QUEUED_BYTES_MAX) this.#socket.terminate();
    else this.#send(JSON.stringify(message)).catch(crash);
  }

  /** Resolves when the message has left, or the socket is closed. */
  async #send(message: string): Promise<void> {
    const socket = this.#socket;
    if (socket.readyState !== socket.OPEN) return;
    const stalled = setTimeout(() => socket.terminate(), STALLED_MS);
    await new Promise<void>((resolve) => {
      // An error means that the socket is closing, and `close` ends all subscriptions.
      socket.send(message, () => resolve());
    });
    clearTimeout(stalled);
  }

  #close(): void {
    this.#unwatchFleet?.();
    for (const subscription of this.#subscriptions.values()) subscription.abort();
    this.#subscriptions.clear();
    for (const typist of this.#typists.values()) typist.close();
    this.#typists.clear();
  }
}

function subscriptionKey(what: string, { project, run }: RunName, agent: string | null): string {
  return JSON.stringify([what, project, run, agent]);
}

function runNameIn(value: Json | undefined): RunName | null {
  if (!isJsonMap(value)) return null;
  const { project, run } = value;
  return typeof project === 'string' && typeof run === 'string' ? { project, run } : null;
}

function textOf(data: RawData): string {
  return (Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data as Buffer)).toString('utf8');
}
