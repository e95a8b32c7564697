// What the system calls an error. Only codes that are named where they are caught are handled; the rest is thrown on.

export function isErrno(
  error: unknown,
  ...codes: readonly [string, ...(readonly string[])]
): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}

/** There is no such file, or something else than a folder on the way to it. */
export const ABSENT = ['ENOENT', 'ENOTDIR'] as const;

/** The machine will not let us, now or ever. */
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
  'EMFILE',
  'ENFILE',
  'ENOMEM',
] as const;
