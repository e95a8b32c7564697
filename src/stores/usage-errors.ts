// What a store says when it will not do what was asked: every message names the run or the place, every hint the cure.
// Errors of the machine become refusals only by their code; one that nobody foresaw is passed on as it is.

import { nearest } from '../base/nearest.ts';
import { UsageError } from '../base/usage-error.ts';
import { quote } from '../ir/quote.ts';

/** Whether the error is the system's, whatever its code. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

/** Whether it is the system's, with one of these codes. */
export function isErrno(
  error: unknown,
  ...codes: readonly [string, ...(readonly string[])]
): error is NodeJS.ErrnoException {
  return isSystemError(error) && codes.includes(String(error.code));
}

/** Run ids become names of files: anything else than these characters could lead out of the folder. */
export function isRunId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,40}$/.test(text);
}

export function checkRunId(runId: string): void {
  if (isRunId(runId)) return;
  throw new UsageError(
    `${JSON.stringify(runId.length > 60 ? `${runId.slice(0, 60)}…` : runId)} is no run id`,
    'a run id has 1 to 40 letters, digits, "-" and "_"',
  );
}

export function missingRun(runId: string, known: readonly string[]): UsageError {
  if (known.length === 0)
    return new UsageError(`there is no run ${runId}`, 'nothing was run here yet; start with: meow run FILE');
  const guess = nearest(runId, known);
  const meant = guess === null ? '' : `did you mean ${guess}? `;
  return new UsageError(`there is no run ${runId}`, `${meant}all runs: meow list`);
}

export function takenRun(runId: string): UsageError {
  return new UsageError(
    `there is a run ${runId} already`,
    `choose another --id; what became of that one: meow status ${runId}`,
  );
}

export function neverBegan(runId: string): UsageError {
  return new UsageError(
    `run ${runId} never began: its engine ended before the first record was kept, and no step was started`,
    'start it anew: meow run FILE',
  );
}

export function lostJournal(runId: string, path: string): UsageError {
  return new UsageError(
    `the journal of run ${runId} is empty or missing, though the run had begun; nothing was changed or started`,
    `put it back: ${path} · what is left: the state file and the folders of its steps`,
  );
}

/** `by`: who, as far as it is known. */
export function lockedRun(runId: string, by: { readonly pid: number; readonly takenAt: string } | null): UsageError {
  const who = by === null ? 'another engine' : `the engine with pid ${by.pid}, since ${by.takenAt}`;
  return new UsageError(
    `run ${runId} is held by ${who}`,
    `watch it: meow status ${runId} · end it: meow stop ${runId}`,
  );
}

/**
 * The error as a refusal where the operator can mend its cause; any other as it is. `purpose`: "make the run wf-1".
 * `denied`: what to do where permission is denied, if there is something better than to make the folder writable.
 */
export function refusalOf(error: unknown, purpose: string, path: string, denied: string | null = null): unknown {
  if (!isSystemError(error)) return error;
  const cure = CURES[error.code ?? ''];
  if (cure === undefined) return error;
  const hint = (isErrno(error, 'EACCES', 'EPERM') ? denied : null) ?? cure.hint;
  const refusal = new UsageError(`cannot ${purpose}: ${cure.says} (${error.code}: ${error.path ?? path})`, hint);
  refusal.cause = error;
  return refusal;
}

/** What a code means, said once for all messages. */
export function meaning(code: string): string {
  return CURES[code]?.says ?? 'the system reports an error';
}

/** A path as an argument that can be pasted into a shell. */
export function shellPath(path: string): string {
  const quoted = quote(path, [{ kind: 'bare' }]);
  return quoted.ok ? quoted.value : JSON.stringify(path);
}

const CURES: Readonly<Record<string, { readonly says: string; readonly hint: string }>> = {
  EACCES: { says: 'permission denied', hint: 'make the folder writable for you, or run from a project that is' },
  EPERM: { says: 'not permitted', hint: 'make the folder writable for you, or run from a project that is' },
  EROFS: { says: 'the file system is read-only', hint: 'mount it writable, or run from a project that is' },
  ENOSPC: { says: 'the disk is full', hint: 'free some space, then try again' },
  EDQUOT: { says: 'your disk quota is used up', hint: 'free some space, then try again' },
  EFBIG: {
    says: 'the file would become larger than allowed',
    hint: 'raise the limit on the size of files (ulimit -f), then try again',
  },
  ENOTDIR: { says: 'a file stands where a folder is needed', hint: 'move that file away: .meow must be a folder' },
  EEXIST: {
    says: 'something else stands in its place',
    hint: 'move it away: .meow and .meow/workflows must be folders',
  },
  EISDIR: { says: 'a folder stands where a file is needed', hint: 'move that folder away' },
  ENOENT: { says: 'a folder on the way is missing', hint: 'check that no link on the path leads nowhere' },
  ELOOP: { says: 'the links on the path lead in a circle', hint: 'mend the links' },
  ENAMETOOLONG: { says: 'the path is too long', hint: 'run from a folder with a shorter path' },
  EMFILE: { says: 'this process has too many open files', hint: 'raise the limit: ulimit -n' },
  ENFILE: { says: 'the system has too many open files', hint: 'end what keeps them open, then try again' },
  EIO: { says: 'the disk reports a fault', hint: 'check the disk (dmesg) before anything is written to it again' },
};
