// Connection to the process of an agent: the writer of its input, the conversation read from its output, and its life. Both
// directions are kept in the folder of the agent's start, so that a later engine continues the same connection.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { timeLimit } from '../../../sys/with-timeout.ts';
import type { TimeLimit } from '../../../sys/with-timeout.ts';
import { watchPath } from '../../../sys/watch.ts';
import type { AgentStart } from '../files.ts';
import { AgentProcess } from './agent-process.ts';
import { Conversation } from './conversation.ts';
import { LineTail } from './line-tail.ts';
import { OnceWriter, PIPE } from './once-writer.ts';
import { messagesIn } from './rpc.ts';

export class Connection {
  readonly process: AgentProcess;
  readonly writer: OnceWriter;
  readonly conversation: Conversation;
  readonly #tail: LineTail;
  readonly #waiting = new Set<() => void>();
  readonly #onChange: () => void;
  #closeWatch: () => void = () => undefined;
  #isSettled = false;

  /** `onChange`: called when the conversation has everything that the agent has written so far. */
  constructor(start: AgentStart, isFresh: boolean, onChange: () => void) {
    const { path } = start.folder;
    this.#onChange = onChange;
    this.conversation = new Conversation(isFresh);
    this.writer = new OnceWriter(path);
    this.#tail = new LineTail(join(path, 'stdout'), {
      line: (bytes) => {
        for (const message of messagesIn(bytes)) this.conversation.add(message);
      },
      settled: () => {
        this.#isSettled = true;
        this.wake();
      },
    });
    this.process = new AgentProcess(start, () => {
      this.#closeWatch();
      this.#tail.finish();
      this.writer.close();
      // A program that reads all files of a run would block on a pipe without a writer.
      rmSync(join(path, PIPE), { force: true });
    });
    void this.process.ended.then(() => this.wake());
  }

  /** To be called when the process has been started or found. */
  open(folder: string): void {
    const update = (): void => {
      this.#tail.update();
      this.writer.update();
    };
    const watcher = watchPath(folder, update, { background: true });
    const poll = watcher === null ? setInterval(update, POLL_MS).unref() : undefined;
    this.#closeWatch = () => {
      watcher?.close();
      clearInterval(poll);
    };
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
}

/** If the system has no file watches left. */
const POLL_MS = 50;
