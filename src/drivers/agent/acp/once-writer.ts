// Writes lines into the pipe that an agent reads, each exactly once by its id, across all lives of the engine. A record
// beside the pipe tells the next engine how far this one got.
//
// once-writer/1  `begun` is recorded before the first byte of a line, `whole` when all its bytes are in the pipe and before
//                the line end, `sent` after that.
// once-writer/2  An agent reads a line when the line has its end. So a line that is not `whole` was not read, and one that is
//                `whole` is read at the latest when the next writer ends it. Agents ignore empty lines.
// once-writer/3  An incomplete line left in the pipe is made invalid, so that it cannot become a message, before anything
//                else is written.
// once-writer/4  Nothing here waits for the agent to read: what does not fit into the pipe is written when there is room.

import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';

import { err, ok, type Result } from '../../../base/errors.ts';
import { parseJson } from '../../../base/json.ts';
import { ABSENT, crash, EXHAUSTED, isErrno, REFUSED, tolerate } from '../../../sys/errors.ts';
import { openPrivate, readFileEnd } from '../../../sys/files.ts';
import { unlessRefused } from '../../step-folder.ts';

/** In the folder of a start: the pipe, a file that exists once a reader has opened it, and the record. */
export const PIPE = 'acp-in';
export const PIPE_OPEN = 'acp-in.open';
const RECORD = 'acp-in.sent';

export type Written =
  /** The agent has it, unless the agent has died. */
  | { readonly kind: 'sent' }
  /** The agent will never have it. `reason`: a clause. */
  | { readonly kind: 'not-sent'; readonly reason: string };

type Stage = 'begun' | 'whole' | 'sent' | 'withdrawn';

export class OnceWriter {
  readonly #folder: string;
  readonly #stages = new Map<string, Stage>();
  readonly #waiting: PendingLine[] = [];
  readonly #known = new Map<string, Promise<Written>>();
  #socket: Socket | null = null;
  #writing = false;
  #closed = false;
  /** The pipe may end with a part of a line. */
  #isPartial = false;
  /** Id of a line that lacks only its end. */
  #unended: string | null = null;

  constructor(folder: string) {
    this.#folder = folder;
    for (const [stage, id] of recordIn(join(folder, RECORD))) {
      this.#stages.set(id, stage);
      if (stage !== 'withdrawn') this.#isPartial = stage === 'begun';
      if (stage === 'whole') this.#unended = id;
      else if (stage === 'sent') this.#unended = null;
    }
  }

  /** The agent has it, or will have it in any case. */
  hasSent(id: string): boolean {
    const stage = this.#stages.get(id);
    return stage === 'sent' || stage === 'whole';
  }

  wasWithdrawn(id: string): boolean {
    return this.#stages.get(id) === 'withdrawn';
  }

