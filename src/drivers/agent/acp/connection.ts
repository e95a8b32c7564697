// All that is between us and the process of an agent: what we write to it, what it has written, and whether it lives. What
// both have said is kept in the folder of its start, so that another life of the engine takes up the same connection.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentStart } from '../files.ts';
import { watchPath } from '../../../sys/watch.ts';
import { LedProcess } from './agent-process.ts';
import { LineTail } from './line-tail.ts';
import { timeLimit } from '../../../sys/with-timeout.ts';
import type { TimeLimit } from '../../../sys/with-timeout.ts';
import { Pen, PIPE } from './once-writer.ts';
import { messagesIn } from './rpc.ts';
import { Talk } from './conversation.ts';

export class Connection {
  readonly process: LedProcess;
  readonly pen: Pen;
  readonly talk: Talk;
  readonly #tail: LineTail;
  readonly #waiting = new Set<() => void>();
  readonly #changed: () => void;
  #closeWatch: () => void = () => undefined;
  #isSettled = false;

  /** `changed`: all that the agent has said by now is in the talk, and something may follow from it. */
  constructor(start: AgentStart, isFresh: boolean, changed: () => void) {
    const { path } = start.folder;
    this.#changed = changed;
    this.talk = new Talk(isFresh);
    this.pen = new Pen(path);
    this.#tail = new LineTail(join(path, 'stdout'), {
      line: (bytes) => {
        for (const message of messagesIn(bytes)) this.talk.take(message);
      },
      settled: () => {
        this.#isSettled = true;
        this.wake();
      },
    });
    this.process = new LedProcess(start, () => {
      this.#closeWatch();
      this.#tail.finish();
      this.pen.close();
      // Whoever reads all files of a run is not to wait for somebody to write into this one.
      rmSync(join(path, PIPE), { force: true });
    });
    void this.process.ended.then(() => this.wake());
  }

  /** To be called when the process has been begun, or found. */
  open(folder: string): void {
    const look = (): void => {
      this.#tail.look();
      this.pen.look();
    };
    const watcher = watchPath(folder, look, { background: true });
    const looks = watcher === null ? setInterval(look, LOOK_UNWATCHED_MS).unref() : undefined;
    this.#closeWatch = () => {
      watcher?.close();
      clearInterval(looks);
    };
    look();
  }

  wake(): void {
    this.#changed();
    for (const wake of this.#waiting) wake();
  }

  /** What `look` finds in the talk, as soon as it finds something; null if the agent exits or the time is over first. */
  when<T>(look: () => T | null, limit: TimeLimit = {}): Promise<T | null> {
    return new Promise((resolve) => {
      const { ended, cancel } = timeLimit(limit);
      const end = (found: T | null): void => {
        cancel();
        this.#waiting.delete(wake);
        resolve(found);
      };
      const wake = (): void => {
        const found = look();
        if (found !== null || !this.process.alive) end(found);
      };
      this.#waiting.add(wake);
      void ended.then(end);
      if (this.#isSettled || !this.process.alive) wake();
    });
  }
}

/** Where the system has no watches left. */
const LOOK_UNWATCHED_MS = 50;
