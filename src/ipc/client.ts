// The other end: how a command says something to a run. By the socket where it can be reached; else by the inbox, where the
// answer is waited for as long as it takes, and found when an engine is there again. The commands that use this are called
// often and live shortly, so it needs little and starts nothing.

import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { dirname, join } from 'node:path';
import type { JsonMap } from '../base/json.ts';
import { UsageError } from '../base/usage-error.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { Answer } from './protocol.ts';
import { decodeAnswer, errorAnswer, LINE_BYTES_MAX } from './protocol.ts';
import { readSmallFile } from '../sys/read-untrusted-file.ts';
import { watchChanges } from '../sys/watch.ts';

export interface Reach {
  /** Null where it is not known. */
  readonly socket: string | null;
  readonly inbox: string | null;
}

export interface Patience {
  /** When the sender gives up by itself, in case that no engine does it for it; null is never. */
  readonly until: number | null;
  /**
   * Whether the message stays for the engine that comes next, though nobody waits for its answer any more: `when-late`
   * after its time is up, `always` also when the sender is told to end.
   */
  readonly stays: 'never' | 'when-late' | 'always';
  /**
   * Aborted when the sender waits no longer, by one that lives on: it is told by no signal then, and the answer is null.
   * A message that always stays is still brought to the run.
   */
  readonly gone?: AbortSignal | undefined;
  /** The message lies in the inbox now, and nobody has answered yet. */
  waiting?(): void;
}

/** Null where there is no run to talk to. A run that is over for good answers with an error of the code `ended`. */
export async function ask(reach: Reach, message: JsonMap, patience: Patience): Promise<Answer | null> {
  const line = lineOf(message);
  const answer = await askSocket(reach, line, patience.stays === 'always' ? undefined : patience.gone);
  return answer ?? askInbox(reach, line, patience);
}

/** Null where it cannot be reached, is closed before it answers, or has too much to do. */
export async function askSocket(
  { socket }: Reach,
  message: JsonMap | string,
  gone?: AbortSignal,
): Promise<Answer | null> {
  if (socket === null || socket === '') return null;
  const line = typeof message === 'string' ? message : lineOf(message);
  const answer = await exchange(socket, line, gone);
  return answer?.kind === 'error' && answer.code === 'busy' ? null : answer;
}

/** Leaves a message that nobody waits to see answered. False where there is no inbox. */
export function leave({ inbox }: Reach, message: JsonMap): boolean {
  return inbox !== null && put(inbox, `${newMessageId()}.tell`, lineOf(message));
}

/**
 * Never the same twice on one machine: a message that is sent again by another way is known by it. The process id is in
 * front, for the inbox to tell who came first (`byArrival`).
 */
export function newMessageId(): string {
  return `${process.pid}-${Date.now().toString(36)}-${process.hrtime.bigint().toString(36)}`;
}

/** Whether an engine holds the run, or died while it did. */
export function mayBeHeld(inbox: string): boolean {
  return existsSync(`${dirname(inbox)}.yaml.lock`);
}

function lineOf(message: JsonMap): string {
  const line = `${JSON.stringify(message)}\n`;
  if (Buffer.byteLength(line) <= LINE_BYTES_MAX) return line;
  throw new UsageError('this is too much to be said at once: more than 1 MiB', 'put it into a file, and name the file');
}

function exchange(path: string, line: string, gone?: AbortSignal): Promise<Answer | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const connection = createConnection({ path, ...(gone === undefined ? {} : { signal: gone }) });
    connection.on('connect', () => connection.write(line));
    connection.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (!chunk.includes(NEWLINE)) return;
      resolve(decodeAnswer(Buffer.concat(chunks).toString('utf8')));
      connection.destroy();
    });
    // Whatever it is, the inbox is the other way.
    connection.on('error', () => resolve(null));
    connection.on('close', () => resolve(null));
  });
}

const NEWLINE = 0x0a;

async function askInbox({ inbox }: Reach, line: string, patience: Patience): Promise<Answer | null> {
  const { until, stays, gone } = patience;
  if (inbox === null || (gone?.aborted === true && stays !== 'always')) return null;
  if (isOverForGood(inbox)) return ended();
  const id = newMessageId();
  const question = join(inbox, `${id}.ask`);
  const changes = watchChanges(inbox, { signal: gone });
  const leaveNow = (signal: NodeJS.Signals): void => {
    if (stays !== 'always') unlinkIfThere(question);
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  if (gone === undefined) {
    process.on('SIGINT', leaveNow);
    process.on('SIGTERM', leaveNow);
  }
  try {
    if (!put(inbox, `${id}.ask`, line)) return null;
    patience.waiting?.();
    for (;;) {
      const open = existsSync(question);
      const answer = takeAnswer(inbox, id);
      if (answer !== null) return answer;
      // It was taken away unanswered: the inbox is closed.
      if (!open) return isOverForGood(inbox) ? ended() : null;
      if (gone?.aborted === true) {
        if (stays !== 'always') unlinkIfThere(question);
        return null;
      }
      const left = until === null ? null : until - Date.now();
      if (left !== null && left <= 0) {
        if (stays === 'never') unlinkIfThere(question);
        return { kind: 'timeout', message: 'no engine answered in time' };
      }
      await changes.next(left);
    }
  } finally {
    changes.close();
    process.off('SIGINT', leaveNow);
    process.off('SIGTERM', leaveNow);
  }
}

function takeAnswer(inbox: string, id: string): Answer | null {
  const path = join(inbox, `${id}.answer`);
  const file = readSmallFile(path, Infinity);
  if (file === null) return null;
  unlinkIfThere(path);
  unlinkIfThere(join(inbox, `${id}.ask`));
  return decodeAnswer(file.text ?? '');
}

/** False where there is no such folder, or it cannot be written. */
function put(inbox: string, name: string, text: string): boolean {
  const unfinished = join(inbox, `.${name}`);
  try {
    writeFileSync(unfinished, text, { mode: 0o600, flag: 'wx' });
    renameSync(unfinished, join(inbox, name));
    return true;
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return false;
    throw error;
  }
}

function ended(): Answer {
  return errorAnswer('the run is over', 'ended');
}

/** Done or failed, by the last record of its journal. A record may be long, and is read as far as it takes. */
function isOverForGood(inbox: string): boolean {
  let file: number;
  try {
    file = openSync(join(dirname(inbox), 'journal.jsonl'), 'r');
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return false;
    throw error;
  }
  try {
    const { size } = fstatSync(file);
    for (let length = Math.min(size, TAIL_BYTES); ; length = Math.min(size, 16 * length)) {
      const bytes = Buffer.alloc(length);
      readSync(file, bytes, 0, length, size - length);
      const lines = bytes.toString('utf8').split('\n');
      if (lines.length > 2 || length === size) return isEnd(lines.at(-2) ?? '');
    }
  } finally {
    closeSync(file);
  }
}

const TAIL_BYTES = 64 * 1024;

function isEnd(line: string): boolean {
  try {
    const { decisions } = JSON.parse(line) as Partial<JournalRecord>;
    return decisions?.some((made) => made.kind === 'run-ended' && ['done', 'failed'].includes(made.end)) ?? false;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

function unlinkIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (!isErrno(error, ...ABSENT)) throw error;
  }
}
