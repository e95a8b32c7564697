// The journal could not be made durable. The run is held, not failed: what was recorded before stands, and nothing that
// the lost records asked for has been started.

import { UsageError } from '../base/usage-error.ts';
import { meaning } from './refusal.ts';

export class JournalError extends UsageError {
  readonly runId: string;
  /** As the system names it: `ENOSPC`. */
  readonly code: string;

  constructor(runId: string, path: string, cause: NodeJS.ErrnoException) {
    const code = cause.code ?? 'unknown';
    super(
      `run ${runId} is held: its journal cannot be written, ${meaning(code)} (${code}: ${path})`,
      `nothing more was started; ${cureOf(code)}, then: meow resume ${runId}`,
    );
    this.runId = runId;
    this.code = code;
    this.cause = cause;
  }
}

function cureOf(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'free some space';
  if (code === 'EFBIG') return 'raise the limit on the size of files (ulimit -f)';
  if (code === 'EROFS' || code === 'EACCES' || code === 'EPERM') return 'make the folder writable';
  if (code === 'ENOENT') return 'put the folder of the run back';
  return 'check the disk';
}
