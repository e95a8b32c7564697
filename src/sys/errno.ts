// Error codes of the operating system. A handler names the codes that it handles, and throws every other error on.

export type ErrnoError = NodeJS.ErrnoException & { readonly code: string };

/** Whether the operating system reported the error, whatever its code. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

export function isErrno(error: unknown, ...codes: readonly [string, ...(readonly string[])]): error is ErrnoError {
  return error instanceof Error && 'code' in error && codes.includes(error.code as string);
}

/** The file, or a folder on its path, does not exist. */
export const ABSENT = ['ENOENT', 'ENOTDIR'] as const;

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
  'ENAMETOOLONG',
] as const;

/** A temporary shortage. */
export const EXHAUSTED = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM'] as const;
