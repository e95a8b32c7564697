// Errors that a store reports to the operator. Every message names the run or the path, every hint says what to do.

import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { didYouMean } from '../base/names.ts';
import { describeErrno, type ErrnoError, isErrno } from '../sys/errors.ts';
import type { LockHolder } from './lock.ts';

/** Run ids become file names: other characters could lead out of the folder. */
export function isRunId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,40}$/.test(text);
}

export function checkRunId(runId: string): void {
  if (isRunId(runId)) return;
  throw new UsageError(
    `${JSON.stringify(runId.length > 60 ? `${runId.slice(0, 60)}…` : runId)} is not a run id`,
    'a run id has 1 to 40 letters, digits, "-" and "_"',
  );
}

export function missingRunError(runId: string, known: readonly string[]): UsageError {
  if (known.length === 0)
    return new UsageError(`there is no run ${runId}`, 'there are no runs here yet; start with: meow run FILE');
  return new UsageError(`there is no run ${runId}`, `${didYouMean(runId, known)}all runs: meow list`);
}

export function runExistsError(runId: string): UsageError {
  return new UsageError(
    `run ${runId} already exists`,
    `choose another --id, or look at that run: meow status ${runId}`,
  );
}

export function neverBeganError(runId: string): UsageError {
  return new UsageError(
    `run ${runId} never began: its engine ended before it wrote the first record, and started no step`,
    'start the workflow again: meow run FILE',
  );
}

export function lostJournalError(runId: string, path: string): UsageError {
  return new UsageError(
    `the journal of run ${runId} is empty or missing, although the run had begun; nothing was changed or started`,
    `restore it: ${path} · the state file and the folders of its steps are left`,
  );
}

/** In the folder of a run that belongs to a fleet: its journal here is a copy. */
export const FLEET_MARK = 'fleet.json';

export function fleetRunError(runId: string): UsageError {
  return new UsageError(
    `run ${runId} belongs to a fleet, and only its worker drives it`,
    `start the worker: meow worker · stop the run: meow stop ${runId} --fleet`,
  );
}

/** `by`: null if the holder is not known. */
export function runLockedError(runId: string, by: Pick<LockHolder, 'pid' | 'takenAt'> | null): UsageError {
  const who = by === null ? 'another engine' : `another engine (pid ${by.pid}, since ${by.takenAt})`;
  return new UsageError(
    `run ${runId} is locked by ${who}`,
    `stop it: meow stop ${runId} · watch it: meow status ${runId}`,
  );
}

/**
 * The disk does not accept what every run must write: its journal, or the files of a step. The run is held, not
 * failed: earlier records count, and nothing that a lost record asked for has been started.
 */
export class DiskFailure extends UsageError {
  readonly runId: string;
  /** The system's name: `ENOSPC`. */
  readonly code: string;

  constructor(runId: string, what: 'its journal' | 'the files of a step', path: string, cause: ErrnoError) {
    const { code } = cause;
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
  const probe = join(folder, `probe-${randomUUID()}`);
  try {
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
