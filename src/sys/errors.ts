// Error codes of the operating system. A handler names the codes that it handles, and throws every other error on.

import { UsageError } from '../base/errors.ts';

export type ErrnoError = NodeJS.ErrnoException & { readonly code: string };

/** Whether the operating system reported the error, whatever its code. */
export function isSystemError(error: unknown): error is ErrnoError {
  return error instanceof Error && 'syscall' in error && 'code' in error && typeof error.code === 'string';
}

export function isErrno(error: unknown, ...codes: readonly string[]): error is ErrnoError {
  return error instanceof Error && 'code' in error && codes.includes(error.code as string);
}

/** The file, or a folder on its path, does not exist. */
export const ABSENT = ['ENOENT', 'ENOTDIR'];

/** Reading or writing is refused, and an immediate retry would not help. */
export const REFUSED = [
  'EACCES',
  'EPERM',
  'EROFS',
  'ENOSPC',
  'EDQUOT',
  'EIO',
  'ELOOP',
  'EISDIR',
  'ENXIO',
  'ENAMETOOLONG',
];

/** A temporary shortage. */
export const EXHAUSTED = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM'];

/** A file cannot be used now, for whatever reason. */
export const UNUSABLE = [...ABSENT, ...REFUSED, ...EXHAUSTED];

/** Result of `act`, or `otherwise` if it fails with one of these codes. Every other error is thrown on. */
export function tolerate<T, U>(codes: Codes, otherwise: U, act: () => T): T | U {
  try {
    return act();
  } catch (error) {
    if (isExpected(error, codes)) return otherwise;
    throw error;
  }
}

/** The same for a promise. */
export async function tolerateAsync<T, U>(codes: Codes, otherwise: U, acting: Promise<T>): Promise<T | U> {
  try {
    return await acting;
  } catch (error) {
    if (isExpected(error, codes)) return otherwise;
    throw error;
  }
}

/** `any`: every error that the operating system reports. */
type Codes = readonly string[] | 'any';

function isExpected(error: unknown, codes: Codes): boolean {
  return codes === 'any' ? isSystemError(error) : isErrno(error, ...codes);
}

/** Throws outside of any promise, so that the process ends. */
export function crash(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}

/**
 * A system error as a UsageError if the operator can fix its cause; any other error as it is. `purpose`: "create the run
 * wf-1". `ifDenied`: a better hint than the general one if permission is denied.
 */
export function asUsageError(error: unknown, purpose: string, path: string, ifDenied: string | null = null): unknown {
  if (!isSystemError(error)) return error;
  const [meaning, cure] = KNOWN[error.code] ?? [];
  if (meaning === undefined) return error;
  const hint = (isErrno(error, 'EACCES', 'EPERM') ? ifDenied : null) ?? cure;
  const refusal = new UsageError(`cannot ${purpose}: ${meaning} (${error.code}: ${error.path ?? path})`, hint);
  refusal.cause = error;
  return refusal;
}

export function describeErrno(code: string): string {
  return KNOWN[code]?.[0] ?? 'the system reports an error';
}

export function cureOfErrno(code: string): string {
  return KNOWN[code]?.[1] ?? 'try again';
}

/** What each code means, and how to fix it. */
const KNOWN: Readonly<Record<string, readonly [meaning: string, cure: string]>> = {
  EACCES: ['permission denied', 'make the folder writable for you, or run from a project that is'],
  EPERM: ['not permitted', 'make the folder writable for you, or run from a project that is'],
  EROFS: ['the file system is read-only', 'mount it writable, or run from a project that is'],
  ENOSPC: ['the disk is full', 'free some space, then try again'],
  EDQUOT: ['your disk quota is used up', 'free some space, then try again'],
  EFBIG: [
    'the file would become larger than allowed',
    'raise the limit on the size of files (ulimit -f), then try again',
  ],
  ENOTDIR: ['there is a file where a folder is needed', 'move that file away: .meow must be a folder'],
  EEXIST: ['something else is in its place', 'move it away: .meow and .meow/workflows must be folders'],
  EISDIR: ['there is a folder where a file is needed', 'move that folder away'],
  ENOENT: ['a folder on the path is missing', 'check the path for a broken link'],
  ENXIO: ['something other than a file is in its place', 'see what it is: ls -l, and move it away'],
  ELOOP: ['a link is in the place of a file, or links form a loop', 'see where it leads: ls -l, and remove it'],
  ENAMETOOLONG: ['the path is too long', 'run from a folder with a shorter path'],
  EMFILE: ['this process has too many open files', 'raise the limit: ulimit -n'],
  ENFILE: ['the system has too many open files', 'end the processes that keep them open, then try again'],
  EAGAIN: ['the system has too many processes', 'end some of them, or raise the limit: ulimit -u'],
  ENOMEM: ['there is not enough memory', 'end some processes, then try again'],
  EIO: ['the disk reports an error', 'check the disk (dmesg) before you write to it again'],
};
