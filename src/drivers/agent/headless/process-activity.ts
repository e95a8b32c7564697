// Whether processes that say nothing do something: by the time that they have used and by what they have written to
// disks, all that carry a marker taken together. What is drawn on a terminal counts for neither.

import { readFileSync } from 'node:fs';
import { isErrno } from '../../../sys/errno.ts';
import { allProcesses, HAS_PROC } from '../../../sys/process-table.ts';

export interface LifeSigns {
  /** Milliseconds, with those of children that have ended. */
  readonly cpu: number;
  /** Bytes. */
  readonly written: number;
}

/** Null where the system does not tell. The whole table of processes is read for it: for now and then. */
export function processActivity(marker: string): LifeSigns | null {
  if (!HAS_PROC) return null;
  const each = allProcesses().filter((entry) => entry.marker === marker);
  return {
    cpu: each.reduce((sum, { pid }) => sum + cpuOf(pid), 0),
    written: each.reduce((sum, { pid }) => sum + writtenBy(pid), 0),
  };
}

/**
 * Whether something was done between two looks that are so many milliseconds apart. A program that only waits uses a
 * little time for that too. Where there is less than before, one of the processes has ended.
 */
export function showLife(before: LifeSigns, after: LifeSigns, ms: number): boolean {
  return after.written !== before.written || after.cpu < before.cpu || after.cpu - before.cpu > ms * WAITING_SHARE;
}

const WAITING_SHARE = 0.01;

/** The unit of /proc/PID/stat is the same on every Linux. */
const TICK_MS = 10;

function cpuOf(pid: number): number {
  const text = readProc(pid, 'stat');
  // The second field is the command's name in brackets and may contain anything; what follows the last bracket may not.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

function writtenBy(pid: number): number {
  return Number(/^write_bytes: (\d+)$/m.exec(readProc(pid, 'io'))?.[1] ?? 0);
}

/** Empty where it is gone, or not ours to see. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return '';
    throw error;
  }
}
