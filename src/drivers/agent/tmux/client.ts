// The connection to a tmux server: opened on first use, and reopened after it was lost.

import { err } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import type { Command } from './command-line.ts';
import { connect } from './connection.ts';
import type { Answer, Connection, LinesDue, ServerLife, TmuxOptions } from './connection.ts';
import { withConnectMutex } from './connect-mutex.ts';

export interface TmuxRequest {
  /** Starts a server if none is running. */
  readonly start?: boolean;
  /** For this server process only: with any other the answer is `lost`. */
  readonly server?: ServerLife;
  /** Idempotent: repeated if the connection is lost. */
  readonly repeatable?: boolean;
  /** Creates or destroys sessions: not while another engine connects (connect-mutex.ts). */
  readonly exclusive?: boolean;
  readonly linesDue?: LinesDue;
}

/** A connection that is lost this often is lost because of the command. */
const TRIES = 3;

export class TmuxClient {
  readonly #options: TmuxOptions;
  #last: Promise<Result<Connection, string>> = Promise.resolve(err('there is no connection to tmux yet'));

  constructor(options: TmuxOptions) {
    this.#options = options;
  }

  get #place(): string {
    return this.#options.socket ?? "the user's own";
  }

  /** The error is a sentence. */
  reach(start: boolean): Promise<Result<Connection, string>> {
    this.#last = this.#last.then((last) => {
      if (last.ok && !last.value.isOver) return last;
      return withConnectMutex(this.#place, () => connect(this.#options, start));
    });
    return this.#last;
  }

  async ask(commands: readonly Command[], request: TmuxRequest = {}): Promise<Answer> {
    const { start = false, server, repeatable = false, linesDue = null } = request;
    const run = request.exclusive === true ? withConnectMutex : withoutMutex;
    for (let tries = 1; ; tries += 1) {
      const reached = await this.reach(start);
      if (!reached.ok) return { kind: 'lost', error: reached.error };
      if (server !== undefined && reached.value.server.id !== server.id) {
        return { kind: 'lost', error: 'the tmux server has ended, and another runs in its place' };
      }
      const answer = await run(this.#place, () => reached.value.ask(commands, linesDue));
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

function withoutMutex(_place: string, act: () => Promise<Answer>): Promise<Answer> {
  return act();
}
