// The mailbox between the driver and a simulated agent: a folder with a file for each message.
//
// M1  A message is taken once: to take it is to rename `N-ID.json` to `N-ID.taken`, and to take it back is to rename it
//     too. Of the two, one succeeds.
// M2  A message that was sent is not sent again, whatever became of it: its name is made of its id.
// M3  Messages are read in the order in which they were sent, and never half: each gets its name when it is complete.
// M4  Of those that were taken it is told which the reader has begun with, by a file `N-ID.begun` beside each. Until then
//     they wait with it.
//
// A mailbox has one sender and one reader at a time. Keys are taken when they have had their effect.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentMessage } from '../ir/prompt-text.ts';

export interface Letter {
  readonly message: AgentMessage;
  readonly take: () => boolean;
  /** For one that was taken. */
  readonly begin: () => void;
}

export interface SentLetter {
  readonly state: () => 'waiting' | 'taken' | 'withdrawn';
  /** Takes it back, where the reader has not taken it; whether it did. */
  readonly withdraw: () => boolean;
}

/** Made by the agent when it can take messages, beside its mailbox. */
export const READY = 'ready';

/** What the agent says beside its mailbox when it may not work any more; the latest such message counts. */
export interface Limit {
  /** Of the message that it was to work on. */
  readonly id: string;
  /** A part of a sentence. */
  readonly text: string;
  /** When it ends, in milliseconds since 1970; null where that is not known. */
  readonly until: number | null;
}

const LIMITED = 'limited';

export function tellLimit(folder: string, limit: Limit): void {
  const unfinished = join(folder, `${LIMITED}.new`);
  writeFileSync(unfinished, `${JSON.stringify(limit)}\n`, { mode: 0o600 });
  renameSync(unfinished, join(folder, LIMITED));
}

/** The limit that kept the agent from working on this message; null where none did. */
export function limitOf(folder: string, id: string): Limit | null {
  const text = readIfThere(join(folder, LIMITED));
  try {
    const limit = text === null ? null : (JSON.parse(text) as Limit);
    return limit?.id === id ? limit : null;
  } catch (error) {
    // The machine has lost its end.
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

export function mailboxIn(folder: string): string {
  return join(folder, 'mail');
}

export function makeMailbox(folder: string): void {
  mkdirSync(folder, { mode: 0o700, recursive: true });
}

/** `name` is the message's id as a file name. */
export function sendMail(folder: string, name: string, message: AgentMessage): SentLetter {
  const sent = readdirSync(folder).filter((file) => NUMBERED.test(file));
  const earlier = sent.find((file) => idIn(file) === name);
  const stem = earlier === undefined ? `${String(sent.length + 1).padStart(6, '0')}-${name}` : stemOf(earlier);
  if (earlier === undefined) {
    const unfinished = join(folder, `.${stem}`);
    writeFileSync(unfinished, `${JSON.stringify(message)}\n`, { mode: 0o600 });
    renameSync(unfinished, join(folder, `${stem}.json`));
  }
  return {
    state: () => {
      if (existsSync(join(folder, `${stem}.taken`))) return 'taken';
      return existsSync(join(folder, `${stem}.withdrawn`)) ? 'withdrawn' : 'waiting';
    },
    withdraw: () => renamed(folder, stem, 'withdrawn'),
  };
}

/** Whether the reader has begun with it. `name` as in `sendMail`. */
export function hasBegun(folder: string, name: string): boolean {
  return readdirSync(folder).some((file) => file.endsWith('.begun') && idIn(file) === name);
}

/** Those that wait to be taken, in their order. */
export function readMail(folder: string): readonly Letter[] {
  return readdirSync(folder)
    .filter((file) => NUMBERED.test(file) && file.endsWith('.json'))
    .toSorted()
    .flatMap((file) => {
      const text = readIfThere(join(folder, file));
      if (text === null) return [];
      const [message, stem] = [JSON.parse(text) as AgentMessage, stemOf(file)];
      const begin = (): void => writeFileSync(join(folder, `${stem}.begun`), '', { mode: 0o600 });
      return [{ message, take: () => renamed(folder, stem, 'taken'), begin }];
    });
}

const NUMBERED = /^\d{6,}-.*\.(?:json|taken|withdrawn)$/s;

function stemOf(file: string): string {
  return file.slice(0, file.lastIndexOf('.'));
}

function idIn(file: string): string {
  return stemOf(file).replace(/^\d+-/, '');
}

function renamed(folder: string, stem: string, to: 'taken' | 'withdrawn'): boolean {
  try {
    renameSync(join(folder, `${stem}.json`), join(folder, `${stem}.${to}`));
    return true;
  } catch (error) {
    if (isAbsent(error)) return false;
    throw error;
  }
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}

function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
