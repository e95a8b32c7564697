// The socket of a run: lines in, lines out. Whoever connects is taken for hostile.
//
//   S1  Messages of one connection are answered one after the other, in their order; the next is looked at when the answer
//       to the last has been taken away.
//   S2  What is kept for a connection is bounded, and so is what is kept for all of them together. A connection that wants
//       more is told so and closed.
//   S3  So many connections and no more: for a new one the oldest that is idle is closed; where none is idle the new one
//       is refused, and its sender goes to the inbox.
//   S4  What a connection does harms no other and not the run. An exception here is a bug of ours.
//   S5  A sender that goes away while it waits is noticed. One that waits therefore keeps its own side open.

import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { Answer, Message } from './protocol.ts';
import { encodeAnswer, errorAnswer, LINE_BYTES_MAX, parseMessage } from './protocol.ts';
import { ABSENT, isErrno } from '../sys/errno.ts';

const CONNECTIONS_MAX = 256;
/** Of a connection that talks on while it waits for an answer; it is not read any further then. */
const AHEAD_BYTES_MAX = 64 * 1024;
const BUFFERED_BYTES_MAX = 32 * 1024 * 1024;
/** For an answer to be taken away. */
const PATIENCE_MS = 30_000;
/** For answers on their way when the run is over. */
const FAREWELL_MS = 500;

export interface SocketOptions {
  readonly path: string;
  readonly runId: string;
  /** Null: the sender has gone, or there is no engine any more. */
  answer(message: Message, gone: AbortSignal): Promise<Answer | null>;
  /** There is no socket, and why: the inbox has to do. */
  failed(error: NodeJS.ErrnoException): void;
}

export class SocketServer {
  readonly #options: SocketOptions;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  #buffered = 0;

  /** Is bound when it returns: a socket that an earlier engine left is replaced, for the caller holds the run's lock. */
  constructor(options: SocketOptions) {
    this.#options = options;
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
    this.#server.on('error', (error) => options.failed(error));
    // A flood is turned away before it costs anything.
    this.#server.maxConnections = 2 * CONNECTIONS_MAX;
    removeSocket(options.path);
    this.#server.listen(options.path);
    closeToOthers(options.path);
  }

