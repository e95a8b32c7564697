// The endpoint of a live run: socket, inbox and message handler, opened and closed together.
//
//   endpoint/1  Socket and inbox exist before the first step of this engine starts.
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
import { SocketServer } from './server.ts';

export interface RunEndpointOptions {
  readonly run: Pick<LiveRun, 'id' | 'state' | 'durable' | 'submit'>;
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

/** Leaves nothing on the disk before it is opened. */
export class RunEndpoint {
  readonly #options: RunEndpointOptions;
  readonly #handler: MessageHandler;
  #inbox: Inbox | null = null;
  #server: SocketServer | null = null;

  constructor(options: RunEndpointOptions) {
    this.#options = options;
    this.#handler = new MessageHandler({
      run: options.run,
      clock: options.clock,
      promptText: (prompting) => options.promptText(prompting),
      hasAccepted: (agent, effect) => options.hasAccepted(agent, effect),
      mayReportOn: (agent, effect) => options.mayReportOn?.(agent, effect) ?? true,
      fileProblem,
      newId: randomUUID,
    });
  }

  /** Makes the run reachable. */
  open(): void {
    const { run, runFolder, mark } = this.#options;
    const inbox = new Inbox({
      folder: addressOf(runFolder, mark).inbox,
      runId: run.id,
      answer: (message, gone) => this.#handler.answer(message, gone),
      warn: (line) => this.#options.note(line),
    });
    this.#inbox = inbox;
    this.#server = this.#listen(inbox);
    inbox.open();
  }

  /** Resolves when all messages that are in the inbox now have been handled. */
  async drainInbox(): Promise<void> {
    await this.#inbox?.sweep();
  }

  observe(records: readonly JournalRecord[], state: RunState): void {
    this.#handler.observe(records, state);
  }

  async close(): Promise<void> {
    const { run, runFolder, mark } = this.#options;
    this.#handler.close();
    await this.#server?.close();
    // A run that is done can never be resumed, so nobody will read its inbox.
    await this.#inbox?.close(run.durable && run.state.phase === 'ended' && run.state.end === 'done');
    const folder = dirname(addressOf(runFolder, mark).socket);
    if (this.#server !== null && folder !== runFolder) removeFolder(folder);
  }

  #listen(inbox: Inbox): SocketServer | null {
    const { run, runFolder, mark } = this.#options;
    const { socket: path } = addressOf(runFolder, mark);
    const failed = (error: Error): void => {
      this.#options.note(`the run has no socket and can be reached through its inbox only: ${error.message}`);
    };
    try {
      makeSocketFolder(path, runFolder);
      return new SocketServer({
        path,
        runId: run.id,
        answer: async (message, gone) => {
          await inbox.sweep();
          return this.#handler.answer(message, gone);
        },
        failed,
      });
    } catch (error) {
      if (!(error instanceof UsageError) && !isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) throw error;
      failed(error);
      return null;
    }
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
