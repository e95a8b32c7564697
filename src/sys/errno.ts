// What the system calls an error. Only codes that are named where they are caught are handled; the rest is thrown on.

export type ErrnoError = Error & { readonly code: string };

export function isErrno(error: unknown, ...codes: readonly [string, ...(readonly string[])]): error is ErrnoError {
  return error instanceof Error && 'code' in error && codes.includes(error.code as string);
}

/** There is no such file: it, or a folder on the way to it, is missing. */
export const ABSENT = ['ENOENT', 'ENOTDIR'] as const;

/** The machine will not let us read or write there, and trying again at once would not help. */
export const REFUSED = [
  'EACCES',
  'EPERM',
  'EROFS',
  'ENOSPC',
  'EDQUOT',
  'EIO',
  'ELOOP',
  'EISDIR',
  'ENAMETOOLONG',
] as const;

/** Too much of something at this moment. It passes. */
export const EXHAUSTED = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM'] as const;
