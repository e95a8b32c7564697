// Quick, synchronous looks at a run in a local folder, for commands that agents call often: they start no store.

import { closeSync, constants, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';

import { parseJson } from '../base/json.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';

/** Whether an engine holds the run, or died while it did. */
export function mayBeLocked(runFolder: string): boolean {
  return existsSync(`${runFolder}.yaml.lock`);
}

/** Whether the run is done or failed, by the last record of its journal. Reads only as much as that record is long. */
export function isOver(runFolder: string): boolean {
  const file = tolerate(UNUSABLE, null, () => openSync(join(runFolder, 'journal.jsonl'), READ_PLAIN));
  if (file === null) return false;
  try {
    const { size } = fstatSync(file);
    for (let length = Math.min(size, TAIL_BYTES); ; length = Math.min(size, 16 * length)) {
      const bytes = Buffer.alloc(length);
      readSync(file, bytes, 0, length, size - length);
      const lines = bytes.toString('utf8').split('\n');
      if (lines.length > 2 || length === size) return endsRun(parseJson(lines.at(-2) ?? '') as JournalRecord | null);
    }
  } finally {
    closeSync(file);
  }
}

/** Neither follows a link nor waits for the writer of a pipe. */
const READ_PLAIN = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const TAIL_BYTES = 64 * 1024;

/** Whether the run is done or failed after this record. */
export function endsRun(last: Partial<JournalRecord> | null): boolean {
  return last?.decisions?.some((made) => made.kind === 'run-ended' && ['done', 'failed'].includes(made.end)) ?? false;
}
