// The inbox of a run: a private folder in which messages are left for the engine, whether it is there or not. It is the
// way for those who cannot reach the socket, and for `meow event`, which starts no program to write to it.
//
//   ID.ask      a message as on the socket, whose sender waits for ID.answer
//   ID.tell     the same; nobody waits
//   PID.event   what a shell wrote (event-file.ts)
//   ID.answer   one line, for the sender to take away
//   refused/    what was no message, or was refused and its sender does not know; a few are kept for people to look at
//   .anything   is being written
//
//   I1  A file is deleted when what it says is durable, not before: a message that was left is heard, and by its id once.
//   I2  What came first is heard first, as far as the clock of the file system tells.
//   I3  Anything else in the folder is left alone: other names, folders, links.
//   I4  A sender that deletes its ID.ask waits no longer. An ID.ask that is gone without an ID.answer will not be answered.
//   I5  What is read is bounded: the size of a file, how many are heard at a time, and what is kept of the refused.

import type { FSWatcher } from 'node:fs';
import { lstatSync, readdirSync, renameSync, rmdirSync, unlinkSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makePrivateFolder } from './address.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import { parseEventFile } from './event-file.ts';
import type { Answer, Message } from './protocol.ts';
import { encodeAnswer, errorAnswer, LINE_BYTES_MAX, parseMessage } from './protocol.ts';
import type { SmallFile } from '../sys/read-untrusted-file.ts';
import { readSmallFile } from '../sys/read-untrusted-file.ts';
import { UsageError } from '../base/usage-error.ts';

const FILES_AT_A_TIME = 256;
const BYTES_AT_A_TIME = 8 * 1024 * 1024;
const REFUSED_MAX = 32;
const WARNINGS_MAX = 32;
/** A shell that has not written a few bytes by then never will. */
const UNFINISHED_MS = 60_000;
/** An answer that was not taken away by then has no taker. */
const ANSWER_KEPT_MS = 600_000;
/** Where the system has no watches left. */
const LOOK_MS = 250;

const MESSAGE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.(ask|tell|event)$/;
const UNFINISHED = /^\..*\.(ask|tell|answer)$/;

export interface InboxOptions {
  readonly folder: string;
  readonly runId: string;
  /** Null: the sender has gone, or there is no engine any more. */
  answer(message: Message, gone: AbortSignal): Promise<Answer | null>;
  /** A line for people: something in the folder is not as it should be. */
  warn(line: string): void;
}

export class Inbox {
  readonly #options: InboxOptions;
  /** Those that are being answered, and those that were and cannot be deleted. */
  readonly #inHand = new Map<string, AbortController>();
  readonly #answering = new Set<Promise<void>>();
  #watcher: FSWatcher | null = null;
  #looking: NodeJS.Timeout | undefined;
  #pass: Promise<void> = Promise.resolve();
  #nextPass: Promise<void> | null = null;
  #warnings = 0;
  #closed = false;

  constructor(options: InboxOptions) {
    this.#options = options;
    makePrivateFolder(options.folder);
  }

