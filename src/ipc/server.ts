// The socket of a run: one JSON object a line, in both directions. Every client is considered hostile.
//
//   socket/1  Messages of one connection are answered one after the other, in order. The next is read when the answer to the
//             last has been sent.
//   socket/2  The bytes buffered for a connection are bounded, and so are those of all connections together. A connection
//             that exceeds a bound gets an error and is closed.
//   socket/3  The number of connections is bounded. For a new one the oldest idle connection is closed; if none is idle, the
//             new one is refused, and its client uses the inbox.
//   socket/4  A connection can harm neither another one nor the run. An exception here is a bug.
//   socket/5  A client that goes away while it waits is noticed. So a client that waits must keep its own side open.

import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';

import { ABSENT, isErrno, tolerate } from '../sys/errors.ts';
import { type AnswerMessage, encodeAnswer, errorAnswer, LINE_BYTES_MAX, parseMessage } from './protocol.ts';

const CONNECTIONS_MAX = 256;
/** Beyond this, a connection that sends more while it waits for an answer is not read. */
const AHEAD_BYTES_MAX = 64 * 1024;
const BUFFERED_BYTES_MAX = 32 * 1024 * 1024;
/** For sending an answer. */
const SEND_TIMEOUT_MS = 30_000;
/** For pending answers at the end of the run. */
const CLOSE_TIMEOUT_MS = 500;

export interface SocketOptions {
  readonly path: string;
  readonly runId: string;
  readonly answer: AnswerMessage;
  /** The socket cannot be opened. The inbox still works. */
  readonly failed: (error: Error) => void;
}

export class SocketServer {
  readonly #options: SocketOptions;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  #buffered = 0;

  /** Bound when it returns. Replaces the socket of an earlier engine, because the caller holds the run's lock. */
  constructor(options: SocketOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
    this.#server.on('error', options.failed);
    // A flood of connections is refused before it costs anything.
    this.#server.maxConnections = 2 * CONNECTIONS_MAX;
    removeSocket(options.path);
    this.#server.listen(options.path);
    // The folder is private already.
    if (isSocket(options.path)) chmodSync(options.path, 0o600);
  }

