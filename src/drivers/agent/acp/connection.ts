// Connection to the process of an agent: the writer of its input, the conversation read from its output, and its life. Both
// directions are kept in the folder of the agent's start, so that a later engine continues the same connection.

import { rmSync } from 'node:fs';
import { join } from 'node:path';

import { timeLimit, type TimeLimit } from '../../../sys/clock.ts';
import { AgentProcess } from '../agent-process.ts';
import type { AgentStart } from '../files.ts';
import { GrowingFile, watchOrPoll } from '../growing-file.ts';
import { Conversation } from './conversation.ts';
import { OnceWriter, PIPE } from './once-writer.ts';
import { parseMessages } from './rpc.ts';

/** If the system has no file watches left. */
const POLL_MS = 50;
/** Longer messages are skipped. */
const LINE_BYTES_MAX = 128 * 1024 * 1024;

export class Connection {
  readonly process: AgentProcess;
  readonly writer: OnceWriter;
  readonly conversation: Conversation;
  readonly #output: GrowingFile;
  readonly #waiting = new Set<() => void>();
  readonly #onChange: () => void;
  #closeWatch: () => void = () => undefined;
  #isReading = false;
  /** The conversation has had everything that the agent had written. */
  #isSettled = false;

  /** `onChange`: called when the conversation has everything that the agent has written so far. */
  constructor(start: AgentStart, isFresh: boolean, onChange: () => void) {
    const { path } = start.folder;
    this.#onChange = onChange;
    this.conversation = new Conversation(isFresh);
    this.writer = new OnceWriter(path);
    this.#output = new GrowingFile(join(path, 'stdout'), {
      // Every line contains it.
      essential: [''],
      lineBytesMax: LINE_BYTES_MAX,
      line: (text) => {
        for (const message of parseMessages(text)) this.conversation.add(message);
      },
    });
    this.process = new AgentProcess(start, () => {
      this.#closeWatch();
      while (this.#output.read());
      this.#settle();
      this.#output.close();
      this.writer.close();
      // A program that reads all files of a run would block on a pipe without a writer.
      rmSync(join(path, PIPE), { force: true });
    });
    void this.process.ended.then(() => this.wake());
  }

  /** To be called when the process has been started or found. */
  open(folder: string): void {
    const update = (): void => {
      if (!this.#isReading) this.#read();
      this.writer.update();
    };
    this.#closeWatch = watchOrPoll(folder, update, POLL_MS);
    update();
  }

  wake(): void {
    this.#onChange();
    for (const wake of this.#waiting) wake();
  }

  /** Resolves as soon as `find` returns a value; null if the agent is gone or the limit is reached first. */
  when<T>(find: () => T | null, limit: TimeLimit = {}): Promise<T | null> {
    return new Promise((resolve) => {
      const { ended, cancel } = timeLimit(limit);
      const end = (found: T | null): void => {
        cancel();
        this.#waiting.delete(wake);
        resolve(found);
      };
      const wake = (): void => {
        const found = find();
        if (found !== null || !this.process.alive) end(found);
      };
      this.#waiting.add(wake);
      void ended.then(end);
      if (this.#isSettled || !this.process.alive) wake();
    });
  }

  #read(): void {
    this.#isReading = false;
    if (!this.process.alive) return;
    this.#isReading = this.#output.read();
    if (this.#isReading) setImmediate(() => this.#read());
    else this.#settle();
  }

  #settle(): void {
    this.#isSettled = true;
    this.wake();
  }
}
