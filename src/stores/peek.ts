// Quick, synchronous looks at a run in a local folder, for commands that agents call often: they start no store.

import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { JournalRecord } from '../kernel/decision.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';

/** Whether an engine holds the run, or died while it did. */
export function mayBeLocked(runFolder: string): boolean {
  return existsSync(`${runFolder}.yaml.lock`);
}

/** Whether the run is done or failed, by the last record of its journal. Reads only as much as that record is long. */
export function isOver(runFolder: string): boolean {
  let file: number;
  try {
    file = openSync(join(runFolder, 'journal.jsonl'), 'r');
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