  async close(): Promise<void> {
    this.#server.close();
    await Promise.all([...this.#connections].map((connection) => connection.close()));
    removeSocket(this.#options.path);
  }

  #accept(socket: Socket): void {
    if (this.#connections.size >= CONNECTIONS_MAX && !this.#dropIdle()) {
      socket.on('error', ignoreErrno);
      socket.end(encodeAnswer(errorAnswer('too many are connected', 'busy')), () => socket.destroy());
      return;
    }
    const connection = new Connection(socket, {
      runId: this.#options.runId,
      answer: (message, gone) => this.#options.answer(message, gone),
      keep: (bytes) => {
        this.#buffered += bytes;
        return this.#buffered <= BUFFERED_BYTES_MAX;
      },
      closed: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
  }

  #dropIdle(): boolean {
    for (const connection of this.#connections) {
      if (!connection.isIdle) continue;
      this.#connections.delete(connection);
      connection.destroy();
      return true;
    }
    return false;
  }
}

interface Surroundings {
  readonly runId: string;
  answer(message: Message, gone: AbortSignal): Promise<Answer | null>;
  /** So many bytes more are kept, or fewer; false where that is too much for all together. */
  keep(bytes: number): boolean;
  closed(): void;
}

class Connection {
  readonly #socket: Socket;
  readonly #around: Surroundings;
  readonly #gone = new AbortController();
  /** What has come and is not answered yet, from the beginning of a line on. */
  #chunks: Buffer[] = [];
  #bytes = 0;
  #busy = false;
  /** The other side says nothing more. */
  #ended = false;
  #closing = false;
  #idleAgain: () => void = () => {};

  constructor(socket: Socket, around: Surroundings) {
    this.#socket = socket;
    this.#around = around;
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.on('end', () => this.#end());
    socket.on('error', ignoreErrno);
    socket.on('close', () => {
      this.#drop(this.#bytes);
      this.#chunks = [];
      this.#gone.abort();
      around.closed();
    });
  }

  get isIdle(): boolean {
    return !this.#busy;
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** The answer that is on its way is still handed over, if it is taken. */
  async close(): Promise<void> {
    this.#closing = true;
    const farewell = setTimeout(() => this.destroy(), FAREWELL_MS);
    if (this.#busy) {
      await new Promise<void>((resolve) => {
        this.#idleAgain = resolve;
        this.#gone.signal.addEventListener('abort', () => resolve());
      });
    }
    if (!this.#socket.destroyed) {
      await new Promise<void>((resolve) => {
        this.#socket.once('close', resolve);
        this.#socket.end(() => resolve());
      });
    }
    clearTimeout(farewell);
    this.destroy();
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (!this.#around.keep(chunk.length)) {
      this.#refuse('too much is being said at once');
      return;
    }
    if (!this.#busy) this.#next(chunk);
    else if (this.#bytes > AHEAD_BYTES_MAX) this.#socket.pause();
  }

  /** `fresh`: only there can the end of the first line be, where it is given. */
  #next(fresh: Buffer | null): void {
    if (this.#closing) return;
    if (fresh === null || fresh.includes(NEWLINE)) {
      const all = this.#chunks.length === 1 ? (this.#chunks[0] ?? EMPTY) : Buffer.concat(this.#chunks);
      const end = all.indexOf(NEWLINE);
      if (end >= 0 && end <= LINE_BYTES_MAX) {
        this.#chunks = end + 1 === all.length ? [] : [restOf(all, end + 1)];
        this.#drop(end + 1);
        void this.#hear(all.subarray(0, end).toString('utf8'));
        return;
      }
      this.#chunks = all.length === 0 ? [] : [all];
    }
    if (this.#bytes > LINE_BYTES_MAX) this.#refuse(`a line has more than ${LINE_BYTES_MAX} bytes`);
    else if (this.#ended) this.#socket.end();
    else this.#socket.resume();
  }

  async #hear(line: string): Promise<void> {
    this.#busy = true;
    const message = parseMessage(line, this.#around.runId);
    const answer = message.ok
      ? await this.#around.answer(message.value, this.#gone.signal)
      : errorAnswer(message.error, 'malformed');
    // There will be none: its sender sees that the connection is closed.
    if (answer === null) this.destroy();
    else if (!this.#socket.destroyed) await this.#hand(encodeAnswer(answer));
    this.#busy = false;
    this.#idleAgain();
    if (!this.#socket.destroyed) this.#next(null);
  }

  /** Resolves when it has been taken away, or never will be. */
  #hand(text: string): Promise<void> {
    return new Promise((resolve) => {
      const impatience = setTimeout(() => this.destroy(), PATIENCE_MS);
      const done = (): void => {
        clearTimeout(impatience);
        this.#socket.off('close', done);
        resolve();
      };
      this.#socket.once('close', done);
      this.#socket.write(text, done);
    });
  }

  /** A sender that was killed looks the same as one that has said all: what it said is heard, but it waits for nothing (S5). */
  #end(): void {
    this.#ended = true;
    this.#gone.abort();
    if (!this.#busy) this.#next(null);
  }

  #refuse(why: string): void {
    this.#socket.removeAllListeners('data');
    this.#closing = true;
    this.#socket.end(encodeAnswer(errorAnswer(why, 'malformed')), () => this.destroy());
    // Whoever does not read this is not waited for.
    setTimeout(() => this.destroy(), FAREWELL_MS).unref();
  }

  #drop(bytes: number): void {
    this.#bytes -= bytes;
    this.#around.keep(-bytes);
  }
}

const NEWLINE = 0x0a;
const EMPTY = Buffer.alloc(0);

/** A small rest does not keep a large whole in memory. */
function restOf(all: Buffer, from: number): Buffer {
  const rest = all.subarray(from);
  return all.length > 2 * AHEAD_BYTES_MAX ? Buffer.from(rest) : rest;
}

/** The other side went away, in one of the ways there are; 'close' follows. */
function ignoreErrno(error: Error): void {
  if (!isErrno(error, ...HUNG_UP)) throw error;
}

const HUNG_UP = [
  'ECONNRESET',
  'EPIPE',
  'ENOTCONN',
  'ECONNABORTED',
  'ETIMEDOUT',
  'EBADF',
  'ERR_STREAM_DESTROYED',
] as const;

/** Its folder is private already; this is for those who look at the file alone. */
function closeToOthers(path: string): void {
  if (isSocket(path)) chmodSync(path, 0o600);
}

/** What else may stand there is not ours to remove; then the socket cannot be had. */
function removeSocket(path: string): void {
  if (isSocket(path)) unlinkSync(path);
}

function isSocket(path: string): boolean {
  try {
    return lstatSync(path).isSocket();
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return false;
    throw error;
  }
}
