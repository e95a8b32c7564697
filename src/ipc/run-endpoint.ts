// Everything by which a live run is talked to, as one thing to open and to close: the desk, the socket and the inbox.
//
//   R1  The socket and the inbox are there before the first step starts; what comes before the engine does is kept waiting.
//   R2  What lies in the inbox is heard before what comes by the socket after it: an event and then `done` stay in order.
//   R3  Nobody's connection keeps a run from its end.
//   R4  Without a socket a run goes on; the inbox is enough.

import { randomUUID } from 'node:crypto';
import { rmdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Result } from '../base/result.ts';
import { UsageError } from '../base/usage-error.ts';
import type { LiveRun } from '../engine/client.ts';
import type { Clock } from '../engine/ports.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { CurrentPrompt } from '../kernel/current-prompt.ts';
import type { RunState } from '../kernel/state.ts';
import { addressOf, makeSocketFolder } from './address.ts';
import { Desk } from './message-handler.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import { Inbox } from './inbox.ts';
import type { Answer, Message } from './protocol.ts';
import { SocketServer } from './server.ts';

export interface ReceptionOptions {
  readonly runId: string;
  readonly mark: string;
  /** Absolute. */
  readonly runFolder: string;
  readonly clock: Clock;
  /** The task as its agent is shown it; an error is a sentence. */
  whole(prompting: CurrentPrompt): Result<string, string>;
  /** Whether an agent has begun with the prompt of an effect. */
  hasTaken(agent: string, effectId: string): boolean;
  /** Whether a report of an agent could be about the prompt of an effect. */
  couldHave?(agent: string, effectId: string): boolean;
  /** A line for people. */
  note(line: string): void;
}

export class Reception {
  readonly #options: ReceptionOptions;
  readonly #inbox: Inbox;
  readonly #server: SocketServer | null;
  readonly #manned: Promise<Desk | null>;
  #man: (desk: Desk | null) => void = () => {};
  #desk: Desk | null = null;

  constructor(options: ReceptionOptions) {
    this.#options = options;
    this.#manned = new Promise((resolve) => {
      this.#man = resolve;
    });
    const { runId, runFolder, mark } = options;
    const { inbox } = addressOf(runFolder, mark);
    const answer = (message: Message, gone: AbortSignal): Promise<Answer | null> => this.#answer(message, gone);
    this.#inbox = new Inbox({ folder: inbox, runId, answer, warn: (line) => options.note(line) });
    this.#server = this.#listen();
  }

  /** From here on there is somebody to answer. */
  open(run: LiveRun): void {
    if (this.#desk !== null) return;
    const { clock } = this.#options;
    this.#desk = new Desk({
      run,
      clock,
      whole: (task) => this.#options.whole(task),
      hasTaken: (agent, effect) => this.#options.hasTaken(agent, effect),
      couldHave: (agent, effect) => this.#options.couldHave?.(agent, effect) ?? true,
      fileProblem,
      newId: randomUUID,
    });
    this.#man(this.#desk);
    this.#inbox.open();
  }

  /** Resolves when all that has been left in the inbox by now has been heard. */
  async heard(): Promise<void> {
    await this.#manned;
    await this.#inbox.sweep();
  }

  seen(records: readonly JournalRecord[], state: RunState): void {
    this.#desk?.seen(records, state);
  }

  /** `over`: the run will never be taken up again. */
  async close(over: boolean): Promise<void> {
    this.#man(null);
    this.#desk?.close();
    await this.#server?.close();
    await this.#inbox.close(over);
    const { runFolder, mark } = this.#options;
    const folder = dirname(addressOf(runFolder, mark).socket);
    if (this.#server !== null && folder !== runFolder) removeFolder(folder);
  }

  #listen(): SocketServer | null {
    const { runId, runFolder, mark } = this.#options;
    const { socket: path } = addressOf(runFolder, mark);
    const failed = (error: Error): void => {
      this.#options.note(`the run has no socket, and is talked to by its inbox alone: ${error.message}`);
    };
    try {
      makeSocketFolder(path, runFolder);
      return new SocketServer({
        path,
        runId,
        answer: async (message, gone) => {
          await this.#manned;
          await this.#inbox.sweep();
          return this.#answer(message, gone);
        },
        failed,
      });
    } catch (error) {
      if (!(error instanceof UsageError) && !isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) throw error;
      failed(error);
      return null;
    }
  }

  async #answer(message: Message, gone: AbortSignal): Promise<Answer | null> {
    const desk = await this.#manned;
    return desk === null ? null : desk.answer(message, gone);
  }
}

function fileProblem(path: string, from: string): string | null {
  try {
    const stats = statSync(resolve(from, path));
    if (stats.isFile()) return null;
    return stats.isDirectory() ? 'is a folder' : 'is no file';
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return 'no such file';
    throw error;
  }
}

function removeFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!isErrno(error, ...ABSENT, 'ENOTEMPTY', 'EEXIST', ...REFUSED, ...EXHAUSTED)) throw error;
  }
}
