// The endpoint of a live run: socket, inbox and message handler, opened and closed together.
//
//   endpoint/1  Socket and inbox exist before the first step starts. Messages that arrive before the engine wait for it.
//   endpoint/2  Messages in the inbox are handled before a later message on the socket: an event and then `done` stay in order.
//   endpoint/3  No connection delays the end of a run.
//   endpoint/4  A run works without a socket; the inbox is enough.

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
import { MessageHandler } from './message-handler.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import { Inbox } from './inbox.ts';
import type { Answer, Message } from './protocol.ts';
import { SocketServer } from './server.ts';

export interface RunEndpointOptions {
  readonly runId: string;
  readonly mark: string;
  /** Absolute. */
  readonly runFolder: string;
  readonly clock: Clock;
  /** The prompt as its agent sees it; an error is a sentence. */
  promptText(prompting: CurrentPrompt): Result<string, string>;
  /** Whether an agent has accepted the prompt of an effect. */
  hasAccepted(agent: string, effectId: string): boolean;
  /** Whether a report of the agent can be about the prompt of an effect. */
  mayReportOn?(agent: string, effectId: string): boolean;
  /** Shows a line to people. */
  note(line: string): void;
}

export class RunEndpoint {
  readonly #options: RunEndpointOptions;
  readonly #inbox: Inbox;
  readonly #server: SocketServer | null;
  readonly #ready: Promise<MessageHandler | null>;
  #setReady: (handler: MessageHandler | null) => void = () => {};
  #handler: MessageHandler | null = null;

  constructor(options: RunEndpointOptions) {
    this.#options = options;
    this.#ready = new Promise((resolve) => {
      this.#setReady = resolve;
    });
    const { runId, runFolder, mark } = options;
    const { inbox } = addressOf(runFolder, mark);
    const answer = (message: Message, gone: AbortSignal): Promise<Answer | null> => this.#answer(message, gone);
    this.#inbox = new Inbox({ folder: inbox, runId, answer, warn: (line) => options.note(line) });
    this.#server = this.#listen();
  }

  /** From now on messages are answered. */
  open(run: LiveRun): void {
    if (this.#handler !== null) return;
    const { clock } = this.#options;
    this.#handler = new MessageHandler({
      run,
      clock,
      promptText: (task) => this.#options.promptText(task),
      hasAccepted: (agent, effect) => this.#options.hasAccepted(agent, effect),
      mayReportOn: (agent, effect) => this.#options.mayReportOn?.(agent, effect) ?? true,
      fileProblem,
      newId: randomUUID,
    });
    this.#setReady(this.#handler);
    this.#inbox.open();
  }

  /** Resolves when all messages that are in the inbox now have been handled. */
  async drainInbox(): Promise<void> {
    await this.#ready;
    await this.#inbox.sweep();
  }

  observe(records: readonly JournalRecord[], state: RunState): void {
    this.#handler?.observe(records, state);
  }

  /** `over`: the run can never be resumed. */
  async close(over: boolean): Promise<void> {
    this.#setReady(null);
    this.#handler?.close();
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
      this.#options.note(`the run has no socket and can be reached through its inbox only: ${error.message}`);
    };
    try {
      makeSocketFolder(path, runFolder);
      return new SocketServer({
        path,
        runId,
        answer: async (message, gone) => {
          await this.#ready;
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
    const handler = await this.#ready;
    return handler === null ? null : handler.answer(message, gone);
  }
}

function fileProblem(path: string, from: string): string | null {
  try {
    const stats = statSync(resolve(from, path));
    if (stats.isFile()) return null;
    return stats.isDirectory() ? 'is a folder' : 'is not a file';
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
