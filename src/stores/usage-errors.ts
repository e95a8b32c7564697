// Errors that a store reports to the operator. Every message names the run or the path, every hint says what to do. System
// errors become usage errors by their code; an unknown one is passed on as it is.

import { nearest } from '../base/nearest.ts';
import { UsageError } from '../base/usage-error.ts';
import { quote } from '../ir/quote.ts';
import { isErrno, isSystemError } from '../sys/errno.ts';

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
  const guess = nearest(runId, known);
  const meant = guess === null ? '' : `did you mean ${guess}? `;
  return new UsageError(`there is no run ${runId}`, `${meant}all runs: meow list`);
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
    `restore it: ${path} · what is left: the state file and the folders of its steps`,
  );
}

/** `by`: null if the holder is not known. */
export function runLockedError(
  runId: string,
  by: { readonly pid: number; readonly takenAt: string } | null,
): UsageError {
  const who = by === null ? 'another engine' : `another engine (pid ${by.pid}, since ${by.takenAt})`;
  return new UsageError(
    `run ${runId} is locked by ${who}`,
    `stop it: meow stop ${runId} · watch it: meow status ${runId}`,
  );
}

/**
 * A system error as a UsageError if the operator can fix its cause; any other error as it is. `purpose`: "create the run
 * wf-1". `ifDenied`: a better hint than the general one if permission is denied.
 */
export function asUsageError(error: unknown, purpose: string, path: string, ifDenied: string | null = null): unknown {
  if (!isSystemError(error)) return error;
  const known = KNOWN[error.code ?? ''];
  if (known === undefined) return error;
  const hint = (isErrno(error, 'EACCES', 'EPERM') ? ifDenied : null) ?? known.hint;
  const refusal = new UsageError(`cannot ${purpose}: ${known.meaning} (${error.code}: ${error.path ?? path})`, hint);
  refusal.cause = error;
  return refusal;
}

/** What an error code means, in words. */
export function describeErrno(code: string): string {
  return KNOWN[code]?.meaning ?? 'the system reports an error';
}

/** A path that can be pasted into a shell as one argument. */
export function shellPath(path: string): string {
  const quoted = quote(path, [{ kind: 'bare' }]);
  return quoted.ok ? quoted.value : JSON.stringify(path);
}

const KNOWN: Readonly<Record<string, { readonly meaning: string; readonly hint: string }>> = {
  EACCES: { meaning: 'permission denied', hint: 'make the folder writable for you, or run from a project that is' },
  EPERM: { meaning: 'not permitted', hint: 'make the folder writable for you, or run from a project that is' },
  EROFS: { meaning: 'the file system is read-only', hint: 'mount it writable, or run from a project that is' },
  ENOSPC: { meaning: 'the disk is full', hint: 'free some space, then try again' },
  EDQUOT: { meaning: 'your disk quota is used up', hint: 'free some space, then try again' },
  EFBIG: {
    meaning: 'the file would become larger than allowed',
    hint: 'raise the limit on the size of files (ulimit -f), then try again',
  },
  ENOTDIR: { meaning: 'a file is in the place of a folder', hint: 'move that file away: .meow must be a folder' },
  EEXIST: {
    meaning: 'something else is in its place',
    hint: 'move it away: .meow and .meow/workflows must be folders',
  },
  EISDIR: { meaning: 'a folder is in the place of a file', hint: 'move that folder away' },
  ENOENT: { meaning: 'a folder on the path is missing', hint: 'check the path for a broken link' },
  ELOOP: { meaning: 'the links on the path form a loop', hint: 'fix the links' },
  ENAMETOOLONG: { meaning: 'the path is too long', hint: 'run from a folder with a shorter path' },
  EMFILE: { meaning: 'this process has too many open files', hint: 'raise the limit: ulimit -n' },
  ENFILE: {
    meaning: 'the system has too many open files',
    hint: 'end the processes that keep them open, then try again',
  },
  EIO: { meaning: 'the disk reports an error', hint: 'check the disk (dmesg) before you write to it again' },
};