  /** Ids of all lines sent, in order. */
  sent(): readonly string[] {
    return [...this.#stages.keys()].filter((id) => this.hasSent(id));
  }

  /** `line`: without its end. Withdrawn if it is not whole when `givenUp` resolves. */
  write(id: string, line: string, givenUp?: Promise<unknown>): Promise<Written> {
    if (this.hasSent(id)) return Promise.resolve(SENT);
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const written = new Promise<Written>((resolve) => {
      const answer = (what: Written): true => {
        this.#known.delete(id);
        resolve(what);
        return true;
      };
      const pending = { id, line, answer, isGivenUp: false };
      this.#waiting.push(pending);
      void givenUp?.then(() => this.#giveUp(pending));
    });
    this.#known.set(id, written);
    this.update();
    return written;
  }

  /** To be called when the pipe may exist. */
  update(): void {
    if (this.#writing || this.#closed || (this.#waiting.length === 0 && this.#unended === null)) return;
    this.#writing = true;
    this.#writeAll().catch(crash);
  }

  close(): void {
    this.#closed = true;
    this.#drop();
    for (const { answer } of this.#waiting.splice(0)) answer(CLOSED);
  }

  async #writeAll(): Promise<void> {
    try {
      for (;;) {
        const pending = this.#waiting[0];
        if (this.#closed || (pending === undefined && this.#unended === null)) return;
        const socket = this.#open();
        if (socket === null) return;
        if (this.#unended !== null) {
          if (await put(socket, '\n')) this.#reached('sent', this.#unended);
          this.#unended = null;
        } else if (pending !== undefined) {
          // Nobody reads any more. `close` answers the rest.
          if (!(await this.#send(socket, pending))) return;
          // `close` may have removed it.
          if (this.#waiting[0] === pending) this.#waiting.shift();
        }
      }
    } finally {
      this.#writing = false;
    }
  }

  /** Whether the pending line was answered. */
  async #send(socket: Socket, pending: PendingLine): Promise<boolean> {
    const { id, line, answer } = pending;
    const isReady = !this.#isPartial || (await put(socket, INVALID_END));
    if (pending.isGivenUp) return this.#withdraw(pending);
    if (!isReady) return false;
    const begun = this.#record('begun', id);
    if (!begun.ok) return answer({ kind: 'not-sent', reason: begun.error });
    this.#isPartial = true;
    if (!(await put(socket, line))) return pending.isGivenUp && this.#withdraw(pending);
    const whole = this.#record('whole', id);
    if (!whole.ok) return answer({ kind: 'not-sent', reason: whole.error });
    this.#isPartial = false;
    if (await put(socket, '\n')) this.#reached('sent', id);
    else this.#unended = id;
    return answer(SENT);
  }

  #giveUp(pending: PendingLine): void {
    pending.isGivenUp = true;
    const at = this.#waiting.indexOf(pending);
    if (at === -1) return;
    const isBeingWritten = at === 0 && this.#writing;
    if (!isBeingWritten) {
      this.#waiting.splice(at, 1);
      this.#withdraw(pending);
    } else if (this.#stages.get(pending.id) === 'begun') {
      // Keeps the rest of the line out of the pipe.
      this.#drop();
    }
  }

  #withdraw({ id, answer }: PendingLine): true {
    this.#reached('withdrawn', id);
    return answer({ kind: 'not-sent', reason: 'timed out' });
  }

  /** For a stage that holds even if it cannot be recorded: at worst, an empty line or a repeated answer follows. */
  #reached(stage: Stage, id: string): void {
    this.#record(stage, id);
    this.#stages.set(id, stage);
  }

  /** The error is a clause. */
  #record(stage: Stage, id: string): Result<null, string> {
    // Starts with a line end, since a full disk may have cut the line before.
    const line = `\n${JSON.stringify([stage, id])}\n`;
    const recorded = unlessRefused(() => {
      const file = openPrivate(join(this.#folder, RECORD));
      try {
        return writeSync(file, line) < Buffer.byteLength(line) ? err('the disk is full') : ok(null);
      } finally {
        closeSync(file);
      }
    });
    if (recorded.ok) this.#stages.set(id, stage);
    return recorded;
  }

  /** Null if no reader has the pipe open: not yet, or no longer. */
  #open(): Socket | null {
    if (this.#socket !== null) return this.#socket;
    const file = tolerate(['ENXIO', ...ABSENT, ...EXHAUSTED], null, () =>
      openSync(join(this.#folder, PIPE), constants.O_WRONLY | constants.O_NONBLOCK),
    );
    if (file === null) return null;
    const socket = new Socket({ fd: file, readable: false, writable: true });
    // Each write gets its own failure.
    socket.on('error', (error: Error) => {
      if (!isErrno(error, 'EPIPE', 'ECANCELED', 'ERR_STREAM_DESTROYED')) throw error;
    });
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = null;
    });
    // An agent does not keep the engine running (host/4).
    socket.unref();
    this.#socket = socket;
    return socket;
  }

  #drop(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }
}

/** True if all of the text is in the pipe. */
function put(socket: Socket, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    // A destroyed socket may report success.
    socket.write(text, (error) => resolve((error ?? null) === null && !socket.destroyed));
  });
}

interface PendingLine {
  readonly id: string;
  readonly line: string;
  readonly answer: (written: Written) => true;
  isGivenUp: boolean;
}

/** Nothing that ends like this is JSON. */
const INVALID_END = '!\n';

const SENT: Written = { kind: 'sent' };
const CLOSED: Written = { kind: 'not-sent', reason: 'it no longer reads' };

/** A torn line is ignored. */
function recordIn(path: string): readonly (readonly [Stage, string])[] {
  const lines = tolerate([...ABSENT, ...REFUSED], '', () => readFileEnd(path, Infinity)).split('\n');
  return lines.map((line) => parseJson(line) as readonly [Stage, string] | null).filter((entry) => entry !== null);
}
