// What lies in the inbox of a run, for others than its engine: what was left while there is none, since who decides about a
// gate must know of decisions that are not applied yet; and what the engine has put aside.

import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ABSENT, isErrno } from '../sys/errno.ts';
import type { Message } from './protocol.ts';
import { LINE_BYTES_MAX, parseMessage } from './protocol.ts';
import { readSmallFile } from '../sys/read-untrusted-file.ts';

/** In the order in which they were left. */
export function keptMessages(inbox: string, runId: string): readonly Message[] {
  const arrivals = namesIn(inbox)
    .filter((name) => name.endsWith('.tell') && !name.startsWith('.'))
    .map((name) => join(inbox, name))
    .map((path) => ({ path, at: lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
  return arrivals
    .toSorted((a, b) => a.at - b.at)
    .flatMap(({ path }) => {
      const message = parseMessage(readSmallFile(path, LINE_BYTES_MAX)?.text ?? '', runId);
      return message.ok ? [message.value] : [];
    });
}

/** The names of those that were refused. */
export function refusedMessages(inbox: string): readonly string[] {
  return namesIn(join(inbox, 'refused'));
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return [];
    throw error;
  }
}
