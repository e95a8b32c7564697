// The endpoint of a live run: socket, inbox and message handler, opened and closed together.
//
//   endpoint/1  Socket and inbox exist before the first step of this engine starts.
//   endpoint/2  Messages in the inbox are handled before a later message on the socket: an event and then `done` stay in order.
//   endpoint/3  No connection delays the end of a run.
//   endpoint/4  A run works without a socket; the inbox is enough.

import { randomUUID } from 'node:crypto';
import { rmdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { UsageError } from '../base/errors.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState } from '../kernel/state.ts';
import { asUsageError, isErrno, tolerate, UNUSABLE } from '../sys/errors.ts';
import { makePrivateFolder } from '../sys/files.ts';
import { Inbox } from './inbox.ts';
import { MessageHandler, type MessageHandlerOptions } from './message-handler.ts';
import type { AnswerMessage } from './protocol.ts';
import { SocketServer } from './server.ts';

/** Operating systems allow 103 or 107. */
const SOCKET_BYTES_MAX = 100;

/**
 * The paths follow from the run, so that a resumed run has the same ones. Nobody else can guess and occupy them: the run's
 * folder is private, and if its path is too long for a socket, the socket is in a folder named with the run's random mark.
 */
export interface Address {
  readonly socket: string;
  readonly inbox: string;
}

/** `runFolder`: absolute. */
export function addressOf(runFolder: string, mark: string): Address {
  const elsewhere = `meow-${mark}/sock`;
  const socket = [join(runFolder, 'sock'), join(tmpdir(), elsewhere)].find(
    (path) => Buffer.byteLength(path) <= SOCKET_BYTES_MAX,
  );
  return { socket: socket ?? join('/tmp', elsewhere), inbox: join(runFolder, 'inbox') };
}

export interface RunEndpointOptions extends Omit<MessageHandlerOptions, 'fileProblem' | 'newId'> {
  readonly mark: string;
  /** Absolute. */
  readonly runFolder: string;
  note(line: string): void;
}

/** Leaves nothing on the disk before it is opened. */
export class RunEndpoint {
  readonly #options: RunEndpointOptions;
  readonly #address: Address;
  /** The folder of the socket, if it is not the run's own. */
  readonly #socketFolder: string | null;
  readonly #handler: MessageHandler;
  #inbox: Inbox | null = null;
  #server: SocketServer | null = null;

  constructor(options: RunEndpointOptions) {
    this.#options = options;
    this.#address = addressOf(options.runFolder, options.mark);
    const socketFolder = dirname(this.#address.socket);
    this.#socketFolder = socketFolder === options.runFolder ? null : socketFolder;
    this.#handler = new MessageHandler({ ...options, fileProblem, newId: randomUUID });
  }

  open(): void {
    try {
      this.#open();
    } catch (error) {
      throw asUsageError(error, `open the inbox of run ${this.#options.run.id}`, this.#options.runFolder);
    }
  }

  #open(): void {
    const answer: AnswerMessage = (message, gone) => this.#handler.answer(message, gone);
    const inbox = new Inbox({
      folder: this.#address.inbox,
      runId: this.#options.run.id,
      answer,
      warn: (line) => this.#options.note(line),
    });
    this.#inbox = inbox;
    this.#server = this.#listen(async (message, gone) => {
      await inbox.sweep();
      return answer(message, gone);
    });
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
    const { run } = this.#options;
    this.#handler.close();
    await this.#server?.close();
    // A run that is done can never be resumed, so nobody will read its inbox.
    await this.#inbox?.close(run.durable && run.state.phase === 'ended' && run.state.end === 'done');
    const folder = this.#server === null ? null : this.#socketFolder;
    if (folder !== null) tolerate(['ENOTEMPTY', 'EEXIST', ...UNUSABLE], undefined, () => rmdirSync(folder));
  }

  #listen(answer: AnswerMessage): SocketServer | null {
    const failed = (error: Error): void => {
      this.#options.note(`the run has no socket and can be reached through its inbox only: ${error.message}`);
    };
    try {
      if (this.#socketFolder !== null) makePrivateFolder(this.#socketFolder);
      return new SocketServer({ path: this.#address.socket, runId: this.#options.run.id, answer, failed });
    } catch (error) {
      if (!(error instanceof UsageError) && !isErrno(error, ...UNUSABLE)) throw error;
      failed(error);
      return null;
    }
  }
}

/** Why a path, relative to that folder, is not a file; null if it is one. */
export function fileProblem(path: string, from: string): string | null {
  const stats = tolerate(UNUSABLE, null, () => statSync(resolve(from, path)));
  if (stats === null) return 'no such file';
  if (stats.isFile()) return null;
  return stats.isDirectory() ? 'is a folder' : 'is not a file';
}
