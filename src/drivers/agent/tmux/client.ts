// The one connection to a server, made when it is needed, and made anew when it was lost.

import { err } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import type { Command } from './command-line.ts';
import { connect } from './connection.ts';
import type { Answer, Connection, LinesDue, ServerLife, TmuxOptions } from './connection.ts';
import { withConnectMutex } from './connect-mutex.ts';

export interface Question {
  /** A server that is not there is started for it. */
  readonly start?: boolean;
  /** Meant for this life of the server: with any other it is lost. */
  readonly server?: ServerLife;
  /** May be run twice: asked again where the connection was lost on the way. */
  readonly repeatable?: boolean;
  /** Makes or ends sessions: not while another engine connects (connect-mutex.ts). */
  readonly inTurn?: boolean;
  readonly linesDue?: LinesDue;
}

/** A connection that is lost this often is lost by what is said. */
const TRIES = 3;

export class Line {
  readonly #options: TmuxOptions;
  #last: Promise<Result<Connection, string>> = Promise.resolve(err('there is no connection to tmux yet'));

  constructor(options: TmuxOptions) {
    this.#options = options;
  }

  get #place(): string {
    return this.#options.socket ?? "the user's own";
  }

  /** An error is a sentence. */
  reach(start: boolean): Promise<Result<Connection, string>> {
    this.#last = this.#last.then((last) => {
      if (last.ok && !last.value.isOver) return last;
      return withConnectMutex(this.#place, () => connect(this.#options, start));
    });
    return this.#last;
  }

  async ask(commands: readonly Command[], question: Question = {}): Promise<Answer> {
    const { start = false, server, repeatable = false, linesDue = null } = question;
    const turn = question.inTurn === true ? withConnectMutex : outOfTurn;
    for (let tries = 1; ; tries += 1) {
      const reached = await this.reach(start);
      if (!reached.ok) return { kind: 'lost', error: reached.error };
      if (server !== undefined && reached.value.server.id !== server.id) {
        return { kind: 'lost', error: 'the tmux server has ended, and another runs in its place' };
      }
      const answer = await turn(this.#place, () => reached.value.ask(commands, linesDue));
      if (answer.kind !== 'lost' || !repeatable || tries === TRIES) return answer;
    }
  }

  /** What is asked from now on is asked over another connection. */
  close(): void {
    this.#last = this.#last.then(async (last) => {
      if (last.ok) await withConnectMutex(this.#place, () => last.value.close());
      return last;
    });
  }
}

function outOfTurn(_place: string, act: () => Promise<Answer>): Promise<Answer> {
  return act();
}
