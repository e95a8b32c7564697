// Activity of silent processes: the processor time and disk writes of all processes with a marker. Terminal output does
// not count.

import { readFileSync } from 'node:fs';
import { isErrno } from '../../../sys/errno.ts';
import { allProcesses, HAS_PROC } from '../../../sys/process-table.ts';

export interface LifeSigns {
  /** Milliseconds, including ended children. */
  readonly cpu: number;
  /** Bytes. */
  readonly written: number;
}

/** Null if the system does not report it. Reads the whole process table, so use it rarely. */
export function processActivity(marker: string): LifeSigns | null {
  if (!HAS_PROC) return null;
  const each = allProcesses().filter((entry) => entry.marker === marker);
  return {
    cpu: each.reduce((sum, { pid }) => sum + cpuOf(pid), 0),
    written: each.reduce((sum, { pid }) => sum + writtenBy(pid), 0),
  };
}

/**
 * Whether there was activity between two measurements. A waiting program uses a little time, too. Less than before
 * means that a process has ended.
 */
export function showLife(before: LifeSigns, after: LifeSigns, ms: number): boolean {
  return after.written !== before.written || after.cpu < before.cpu || after.cpu - before.cpu > ms * WAITING_SHARE;
}

const WAITING_SHARE = 0.01;

/** The unit of /proc/PID/stat is the same on every Linux. */
const TICK_MS = 10;

function cpuOf(pid: number): number {
  const text = readProc(pid, 'stat');
  // The second field is the program name in parentheses and may contain anything, so fields are counted from the last
  // one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

function writtenBy(pid: number): number {
  return Number(/^write_bytes: (\d+)$/m.exec(readProc(pid, 'io'))?.[1] ?? 0);
}

/** Empty if it is gone or not readable. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return '';
    throw error;
  }
}
