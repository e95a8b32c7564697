// What a command finds out about the run that it is called in, from the environment that the run's drivers have set.

import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { UsageError } from '../base/usage-error.ts';
import type { Reach } from '../ipc/client.ts';

export interface Surroundings extends Reach {
  readonly workflow: string | null;
  readonly step: string | null;
  readonly attempt: number | null;
  readonly agent: string | null;
}

/** Null outside of any run. */
export function surroundings(): Surroundings | null {
  const socket = variable('MEOW_ORCH_SOCK');
  const inbox = variable('MEOW_INBOX') ?? inboxBeside(socket);
  if (socket === null && inbox === null) return null;
  const attempt = variable('MEOW_ATTEMPT');
  return {
    socket,
    inbox,
    workflow: variable('MEOW_WORKFLOW'),
    step: variable('MEOW_STEP'),
    attempt: attempt !== null && /^\d{1,9}$/.test(attempt) ? Number(attempt) : null,
    agent: variable('MEOW_AGENT'),
  };
}

export function requireSurroundings(command: string): Surroundings {
  const found = surroundings();
  if (found !== null) return found;
  throw new UsageError(`meow ${command} is for steps and agents of a run, and this is none`);
}

/** There is nobody to talk to, though we were told so. */
export function noRun({ workflow }: Surroundings): UsageError {
  return new UsageError(
    `the run${workflow === null ? '' : ` ${workflow}`} cannot be reached: it is over, or its folder is gone`,
  );
}

function variable(name: string): string | null {
  const value = process.env[name];
  return value === undefined || value === '' ? null : value;
}

/** For those who pass on no more than the socket. */
function inboxBeside(socket: string | null): string | null {
  if (socket === null || basename(socket) !== 'sock') return null;
  const inbox = join(dirname(socket), 'inbox');
  return existsSync(inbox) ? inbox : null;
}
