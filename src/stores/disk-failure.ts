// The disk does not accept what every run must write: its journal, or the files of a step. The run is held, not failed:
// earlier records count, and nothing that a lost record asked for has been started.

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '../base/usage-error.ts';
import { isErrno } from '../sys/errno.ts';
import { describeErrno } from './usage-errors.ts';

export class DiskFailure extends UsageError {
  readonly runId: string;
  /** The system's name: `ENOSPC`. */
  readonly code: string;

  constructor(runId: string, what: 'its journal' | 'the files of a step', path: string, cause: NodeJS.ErrnoException) {
    const code = cause.code ?? 'unknown';
    super(
      `run ${runId} is held: ${what} cannot be written, ${describeErrno(code)} (${code}: ${path})`,
      `nothing more was started; ${cureOf(code)}, then: meow resume ${runId}`,
    );
    this.runId = runId;
    this.code = code;
    this.cause = cause;
  }
}

/** Tries whether the disk accepts a file in this folder of a run. Null if it does, or refuses for another reason. */
export function probeDisk(runId: string, folder: string): DiskFailure | null {
  const probe = join(folder, 'probe');
  try {
    // Exclusively, so that no link is followed.
    writeFileSync(probe, 'x', { mode: 0o600, flag: 'wx' });
    rmSync(probe);
    return null;
  } catch (error) {
    if (!isErrno(error, 'ENOSPC', 'EDQUOT', 'EROFS', 'EIO')) return null;
    // An empty file may have been created.
    if (isErrno(error, 'ENOSPC', 'EDQUOT')) rmSync(probe, { force: true });
    return new DiskFailure(runId, 'the files of a step', folder, error);
  }
}

function cureOf(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'free some space';
  if (code === 'EFBIG') return 'raise the limit on the size of files (ulimit -f)';
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') return 'make the folder writable';
  if (code === 'ENOENT') return 'restore the folder of the run';
  return 'check the disk';
}