  async close(): Promise<void> {
    this.#server.close();
    await Promise.all([...this.#connections].map((connection) => connection.close()));
    removeSocket(this.#options.path);
  }

  #accept(socket: Socket): void {
    if (this.#connections.size >= CONNECTIONS_MAX && !this.#dropIdle()) {
      socket.on('error', ignoreErrno);
      socket.end(encodeAnswer(errorAnswer('too many connections', 'busy')), () => socket.destroy());
      return;
    }
    const connection = new Connection(socket, {
      ...this.#options,
      count: (bytes) => {
        this.#buffered += bytes;
        return this.#buffered <= BUFFERED_BYTES_MAX;
      },
      closed: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
  }

  #dropIdle(): boolean {
    const idle = [...this.#connections].find((connection) => !connection.busy);
    if (idle === undefined) return false;
    this.#connections.delete(idle);
    idle.destroy();
    return true;
  }
}

interface ConnectionOptions extends Pick<SocketOptions, 'runId' | 'answer'> {
  /** Counts buffered bytes, more or fewer; false if all connections together exceed the bound. */
  count(bytes: number): boolean;
  closed(): void;
}

class Connection {
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #gone = new AbortController();
  /** Received and not answered yet, from the beginning of a line on. */
  #chunks: Buffer[] = [];
  #bytes = 0;
  busy = false;
  /** The client sends nothing more. */
  #ended = false;
  #closing = false;
  #onIdle: () => void = () => {};

  constructor(socket: Socket, options: ConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    socket.on('end', () => this.#end());
    socket.on('error', ignoreErrno);
    socket.on('close', () => {
      this.#drop(this.#bytes);
      this.#chunks = [];
      this.#gone.abort();
      options.closed();
    });
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** A pending answer is still sent, if the client reads it. */
  async close(): Promise<void> {
    this.#closing = true;
    const timer = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS);
    if (this.busy) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
        this.#gone.signal.addEventListener('abort', () => resolve());
      });
    }
    if (!this.#socket.destroyed) {
      await new Promise<void>((resolve) => {
        this.#socket.once('close', resolve);
        this.#socket.end(() => resolve());
      });
    }
    clearTimeout(timer);
    this.destroy();
  }

  #receive(chunk: Buffer): void {
    // Nothing more is read at the end of the run.
    if (this.#closing) return;
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (!this.#options.count(chunk.length)) this.#refuse('too many bytes are waiting to be read');
    else if (!this.busy) this.#next(chunk);
    else if (this.#bytes > AHEAD_BYTES_MAX) this.#socket.pause();
  }

  /** `fresh`: the only chunk that can contain the end of the first line; null if any can. */
  #next(fresh: Buffer | null): void {
    if (this.#closing) return;
    if (fresh === null || fresh.includes(NEWLINE)) {
      const all = this.#chunks.length === 1 ? (this.#chunks[0] ?? EMPTY) : Buffer.concat(this.#chunks);
      const end = all.indexOf(NEWLINE);
      if (end >= 0 && end <= LINE_BYTES_MAX) {
        const rest = all.subarray(end + 1);
        // A small rest is copied, so that it does not keep a large buffer in memory.
        this.#chunks = rest.length === 0 ? [] : [all.length > 2 * AHEAD_BYTES_MAX ? Buffer.from(rest) : rest];
        this.#drop(end + 1);
        void this.#handle(all.subarray(0, end).toString('utf8'));
        return;
      }
      this.#chunks = all.length === 0 ? [] : [all];
    }
    if (this.#bytes > LINE_BYTES_MAX) this.#refuse(`a line has more than ${LINE_BYTES_MAX} bytes`);
    else if (this.#ended) this.#socket.end();
    else this.#socket.resume();
  }

  async #handle(line: string): Promise<void> {
    this.busy = true;
    const message = parseMessage(line, this.#options.runId);
    const answer = message.ok
      ? await this.#options.answer(message.value, this.#gone.signal)
      : errorAnswer(message.error, 'malformed');
    // There will be no answer. The client sees that the connection is closed.
    if (answer === null) this.destroy();
    else if (!this.#socket.destroyed) await this.#send(encodeAnswer(answer));
    this.busy = false;
    this.#onIdle();
    if (!this.#socket.destroyed) this.#next(null);
  }

  /** Resolves when the text has been sent, or never can be. */
  #send(text: string): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.destroy(), SEND_TIMEOUT_MS);
      const done = (): void => {
        clearTimeout(timer);
        this.#socket.off('close', done);
        resolve();
      };
      this.#socket.once('close', done);
      this.#socket.write(text, done);
    });
  }

  /** A killed client looks like one that has sent everything: its messages are handled, but it does not wait (socket/5). */
  #end(): void {
    this.#ended = true;
    this.#gone.abort();
    if (!this.busy) this.#next(null);
  }

  #refuse(why: string): void {
    this.#socket.removeAllListeners('data');
    this.#closing = true;
    this.#socket.end(encodeAnswer(errorAnswer(why, 'malformed')), () => this.destroy());
    // Does not wait for a client that does not read.
    setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS).unref();
  }

  #drop(bytes: number): void {
    this.#bytes -= bytes;
    this.#options.count(-bytes);
  }
}

const NEWLINE = 0x0a;
const EMPTY = Buffer.alloc(0);

/** The client went away; 'close' follows. */
function ignoreErrno(error: Error): void {
  if (!isErrno(error, ...CLIENT_GONE)) throw error;
}

const CLIENT_GONE = ['ECONNRESET', 'EPIPE', 'ENOTCONN', 'ECONNABORTED', 'ETIMEDOUT', 'EBADF', 'ERR_STREAM_DESTROYED'];

/** Removes nothing but a socket. If something else is in its place, the socket cannot be opened. */
function removeSocket(path: string): void {
  if (isSocket(path)) unlinkSync(path);
}

function isSocket(path: string): boolean {
  return tolerate(ABSENT, false, () => lstatSync(path).isSocket());
}
