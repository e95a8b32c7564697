// The run that a command is called in, read from the environment variables that the run's drivers set.

import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import type { EngineAddress } from '../ipc/client.ts';
import { isOver } from '../stores/peek.ts';

export interface RunContext extends EngineAddress {
  readonly workflow: string | null;
  readonly step: string | null;
  readonly attempt: number | null;
  readonly agent: string | null;
  /** Agents of the run ask before they act. */
  readonly mayAsk: boolean;
}

/** Null outside of any run. */
export function runContext(): RunContext | null {
  const socket = variable('MEOW_ORCH_SOCK');
  const inbox = variable('MEOW_INBOX') ?? inboxBeside(socket);
  if (socket === null && inbox === null) return null;
  const attempt = variable('MEOW_ATTEMPT');
  return {
    socket,
    inbox,
    isOver: () => inbox !== null && isOver(dirname(inbox)),
    workflow: variable('MEOW_WORKFLOW'),
    step: variable('MEOW_STEP'),
    attempt: attempt !== null && /^\d{1,9}$/.test(attempt) ? Number(attempt) : null,
    agent: variable('MEOW_AGENT'),
    mayAsk: (variable('MEOW_PERMISSIONS') ?? 'all') !== 'all',
  };
}

export function requireRunContext(command: string): RunContext {
  const found = runContext();
  if (found !== null) return found;
  throw new UsageError(`meow ${command} works only inside a run`);
}

/** The environment names a run that neither answers nor exists. */
export function unreachable({ workflow }: RunContext): UsageError {
  return new UsageError(
    `the run${workflow === null ? '' : ` ${workflow}`} cannot be reached: it has ended, or its folder is gone`,
  );
}

function variable(name: string): string | null {
  const value = process.env[name];
  return value === undefined || value === '' ? null : value;
}

/** For callers whose environment has only the socket. */
function inboxBeside(socket: string | null): string | null {
  if (socket === null || basename(socket) !== 'sock') return null;
  const inbox = join(dirname(socket), 'inbox');
  return existsSync(inbox) ? inbox : null;
}
