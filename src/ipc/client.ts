// Sends messages to a run: through the socket if it can be reached, else through the inbox, where the answer arrives when an
// engine is running again. Commands that use this file start often and run briefly, so it imports little.

import { existsSync, renameSync, unlinkSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import type { JsonMap } from '../base/json.ts';
import { ABSENT, tolerate, UNUSABLE } from '../sys/errors.ts';
import { readUntrustedFile } from '../sys/files.ts';
import { watchChanges } from '../sys/watch.ts';
import { type Answer, decodeAnswer, errorAnswer, LINE_BYTES_MAX } from './protocol.ts';

export interface EngineAddress {
  /** Null if it is unknown. */
  readonly socket: string | null;
  readonly inbox: string | null;
  /** Whether the run is done or failed, and no engine will ever answer. */
  isOver(): boolean;
}

export interface AskOptions {
  /** When the sender gives up even if no engine answers, in milliseconds since 1970; null is never. */
  readonly deadline: number | null;
  /** Whether it stays in the inbox: `when-late` after the deadline, `always` also if the sender is killed or aborts. */
  readonly keep: 'never' | 'when-late' | 'always';
  /** Stops the wait: the answer is null. Without it, SIGINT and SIGTERM end the process. */
  readonly signal?: AbortSignal | undefined;
  /** Called when the message is in the inbox and has no answer yet. */
  onWaiting?(): void;
}

/** Null if the run cannot be reached. A run that can never continue answers with an error of the code `ended`. */
export async function ask(address: EngineAddress, message: JsonMap, options: AskOptions): Promise<Answer | null> {
  const answer = await askSocket(address, message, options.keep === 'always' ? undefined : options.signal);
  return answer ?? askInbox(address, lineOf(message), options);
}

/** Null if the socket cannot be reached, is closed before it answers, or is busy. */
export async function askSocket(
  { socket }: Pick<EngineAddress, 'socket'>,
  message: JsonMap,
  signal?: AbortSignal,
): Promise<Answer | null> {
  if (socket === null || socket === '') return null;
  const answer = await exchange(socket, lineOf(message), signal);
  return answer?.kind === 'error' && answer.code === 'busy' ? null : answer;
}

/** Leaves a message without waiting for the answer. False if the inbox does not exist or cannot be written. */
export function leaveMessage({ inbox }: Pick<EngineAddress, 'inbox'>, message: JsonMap): boolean {
  return inbox !== null && write(inbox, `${newMessageId()}.tell`, lineOf(message));
}

/** Identifies a message that is sent again another way. The inbox orders messages by the leading process id. */
export function newMessageId(): string {
  return `${process.pid}-${Date.now().toString(36)}-${process.hrtime.bigint().toString(36)}`;
}

function lineOf(message: JsonMap): string {
  const line = `${JSON.stringify(message)}\n`;
  if (Buffer.byteLength(line) <= LINE_BYTES_MAX) return line;
  throw new UsageError('the message is larger than 1 MiB', 'write the content to a file, and send its path');
}

function exchange(path: string, line: string, signal?: AbortSignal): Promise<Answer | null> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const connection = createConnection({ path, ...(signal === undefined ? {} : { signal }) });
    connection.on('connect', () => connection.write(line));
    connection.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (!chunk.includes(NEWLINE)) return;
      resolve(decodeAnswer(Buffer.concat(chunks).toString('utf8')));
      connection.destroy();
    });
    // Any error: the inbox is the alternative.
    connection.on('error', () => resolve(null));
    connection.on('close', () => resolve(null));
  });
}

const NEWLINE = 0x0a;

async function askInbox(address: EngineAddress, line: string, options: AskOptions): Promise<Answer | null> {
  const { inbox } = address;
  const { deadline, keep, signal } = options;
  if (inbox === null || (signal?.aborted === true && keep !== 'always')) return null;
  if (address.isOver()) return ENDED;
  const id = newMessageId();
  const question = join(inbox, `${id}.ask`);
  const changes = watchChanges(inbox, signal);
  const exit = (by: NodeJS.Signals): void => {
    if (keep !== 'always') unlinkIfPresent(question);
    process.exit(by === 'SIGINT' ? 130 : 143);
  };
  if (signal === undefined) {
    process.on('SIGINT', exit);
    process.on('SIGTERM', exit);
  }
  try {
    if (!write(inbox, `${id}.ask`, line)) return null;
    options.onWaiting?.();
    for (;;) {
      const open = existsSync(question);
      const answer = takeAnswer(inbox, id);
      if (answer !== null) return answer;
      // Deleted without an answer: the inbox is closed.
      if (!open) return address.isOver() ? ENDED : null;
      if (signal?.aborted === true) {
        if (keep !== 'always') unlinkIfPresent(question);
        return null;
      }
      const left = deadline === null ? null : deadline - Date.now();
      if (left !== null && left <= 0) {
        if (keep === 'never') unlinkIfPresent(question);
        return { kind: 'timeout', message: 'no engine answered in time' };
      }
      await changes.next(left);
    }
  } finally {
    changes.close();
    process.off('SIGINT', exit);
    process.off('SIGTERM', exit);
  }
}

function takeAnswer(inbox: string, id: string): Answer | null {
  const path = join(inbox, `${id}.answer`);
  const file = readUntrustedFile(path, Infinity);
  if (file === null) return null;
  unlinkIfPresent(path);
  unlinkIfPresent(join(inbox, `${id}.ask`));
  return decodeAnswer(file.text ?? '');
}

/** False if the folder does not exist or cannot be written. */
function write(inbox: string, name: string, text: string): boolean {
  return tolerate(UNUSABLE, false, () => {
    const unfinished = join(inbox, `.${name}`);
    writeFileSync(unfinished, text, { mode: 0o600, flag: 'wx' });
    renameSync(unfinished, join(inbox, name));
    return true;
  });
}

const ENDED = errorAnswer('the run is over', 'ended');

function unlinkIfPresent(path: string): void {
  tolerate(ABSENT, undefined, () => unlinkSync(path));
}
