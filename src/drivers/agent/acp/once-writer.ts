// Writes messages, one in a line, into the pipe that an agent reads, each once by its id: in this life of the engine and
// in all others. A record beside the pipe tells the next life how far this one has come.
//
// N1  `begun` is recorded before the first byte of a line, `whole` when all its bytes are in the pipe and before the line
//     end, `sent` after that.
// N2  An agent hears a line when it has its end. So a line that is not `whole` was not heard; and one that is `whole` is
//     heard at the latest when its next writer ends it. An empty line says nothing.
// N3  What was left in the pipe without being whole is spoilt, so that it cannot become a message, before anything else is
//     written.
// N4  Nothing here waits for the agent to read: what does not fit into the pipe is written when there is room.

import { closeSync, constants, openSync, readFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import { crash } from '../../../sys/throw-uncaught.ts';
import { openPrivate } from '../../../sys/private-file.ts';

/** In the folder of a start: the pipe, what is made when somebody has it open for reading, and the record. */
export const PIPE = 'acp-in';
export const PIPE_OPEN = 'acp-in.open';
const RECORD = 'acp-in.sent';

export type Written =
  /** The agent has it, unless it has died meanwhile. */
  | { readonly kind: 'sent' }
  /** It will never have it. `reason`: a part of a sentence. */
  | { readonly kind: 'not-sent'; readonly reason: string };

type Stage = 'begun' | 'whole' | 'sent' | 'withdrawn';

export class Pen {
  readonly #folder: string;
  readonly #stages = new Map<string, Stage>();
  readonly #waiting: Letter[] = [];
  readonly #known = new Map<string, Promise<Written>>();
  #socket: Socket | null = null;
  #writing = false;
  #closed = false;
  /** There may be a part of a line in the pipe. */
  #half = false;
  /** A line that lacks nothing but its end. */
  #endless: string | null = null;

  constructor(folder: string) {
    this.#folder = folder;
    for (const { stage, id } of recordIn(join(folder, RECORD))) {
      this.#stages.set(id, stage);
      if (stage !== 'withdrawn') this.#half = stage === 'begun';
      if (stage === 'whole') this.#endless = id;
      else if (stage === 'sent') this.#endless = null;
    }
  }

  /** Whether the agent has it, or will without anybody's doing. */
  hasSent(id: string): boolean {
    const stage = this.#stages.get(id);
    return stage === 'sent' || stage === 'whole';
  }

  wasWithdrawn(id: string): boolean {
    return this.#stages.get(id) === 'withdrawn';
  }

  /** All that it has sent, in their order. */
  sent(): readonly string[] {
    return [...this.#stages.keys()].filter((id) => this.hasSent(id));
  }

  /** `line`: without its end. Taken back where it is not whole when it is given up. */
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
      const letter = { id, line, answer, isGivenUp: false };
      this.#waiting.push(letter);
      void givenUp?.then(() => this.#giveUp(letter));
    });
    this.#known.set(id, written);
    this.look();
    return written;
  }

  /** The pipe may be there by now. */
  look(): void {
    if (this.#writing || this.#closed || (this.#waiting.length === 0 && this.#endless === null)) return;
    this.#writing = true;
    this.#writeAll().catch(crash);
  }

  close(): void {
    this.#closed = true;
    this.#drop();
    for (const { answer } of this.#waiting.splice(0)) answer(NOBODY);
  }

  async #writeAll(): Promise<void> {
    try {
      for (;;) {
        const letter = this.#waiting[0];
        if (this.#closed || (letter === undefined && this.#endless === null)) return;
        const socket = this.#open();
        if (socket === null) return;
        if (this.#endless !== null) {
          if (await put(socket, '\n')) this.#reached('sent', this.#endless);
          this.#endless = null;
        } else if (letter !== undefined) {
          // Nobody reads any more: whoever ends us then knows.
          if (!(await this.#send(socket, letter))) return;
          // Closed meanwhile, it is gone already.
          if (this.#waiting[0] === letter) this.#waiting.shift();
        }
      }
    } finally {
      this.#writing = false;
    }
  }

  /** Whether it has been answered. */
  async #send(socket: Socket, letter: Letter): Promise<boolean> {
    const { id, line, answer } = letter;
    const isReady = !this.#half || (await put(socket, SPOILER));
    if (letter.isGivenUp) return this.#withdraw(letter);
    if (!isReady) return false;
    const refused = this.#record('begun', id);
    if (refused !== null) return answer({ kind: 'not-sent', reason: refused });
    this.#half = true;
    if (!(await put(socket, line))) return letter.isGivenUp && this.#withdraw(letter);
    const unfinished = this.#record('whole', id);
    if (unfinished !== null) return answer({ kind: 'not-sent', reason: unfinished });
    this.#half = false;
    if (await put(socket, '\n')) this.#reached('sent', id);
    else this.#endless = id;
    return answer(SENT);
  }

  #giveUp(letter: Letter): void {
    letter.isGivenUp = true;
    const at = this.#waiting.indexOf(letter);
    if (at === -1) return;
    const isInHand = at === 0 && this.#writing;
    if (!isInHand) {
      this.#waiting.splice(at, 1);
      this.#withdraw(letter);
    } else if (this.#stages.get(letter.id) === 'begun') {
      // Whatever is not in the pipe yet stays out of it.
      this.#drop();
    }
  }

  #withdraw({ id, answer }: Letter): true {
    this.#reached('withdrawn', id);
    return answer({ kind: 'not-sent', reason: 'its time was up' });
  }

  /** A stage that stands whether or not it can be recorded: the worst is an empty line, or the same answer once more. */
  #reached(stage: Stage, id: string): void {
    this.#record(stage, id);
    this.#stages.set(id, stage);
  }

  /** Null, or why it cannot be. */
  #record(stage: Stage, id: string): string | null {
    let file: number | null = null;
    try {
      file = openPrivate(join(this.#folder, RECORD));
      // In a line of its own, whatever a full disk has left of the one before.
      const line = `\n${JSON.stringify([stage, id])}\n`;
      if (writeSync(file, line) < Buffer.byteLength(line)) return 'the disk is full';
      this.#stages.set(id, stage);
      return null;
    } catch (error) {
      if (isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) return error.message;
      throw error;
    } finally {
      if (file !== null) closeSync(file);
    }
  }

  /** Null where nobody has it open for reading: not yet, or not any more. */
  #open(): Socket | null {
    if (this.#socket !== null) return this.#socket;
    let file: number;
    try {
      file = openSync(join(this.#folder, PIPE), constants.O_WRONLY | constants.O_NONBLOCK);
    } catch (error) {
      if (isErrno(error, 'ENXIO', ...ABSENT, ...EXHAUSTED)) return null;
      throw error;
    }
    const socket = new Socket({ fd: file, readable: false, writable: true });
    // Each write is told of its own failure.
    socket.on('error', (error: Error) => {
      if (!isErrno(error, 'EPIPE', 'ECANCELED', 'ERR_STREAM_DESTROYED')) throw error;
    });
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = null;
    });
    // An agent does not keep an engine from ending (host/4).
    socket.unref();
    this.#socket = socket;
    return socket;
  }

  #drop(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }
}

/** Whether all of it is in the pipe. */
function put(socket: Socket, text: string): Promise<boolean> {
  return new Promise((resolve) => {
    // What is destroyed may call it written.
    socket.write(text, (error) => resolve((error ?? null) === null && !socket.destroyed));
  });
}

interface Letter {
  readonly id: string;
  readonly line: string;
  readonly answer: (written: Written) => true;
  isGivenUp: boolean;
}

/** No JSON ends so, whatever stands before it. */
const SPOILER = '!\n';

const SENT: Written = { kind: 'sent' };
const NOBODY: Written = { kind: 'not-sent', reason: 'it does not read any more' };

interface Recorded {
  readonly stage: Stage;
  readonly id: string;
}

function recordIn(path: string): readonly Recorded[] {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return [];
    throw error;
  }
  return text.split('\n').flatMap((line) => (line === '' ? [] : recorded(line)));
}

/** A line that is torn tells nothing. */
function recorded(line: string): readonly Recorded[] {
  try {
    const [stage, id] = JSON.parse(line) as readonly [Stage, string];
    return [{ stage, id }];
  } catch (error) {
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}
