// Messages in the inbox of a run, read by others than its engine: those that no engine has applied yet (a person who decides
// a gate must know of earlier decisions), and those that an engine has refused.

import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ABSENT, isErrno } from '../sys/errno.ts';
import type { Message } from './protocol.ts';
import { LINE_BYTES_MAX, parseMessage } from './protocol.ts';
import { readUntrustedFile } from '../sys/read-untrusted-file.ts';

/** In order of arrival. */
export function pendingMessages(inbox: string, runId: string): readonly Message[] {
  const arrivals = namesIn(inbox)
    .filter((name) => name.endsWith('.tell') && !name.startsWith('.'))
    .map((name) => join(inbox, name))
    .map((path) => ({ path, at: lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }));
  return arrivals
    .toSorted((a, b) => a.at - b.at)
    .flatMap(({ path }) => {
      const message = parseMessage(readUntrustedFile(path, LINE_BYTES_MAX)?.text ?? '', runId);
      return message.ok ? [message.value] : [];
    });
}

/** Their file names. */
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
