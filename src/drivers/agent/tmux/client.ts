// The connection to a tmux server: opened on first use, and reopened after it was lost.

import { createHash } from 'node:crypto';
import { connect as connectSocket, createServer, type Socket } from 'node:net';

import { err, type Result } from '../../../base/errors.ts';
import { isErrno } from '../../../sys/errors.ts';
import type { Command } from './command-line.ts';
import type { Answer, Connection, LinesDue, ServerLife, TmuxOptions } from './connection.ts';
import { connect } from './connection.ts';

export interface TmuxRequest {
  /** Starts a server if none is running. */
  readonly start?: boolean;
  /** For this server process only: with any other the answer is `lost`. */
  readonly server?: ServerLife;
  /** Idempotent: repeated if the connection is lost. */
  readonly repeatable?: boolean;
  /** Creates or destroys sessions: not while another engine connects (withConnectMutex). */
  readonly exclusive?: boolean;
  readonly linesDue?: LinesDue;
}

/** A connection that is lost this often is lost because of the command. */
export const TRIES = 3;

export class TmuxClient {
  readonly #options: TmuxOptions;
  readonly #place: string;
  #last: Promise<Result<Readonly<Connection>, string>> = Promise.resolve(err('there is no connection to tmux yet'));

  constructor(options: TmuxOptions) {
    this.#options = options;
    this.#place = options.socket ?? "the user's own";
  }

  reach(start: boolean): Promise<Result<Readonly<Connection>, string>> {
    this.#last = this.#last.then((last) => {
      if (last.ok && !last.value.isOver) return last;
      return withConnectMutex(this.#place, () => connect(this.#options, start));
    });
    return this.#last;
  }

  async ask(commands: readonly Command[], request: TmuxRequest = {}): Promise<Answer> {
    const { start = false, server, repeatable = false, exclusive = false, linesDue = null } = request;
    for (let tries = 1; ; tries += 1) {
      const reached = await this.reach(start);
      if (!reached.ok) return { kind: 'lost', error: reached.error };
      if (server !== undefined && reached.value.server.id !== server.id) {
        return { kind: 'lost', error: 'the tmux server has ended, and another runs in its place' };
      }
      const ask = (): Promise<Answer> => reached.value.ask(commands, linesDue);
      const answer = await (exclusive ? withConnectMutex(this.#place, ask) : ask());
      if (answer.kind !== 'lost' || !repeatable || tries === TRIES) return answer;
    }
  }

  /** Later commands use a new connection. */
  close(): void {
    this.#last = this.#last.then(async (last) => {
      if (last.ok) await withConnectMutex(this.#place, () => last.value.close());
      return last;
    });
  }
}

// A mutex among all engines that use a tmux server. tmux before 3.7 crashes if it must notify control-mode clients
// while another one is connecting: so while one engine connects, no other creates or destroys sessions. (Actions of
// agents and people cannot be prevented; the window is short.)
//
// The mutex is a name in the abstract socket namespace, which the system frees when its holder exits. Only Linux has
// it; elsewhere there is no mutex. Nobody waits for it longer than a moment.

/** Far longer than any protected action takes. */
const TIMEOUT_MS = 5_000;

async function withConnectMutex<T>(what: string, act: () => Promise<T>): Promise<T> {
  if (process.platform !== 'linux') return act();
  const hash = createHash('sha256').update(what).digest('hex').slice(0, 32);
  const release = await acquire(`\0meow-${process.getuid?.() ?? 0}-${hash}`);
  try {
    return await act();
  } finally {
    release?.();
  }
}

/** Returns how to release it; null after the time limit, or if the system has none. */
async function acquire(name: string): Promise<(() => void) | null> {
  const deadline = Date.now() + TIMEOUT_MS;
  for (;;) {
    const release = await tryAcquire(name);
    if (release !== 'taken') return release;
    const left = deadline - Date.now();
    if (left <= 0) return null;
    await untilReleased(name, left);
  }
}

function tryAcquire(name: string): Promise<(() => void) | 'taken' | null> {
  return new Promise((resolve) => {
    const waiting = new Set<Socket>();
    const server = createServer((socket) => {
      waiting.add(socket);
      socket.on('error', () => undefined); // the wait ended already
      socket.on('close', () => waiting.delete(socket));
    });
    const release = (): void => {
      server.close();
      for (const socket of waiting) socket.destroy();
    };
    server.once('error', (error) => resolve(isErrno(error, 'EADDRINUSE') ? 'taken' : null));
    server.listen(name, () => resolve(release));
    // The protected action itself keeps the process alive.
    server.unref();
  });
}

/** The mutex may have been freed before we asked. */
const PAUSE_MS = 5;

function untilReleased(name: string, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const socket = connectSocket(name);
    const timer = setTimeout(() => socket.destroy(), timeoutMs);
    socket.on('error', () => undefined); // `close` follows
    socket.on('close', (isFailed) => {
      clearTimeout(timer);
      if (isFailed) setTimeout(resolve, PAUSE_MS);
      else resolve();
    });
    socket.resume();
  });
}
