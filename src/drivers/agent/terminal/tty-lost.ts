// Whether a process lost its terminal. Most programs exit then; one that does not is unreachable.

import { readFileSync } from 'node:fs';
import { isErrno } from '../../../sys/errno.ts';
import { HAS_PROC } from '../../../sys/process-table.ts';
import { outputOf } from '../../../sys/process.ts';

/** Also false if the process is gone. */
export function hasLostTerminal(pid: number): boolean {
  if (!HAS_PROC) return /^\?+$/.test(outputOf('ps', ['-o', 'tty=', '-p', String(pid)])?.trim() ?? '');
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the program name in parentheses and may contain anything, so fields are counted from the last
    // one.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[4] === '0';
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return false;
    throw error;
  }
}
