// The disk does not take what every run must leave: its journal, or the files of a step. The run is held, not failed: what was
// recorded before stands, and nothing that a lost record asked for has been started.

import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UsageError } from '../base/usage-error.ts';
import { isErrno, meaning } from './usage-errors.ts';

export class HeldRun extends UsageError {
  readonly runId: string;
  /** As the system names it: `ENOSPC`. */
  readonly code: string;

  constructor(runId: string, what: 'its journal' | 'the files of a step', path: string, cause: NodeJS.ErrnoException) {
    const code = cause.code ?? 'unknown';
    super(
      `run ${runId} is held: ${what} cannot be written, ${meaning(code)} (${code}: ${path})`,
      `nothing more was started; ${cureOf(code)}, then: meow resume ${runId}`,
    );
    this.runId = runId;
    this.code = code;
    this.cause = cause;
  }
}

/** Whether the disk takes anything more in this folder of a run, found by trying; null where it does, or refuses for another reason. */
export function heldByDisk(runId: string, folder: string): HeldRun | null {
  const probe = join(folder, 'probe');
  try {
    // Exclusively: through no link that somebody has laid there.
    writeFileSync(probe, 'x', { mode: 0o600, flag: 'wx' });
    rmSync(probe);
    return null;
  } catch (error) {
    if (!isErrno(error, 'ENOSPC', 'EDQUOT', 'EROFS', 'EIO')) return null;
    // A file without its bytes may have been made.
    if (isErrno(error, 'ENOSPC', 'EDQUOT')) rmSync(probe, { force: true });
    return new HeldRun(runId, 'the files of a step', folder, error);
  }
}

function cureOf(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'free some space';
  if (code === 'EFBIG') return 'raise the limit on the size of files (ulimit -f)';
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') return 'make the folder writable';
  if (code === 'ENOENT') return 'put the folder of the run back';
  return 'check the disk';
}
