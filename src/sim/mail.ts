// The mailbox between the driver and a simulated agent: a folder with a file for each message.
//
// mailbox/1  A message is taken once: taking renames `N-ID.json` to `N-ID.taken`, and withdrawing renames it as well,
//            so only one of the two succeeds.
// mailbox/2  A message is never sent twice: its file name is derived from its id.
// mailbox/3  Messages are read in the order of sending, and never half written: a file gets its name when it is
//            complete.
// mailbox/4  A file `N-ID.begun` marks each taken message that the reader has started with.
//
// A mailbox has one sender and one reader at a time. Key presses are taken after they had their effect.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { fields, isText } from '../base/shape.ts';
import type { Usage } from '../ir/output.ts';
import type { AgentMessage } from '../ir/prompt-text.ts';
import { isUsage } from '../ir/usage-shape.ts';
import { tolerate } from '../sys/errors.ts';
import { appendLine, readJsonFile, readLines, writeJsonFile } from '../sys/files.ts';

export interface Mail {
  readonly message: AgentMessage;
  readonly take: () => boolean;
  /** Marks a taken message as started. */
  readonly begin: () => void;
}

export interface SentLetter {
  readonly state: () => 'waiting' | 'taken' | 'withdrawn';
  /** Withdraws the message if the reader has not taken it; returns whether it did. */
  readonly withdraw: () => boolean;
}

/** Created by the agent, beside its mailbox, when it can take messages. */
export const READY = 'ready';

/** A usage limit that the agent reports beside its mailbox; the latest counts. */
export interface Limit {
  /** Id of the blocked message. */
  readonly id: string;
  /** A clause. */
  readonly text: string;
  /** End of the limit in milliseconds since 1970; null if unknown. */
  readonly until: number | null;
}

const LIMITED = 'limited';

export function tellLimit(folder: string, limit: Limit): void {
  writeJsonFile(join(folder, LIMITED), limit);
}

/** The limit that blocked this message; null if none. */
export function limitOf(folder: string, id: string): Limit | null {
  const limit = readJsonFile(join(folder, LIMITED)) as Limit | null;
  return limit?.id === id ? limit : null;
}

const COSTS = 'costs.jsonl';

export function tellCost(folder: string, id: string, usage: Usage): void {
  appendLine(join(folder, COSTS), { id, usage });
}

/** The last that it reported for this message; null if none. */
export function costOf(folder: string, id: string): Usage | null {
  const costs = readLines(join(folder, COSTS), fields({ id: isText, usage: isUsage }));
  return costs.findLast((cost) => cost.id === id)?.usage ?? null;
}

export function mailboxIn(folder: string): string {
  return join(folder, 'mail');
}

export function makeMailbox(folder: string): void {
  mkdirSync(folder, { mode: 0o700, recursive: true });
}

/** `name`: the message id as a file name. */
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

/** Whether the reader has started with it. `name` as in `sendMail`. */
export function hasBegun(folder: string, name: string): boolean {
  return readdirSync(folder).some((file) => file.endsWith('.begun') && idIn(file) === name);
}

export function readMail(folder: string): readonly Mail[] {
  return readdirSync(folder)
    .filter((file) => NUMBERED.test(file) && file.endsWith('.json'))
    .toSorted()
    .flatMap((file) => {
      const text = tolerate(['ENOENT'], null, () => readFileSync(join(folder, file), 'utf8'));
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
  return tolerate(['ENOENT'], false, () => {
    renameSync(join(folder, `${stem}.json`), join(folder, `${stem}.${to}`));
    return true;
  });
}
