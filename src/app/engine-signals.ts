// Signals by which another process of the user steers an engine. `meow stop` has two of its own, so that the journal can name it,
// and because the same signal sent twice may arrive once.

import { UsageError } from '../base/errors.ts';
import type { RunHolder } from '../engine/ports.ts';
import { isErrno } from '../sys/errors.ts';

export const STOP_SIGNAL = 'SIGUSR2';
export const FORCE_SIGNAL = 'SIGIO';
/** Engines of earlier versions ignore it. */
export const PAUSE_SIGNAL = 'SIGURG';

/** False if the process is gone. A suspended process (Ctrl-Z) handles the signal only after SIGCONT. */
export function signalEngine({ pid }: RunHolder, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    process.kill(pid, 'SIGCONT');
    return true;
  } catch (error) {
    if (isErrno(error, 'ESRCH')) return false;
    if (!isErrno(error, 'EPERM')) throw error;
    throw new UsageError(`the engine with pid ${pid} belongs to another user`, 'ask them to stop it');
  }
}
