// Whether a process has lost its terminal. Most programs end of that; one that does not can be talked to by nobody any more.

import { readFileSync } from 'node:fs';
import { isErrno } from '../../../sys/errno.ts';
import { HAS_PROC } from '../../process-table.ts';
import { ask } from '../../process.ts';

/** False also where it is gone. */
export function hasLostTerminal(pid: number): boolean {
  if (!HAS_PROC) return /^\?+$/.test(ask('ps', ['-o', 'tty=', '-p', String(pid)])?.trim() ?? '');
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The second field is the command's name in brackets and may contain anything; what follows the last bracket may not.
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[4] === '0';
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return false;
    throw error;
  }
}
