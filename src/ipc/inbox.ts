// The inbox of a run: a private folder with messages for the engine, whether one is running or not. It serves callers that
// cannot reach the socket, and `meow event`, which writes to it without starting a program.
//
//   ID.ask      a message as on the socket; the sender waits for ID.answer
//   ID.tell     the same, but nobody waits
//   PID.event   written by a shell (bin/event.sh)
//   ID.answer   one line; the sender deletes it
//   refused/    malformed messages, and refused ones whose sender does not wait; a few are stored for people
//   .anything   being written
//
//   inbox/1  A file is deleted when its message is durable, not before: every message is handled, and once by its id.
//   inbox/2  Messages are handled in order of arrival, as precisely as the file system's clock tells.
//   inbox/3  Anything else in the folder is left alone: other names, folders, links.
//   inbox/4  A sender that deletes its ID.ask waits no longer. An ID.ask that disappears without an ID.answer is not answered.
//   inbox/5  Everything read is bounded: the size of a file, the number handled at a time, and the number of refused ones.

import { type FSWatcher, lstatSync, readdirSync, renameSync, rmdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';

import { err, type Result, UsageError } from '../base/errors.ts';
import { ABSENT, isErrno, tolerate, UNUSABLE } from '../sys/errors.ts';
import { makePrivateFolder, readUntrustedFile, replacePrivate, type UntrustedFile } from '../sys/files.ts';
import { watchPath } from '../sys/watch.ts';
import type { Answer, AnswerMessage, Message } from './protocol.ts';
import { encodeAnswer, errorAnswer, LINE_BYTES_MAX, parseMessage } from './protocol.ts';

const FILES_AT_A_TIME = 256;
const BYTES_AT_A_TIME = 8 * 1024 * 1024;
const REFUSED_MAX = 32;
const WARNINGS_MAX = 32;
/** A shell needs far less to write a few bytes. */
const UNFINISHED_MS = 60_000;
/** After this time nobody reads the answer any more. */
const ANSWER_KEPT_MS = 600_000;
/** A system has at least so many process ids. */
const PROCESS_IDS_MIN = 32_768;
/** If the system has no watches left. */
const LOOK_MS = 250;

const MESSAGE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.(ask|tell|event)$/;
const UNFINISHED = /^\..*\.(?:ask|tell)$|\.answer\.[0-9a-f]+\.new$/;

export interface InboxOptions {
  readonly folder: string;
  readonly runId: string;
  readonly answer: AnswerMessage;
  /** Shows a line to people: something in the folder is wrong. */
  warn(line: string): void;
}

export class Inbox {
  readonly #options: InboxOptions;
  /** Messages that are being handled, and handled ones that cannot be deleted. */
  readonly #inProgress = new Map<string, AbortController>();
  readonly #answering = new Set<Promise<void>>();
  #watcher: FSWatcher | null = null;
  #timer: NodeJS.Timeout | undefined;
  #pass: Promise<void> = Promise.resolve();
  #nextPass: Promise<void> | null = null;
  #warnings = 0;
  #closed = false;

  constructor(options: InboxOptions) {
    this.#options = options;
    makePrivateFolder(options.folder);
  }

  open(): void {
    const look = (): void => void this.sweep();
    this.#watcher = watchPath(this.#options.folder, (name) => {
      if (name === null || MESSAGE.test(name)) look();
    });
    if (this.#watcher === null) this.#timer = setInterval(look, LOOK_MS);
    this.#deleteStaleAnswers();
    look();
  }

  /** Resolves when all messages that are there now have been handled. */
  sweep(): Promise<void> {
    this.#nextPass ??= this.#pass.then(() => {
      this.#nextPass = null;
      const pass = this.#closed ? Promise.resolve() : this.#handleAll();
      // A bug is reported to the caller of this pass, and does not stop the next one.
      this.#pass = pass.catch(() => undefined);
      return pass;
    });
    return this.#nextPass;
  }

  /** `over`: nobody will ever read the inbox again. Then only unread answers are left. */
  async close(over: boolean): Promise<void> {
    this.#closed = true;
    this.#watcher?.close();
    clearInterval(this.#timer);
    await this.#pass;
    await Promise.all(this.#answering);
    if (over) this.#deleteAll();
  }

  async #handleAll(): Promise<void> {
    const names = new Set(namesIn(this.#options.folder));
    for (const [name, gone] of this.#inProgress) if (!names.has(name)) gone.abort();
    const fresh = [...names].filter((name) => MESSAGE.test(name) && !this.#inProgress.has(name));
    const queue = inOrder(this.#options.folder, fresh).toReversed();
    let count = 0;
    while (queue.length > 0 && !this.#closed) {
      const handled: Promise<boolean>[] = [];
      // Messages that wait are answered later; the others are handled together.
      for (let bytes = 0; handled.length < FILES_AT_A_TIME && bytes < BYTES_AT_A_TIME; ) {
        const next = queue.pop();
        if (next === undefined) break;
        handled.push(this.#handle(next.name));
        bytes += next.size;
      }
      count += (await Promise.all(handled)).filter(Boolean).length;
    }
    // After many changes the system drops notifications.
    if (count >= FILES_AT_A_TIME) void this.sweep();
  }

  /** Resolves when the message has been handled, or waits; with whether the file existed and was complete. */
  async #handle(name: string): Promise<boolean> {
    const file = readUntrustedFile(this.#path(name), LINE_BYTES_MAX);
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

  /** Null if the file is incomplete; a string says what is wrong. */
  #messageIn(name: string, { text, mtimeMs, ino }: UntrustedFile): Message | string | null {
    const { runId } = this.#options;
    if (text === null) return `it has more than ${LINE_BYTES_MAX} bytes`;
    const parsed = name.endsWith('.event')
      ? parseEventFile(text, `${name}-${ino}-${Math.floor(mtimeMs)}`, runId)
      : parseMessage(text, runId);
    if (parsed === null) return Date.now() - mtimeMs > UNFINISHED_MS ? 'it is incomplete' : null;
    return parsed.ok ? parsed.value : parsed.error;
  }

  async #answer(name: string, message: Message): Promise<void> {
    const gone = new AbortController();
    this.#inProgress.set(name, gone);
    const answer = await this.#options.answer(message, gone.signal);
    const isAsked = name.endsWith('.ask');
    const isRefused = answer?.kind === 'error' && !isAsked;
    // The next engine will handle it.
    if ((isRefused && answer.code === 'ending') || (answer === null && !gone.signal.aborted)) return;
    if (isRefused) this.#warn(`the message ${name} was refused: ${answer.message}`);
    if (answer !== null && isAsked) this.#writeAnswer(name, answer);
    const isRemoved = isRefused ? this.#moveToRefused(name) : this.#delete(name);
    if (isRemoved) this.#inProgress.delete(name);
  }

  /** The answer exists before the question is deleted (inbox/4). */
  #writeAnswer(name: string, answer: Answer): void {
    const id = name.slice(0, -'.ask'.length);
    try {
      replacePrivate(this.#path(`${id}.answer`), encodeAnswer(answer));
    } catch (error) {
      if (!isErrno(error, ...UNUSABLE)) throw error;
      this.#warn(`message ${name} cannot be answered (${error.code})`);
    }
  }

  #refuse(name: string, why: string): void {
    if (name.endsWith('.ask')) this.#writeAnswer(name, errorAnswer(why, 'malformed'));
    this.#warn(`${join(this.#options.folder, name)} is not a message: ${why}`);
    // A file that stays is not read again.
    if (!this.#moveToRefused(name)) this.#inProgress.set(name, new AbortController());
  }

  /** Whether it was moved or deleted. */
  #moveToRefused(name: string): boolean {
    const refused = this.#path('refused');
    try {
      makePrivateFolder(refused);
      if (namesIn(refused).length < REFUSED_MAX) renameSync(this.#path(name), join(refused, name));
      else unlinkSync(this.#path(name));
      return true;
    } catch (error) {
      // Something else is in the place of the folder.
      if (!(error instanceof UsageError) && !isErrno(error, ...UNUSABLE)) throw error;
      return false;
    }
  }

  #warn(line: string): void {
    this.#warnings += 1;
    if (this.#warnings <= WARNINGS_MAX) this.#options.warn(line);
  }

  #deleteStaleAnswers(): void {
    const { folder } = this.#options;
    for (const { name, mtimeMs } of inOrder(folder, namesIn(folder))) {
      if (name.endsWith('.answer') && Date.now() - mtimeMs > ANSWER_KEPT_MS) this.#delete(name);
    }
  }

  #deleteAll(): void {
    const { folder } = this.#options;
    for (const name of namesIn(folder)) if (MESSAGE.test(name) || UNFINISHED.test(name)) this.#delete(name);
    tolerate(['ENOTEMPTY', 'EEXIST', ...UNUSABLE], undefined, () => rmdirSync(folder));
  }

  /** Whether the file no longer exists. */
  #delete(name: string): boolean {
    return tolerate(UNUSABLE, false, () => {
      tolerate(ABSENT, undefined, () => unlinkSync(this.#path(name)));
      return true;
    });
  }

  #path(name: string): string {
    return join(this.#options.folder, name);
  }
}

interface Arrival {
  readonly name: string;
  readonly mtimeMs: number;
  readonly size: number;
}

/** In order of arrival. Within a tick of the file system's clock the lower process id most likely came first. */
function inOrder(folder: string, names: readonly string[]): readonly Arrival[] {
  const arrivals = names.map((name) => {
    const { mtimeMs, size } = lstatSync(join(folder, name), { throwIfNoEntry: false }) ?? { mtimeMs: 0, size: 0 };
    return { name, mtimeMs, size, number: Number.parseInt(name, 10) || 0 };
  });
  return arrivals.sort(
    (a, b) => a.mtimeMs - b.mtimeMs || compareProcessIds(a.number, b.number) || (a.name < b.name ? -1 : 1),
  );
}

/** Smaller is earlier, unless the system has started again from a small one in between. */
function compareProcessIds(a: number, b: number): number {
  return Math.abs(a - b) < PROCESS_IDS_MIN / 2 ? a - b : b - a;
}

function namesIn(folder: string): readonly string[] {
  return tolerate(UNUSABLE, [], () => readdirSync(folder));
}

// The message that `meow event` leaves in an inbox. It is written by a shell alone (bin/event.sh), which can neither quote
// JSON nor count bytes, but can write a NUL, which no argument contains. So the file contains the arguments as they were
// given, each with a NUL after it.
//
//   meow-event-1 · number of fields that follow · run · agent · TYPE · --data · k=v · …
//
// The shell writes the file in place. An incomplete file is recognized by the number of its fields.

const MAGIC = 'meow-event-1';

/** Null if the file is incomplete. `id`: identifies the message. An error is a sentence. */
export function parseEventFile(text: string, id: string, runId: string): Result<Message, string> | null {
  const [magic, announced, ...rest] = text.split('\0');
  if (rest.length === 0) return `${MAGIC}\0`.startsWith(text) || magic === MAGIC ? null : err('it is not an event');
  if (magic !== MAGIC || !/^[1-9]\d{0,5}$/.test(announced ?? '')) return err('it is not an event');
  // Nothing follows the last NUL.
  const fields = rest.slice(0, -1);
  if (fields.length < Number(announced)) return null;
  const [workflow = '', agent = '', type = '', ...args] = fields;
  const data = dataOf(args);
  if (fields.length > Number(announced) || data === null) return err('it is not an event');
  return parseMessage(JSON.stringify({ type: 'event', id, workflow, agent, event_type: type, data }), runId);
}

/** `--data k=v` and `--data=k=v`. */
function dataOf(args: readonly string[]): Readonly<Record<string, string>> | null {
  const entries: [string, string][] = [];
  for (let at = 0; at < args.length; at++) {
    const flag = args[at] ?? '';
    const pair = flag === '--data' ? args[++at] : flag.startsWith('--data=') ? flag.slice('--data='.length) : undefined;
    const equals = pair?.indexOf('=') ?? -1;
    if (pair === undefined || equals < 1) return null;
    entries.push([pair.slice(0, equals), pair.slice(equals + 1)]);
  }
  return Object.fromEntries(entries);
}

/** Messages that no engine has applied yet, in order of arrival: a new decision must respect earlier ones. */
export function pendingMessages(inbox: string, runId: string): readonly Message[] {
  const names = namesIn(inbox).filter((name) => name.endsWith('.tell') && !name.startsWith('.'));
  return inOrder(inbox, names).flatMap(({ name }) => {
    const message = parseMessage(readUntrustedFile(join(inbox, name), LINE_BYTES_MAX)?.text ?? '', runId);
    return message.ok ? [message.value] : [];
  });
}

export function refusedMessages(inbox: string): readonly string[] {
  return namesIn(join(inbox, 'refused'));
}