  /** From here on what lies there is heard, and what comes. */
  open(): void {
    const look = (): void => void this.sweep();
    try {
      this.#watcher = watch(this.#options.folder, (_kind, name) => {
        if (name === null || MESSAGE.test(name)) look();
      });
      // The folder was deleted; the socket is still there.
      this.#watcher.on('error', (error) => assertErrno(error, ...ABSENT, 'EPERM'));
    } catch (error) {
      assertErrno(error, 'ENOSPC', 'EMFILE', 'ENFILE');
      this.#looking = setInterval(look, LOOK_MS);
    }
    this.#deleteStaleAnswers();
    look();
  }

  /** Resolves when everything that lies there now has been heard. */
  sweep(): Promise<void> {
    this.#nextPass ??= this.#pass.then(() => {
      this.#nextPass = null;
      const pass = this.#closed ? Promise.resolve() : this.#hearAll();
      // A bug that ends one is told to who wanted it, and keeps nobody from the next.
      this.#pass = pass.catch(() => undefined);
      return pass;
    });
    return this.#nextPass;
  }

  /** `over`: nobody will ever read it again. Then nothing is left but answers that wait for their takers. */
  async close(over: boolean): Promise<void> {
    this.#closed = true;
    this.#watcher?.close();
    clearInterval(this.#looking);
    await this.#pass;
    await Promise.all(this.#answering);
    if (over) this.#deleteAll();
  }

  async #hearAll(): Promise<void> {
    const names = new Set(namesIn(this.#options.folder));
    for (const [name, gone] of this.#inHand) if (!names.has(name)) gone.abort();
    const fresh = [...names].filter((name) => MESSAGE.test(name) && !this.#inHand.has(name));
    const inOrder = fresh.map((name) => this.#arrival(name)).toSorted(byArrival);
    let taken = 0;
    for (let from = 0; from < inOrder.length && !this.#closed; ) {
      const heard: Promise<boolean>[] = [];
      // Who waits is answered when it is time; the others are heard together.
      for (let bytes = 0; from < inOrder.length && heard.length < FILES_AT_A_TIME && bytes < BYTES_AT_A_TIME; from++) {
        const { name, size } = inOrder[from] ?? NOTHING;
        heard.push(this.#hear(name));
        bytes += size;
      }
      taken += (await Promise.all(heard)).filter(Boolean).length;
    }
    // The system forgets to tell where there was much to tell.
    if (taken >= FILES_AT_A_TIME) void this.sweep();
  }

  #arrival(name: string): Arrival {
    const { mtimeMs, size } = lstatSync(this.#path(name), { throwIfNoEntry: false }) ?? NOTHING;
    return { name, mtimeMs, size, number: Number.parseInt(name, 10) || 0 };
  }

  /** Resolves when it has been heard, or is none that is heard at once; whether it was there and finished. */
  async #hear(name: string): Promise<boolean> {
    const file = readSmallFile(this.#path(name), LINE_BYTES_MAX);
    const read = file === null ? null : this.#messageIn(name, file);
    if (read === null) return false;
    if (typeof read === 'string') {
      this.#refuse(name, read);
      return true;
    }
    const answered = this.#answer(name, read);
    this.#answering.add(answered);
    const done = answered.finally(() => this.#answering.delete(answered));
    if (read.kind !== 'await-event' && read.kind !== 'await-approval') await done;
    return true;
  }

  /** Null where it is not finished; a text says what is wrong with it. */
  #messageIn(name: string, { text, mtimeMs, ino }: SmallFile): Message | string | null {
    const { runId } = this.#options;
    if (text === null) return `it has more than ${LINE_BYTES_MAX} bytes`;
    const parsed = name.endsWith('.event')
      ? parseEventFile(text, `${name}-${ino}-${Math.floor(mtimeMs)}`, runId)
      : parseMessage(text, runId);
    if (parsed === null) return Date.now() - mtimeMs > UNFINISHED_MS ? 'it was never finished' : null;
    return parsed.ok ? parsed.value : parsed.error;
  }

  async #answer(name: string, message: Message): Promise<void> {
    const gone = new AbortController();
    this.#inHand.set(name, gone);
    const answer = await this.#options.answer(message, gone.signal);
    const isLeft = answer?.kind === 'error' && answer.code === 'ending' && !name.endsWith('.ask');
    // It is not done with: the engine that comes next will find it.
    if (isLeft || (answer === null && !gone.signal.aborted)) return;
    if (answer?.kind === 'error' && !name.endsWith('.ask')) {
      this.#warn(`the message ${name} was refused: ${answer.message}`);
      if (this.#putAside(name)) this.#inHand.delete(name);
      return;
    }
    if (answer !== null && name.endsWith('.ask')) this.#handOver(name, answer);
    if (this.#delete(name)) this.#inHand.delete(name);
  }

  /** The answer is there before the question is gone (I4). */
  #handOver(name: string, answer: Answer): void {
    const id = name.slice(0, -'.ask'.length);
    const unfinished = this.#path(`.${id}.answer`);
    try {
      writeFileSync(unfinished, encodeAnswer(answer), { mode: 0o600 });
      renameSync(unfinished, this.#path(`${id}.answer`));
    } catch (error) {
      assertErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED);
      this.#warn(`the message ${name} cannot be answered (${error.code})`);
    }
  }

  #refuse(name: string, why: string): void {
    if (name.endsWith('.ask')) this.#handOver(name, errorAnswer(why, 'malformed'));
    this.#warn(`${join(this.#options.folder, name)} is no message: ${why}`);
    // One that stays is not looked at again.
    if (!this.#putAside(name)) this.#inHand.set(name, new AbortController());
  }

  /** Whether it is out of the way. */
  #putAside(name: string): boolean {
    const refused = this.#path('refused');
    try {
      makePrivateFolder(refused);
      if (namesIn(refused).length < REFUSED_MAX) renameSync(this.#path(name), join(refused, name));
      else unlinkSync(this.#path(name));
      return true;
    } catch (error) {
      // Somebody has put something else in the place of the folder.
      if (!(error instanceof UsageError)) assertErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED);
      return false;
    }
  }

  #warn(line: string): void {
    this.#warnings += 1;
    if (this.#warnings <= WARNINGS_MAX) this.#options.warn(line);
  }

  #deleteStaleAnswers(): void {
    for (const name of namesIn(this.#options.folder)) {
      const { mtimeMs } = this.#arrival(name);
      if (name.endsWith('.answer') && Date.now() - mtimeMs > ANSWER_KEPT_MS) this.#delete(name);
    }
  }

  #deleteAll(): void {
    for (const name of namesIn(this.#options.folder)) {
      if (MESSAGE.test(name) || UNFINISHED.test(name)) this.#delete(name);
    }
    try {
      rmdirSync(this.#options.folder);
    } catch (error) {
      assertErrno(error, 'ENOTEMPTY', 'EEXIST', ...ABSENT, ...REFUSED, ...EXHAUSTED);
    }
  }

  /** Whether it is gone. */
  #delete(name: string): boolean {
    try {
      unlinkSync(this.#path(name));
      return true;
    } catch (error) {
      assertErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED);
      return isErrno(error, ...ABSENT);
    }
  }

  #path(name: string): string {
    return join(this.#options.folder, name);
  }
}

interface Arrival {
  readonly name: string;
  readonly mtimeMs: number;
  readonly size: number;
  readonly number: number;
}

const NOTHING: Arrival = { name: '', mtimeMs: 0, size: 0, number: 0 };

/** File systems tell the time in steps of some milliseconds; within one, the lower process id is most likely the first. */
function byArrival(a: Arrival, b: Arrival): number {
  return a.mtimeMs - b.mtimeMs || a.number - b.number || (a.name < b.name ? -1 : 1);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    assertErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED);
    return [];
  }
}

/** Passes on what nobody foresaw. */
function assertErrno(
  error: unknown,
  ...codes: readonly [string, ...(readonly string[])]
): asserts error is NodeJS.ErrnoException {
  if (!isErrno(error, ...codes)) throw error;
}
