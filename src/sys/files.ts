// Files and folders: private to their user whatever the umask, written by others, read from the end, or JSON.

import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';

import { parseJson } from '../base/json.ts';
import { ABSENT, asUsageError, isErrno, tolerate, tolerateAsync } from './errors.ts';

/** Read once: reading the umask changes it for a moment. */
export const UMASK = process.umask();

/** The umask takes permissions from the owner as well. */
export const OWNER_MASKED = (UMASK & 0o700) !== 0;

/** Creates the folder and its parents; succeeds if it exists. */
export function makeFolder(path: string): void {
  try {
    mkdirSync(path, 0o700);
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return;
    if (!isErrno(error, 'ENOENT')) throw error;
    makeFolder(dirname(path));
    mkdirSync(path, 0o700);
  }
  if (OWNER_MASKED) chmodSync(path, 0o700);
}

/** Opens for appending: a second open destroys nothing, and a command that truncates its own output leaves no hole. */
export function openPrivate(path: string): number {
  const file = openSync(path, 'a', 0o600);
  if (OWNER_MASKED) fchmodSync(file, 0o600);
  return file;
}

export function writePrivate(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
  if (OWNER_MASKED) chmodSync(path, 0o600);
}

/** A reader finds the old contents or the new, never a part. */
export function replacePrivate(path: string, text: string): void {
  writePrivate(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

/** The folder itself is not within. */
export function isWithin(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Opens a file that others could have replaced: neither follows a link nor waits for a pipe. Rejects (ENXIO) unless it is a file. */
export async function openRegular(path: string, flags: number, mode?: number): Promise<FileHandle> {
  const file = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, mode);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  const details = { code: 'ENXIO', syscall: 'open', path };
  throw Object.assign(new Error(`ENXIO: not a regular file, open '${path}'`), details);
}

export interface UntrustedFile {
  /** Null if the file is too large. */
  readonly text: string | null;
  readonly mtimeMs: number;
  readonly ino: number;
}

/** Null if the path is not a regular file that we may read. */
export function readUntrustedFile(
  path: string,
  bytesMax: number,
  encoding: 'utf8' | 'latin1' = 'utf8',
): UntrustedFile | null {
  const file = tolerate([...ABSENT, 'ELOOP', 'EACCES', 'EPERM', 'ENXIO', 'EMLINK'], null, () =>
    openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK),
  );
  if (file === null) return null;
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) return null;
    const { size, mtimeMs, ino } = stats;
    if (size > bytesMax) return { text: null, mtimeMs, ino };
    const bytes = Buffer.alloc(size);
    let length = 0;
    for (let read = -1; read !== 0 && length < size; length += read)
      read = readSync(file, bytes, length, size - length, null);
    return { text: bytes.toString(encoding, 0, length), mtimeMs, ino };
  } finally {
    closeSync(file);
  }
}

/** A character that the cut splits becomes U+FFFD. Throws system errors. */
export function readFileEnd(path: string, bytesMax: number): string {
  const file = openSync(path, 'r');
  try {
    const { size } = fstatSync(file);
    const bytes = Buffer.alloc(Math.min(size, bytesMax));
    const length = readSync(file, bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(file);
  }
}

export function writeJsonFile(path: string, value: unknown): void {
  replacePrivate(path, `${JSON.stringify(value)}\n`);
}

/** Does nothing if the folder is gone: the run was deleted meanwhile. */
export function writeJsonFileIfWanted(path: string, value: unknown): void {
  tolerate(ABSENT, undefined, () => writeJsonFile(path, value));
}

/** Null if absent or truncated by a machine crash: then nothing that it describes survived the machine. */
export function readJsonFile(path: string): unknown {
  // Most are absent, and exceptions are slow.
  if (!existsSync(path)) return null;
  return tolerate(ABSENT, null, () => parseJson(readFileSync(path, 'utf8')));
}

/** Adds a value to a file with one JSON text a line. */
export function appendLine(path: string, value: unknown): void {
  const file = openPrivate(path);
  try {
    // Starts with a line end, which terminates a torn line before it.
    writeSync(file, `\n${JSON.stringify(value)}\n`);
  } finally {
    closeSync(file);
  }
}

/** The values of such a file; none if it is absent. A torn line is ignored. */
export function readLines(path: string): readonly unknown[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => parseJson(line) ?? []);
}

/** At most `length` bytes from `start` on; fewer if the file ends before. */
export async function readFrom(file: FileHandle, start: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}

/**
 * A file that readers always find whole: each text is written to a temporary file, made durable, and renamed. If
 * several writes wait, only the last text is written. A text that is lost in a power failure does no harm, because the
 * journal has everything; an empty file would confuse people.
 */
export interface StateFile {
  /** Resolves when this text, or a later one, can be read. A failed write does not affect the next one. */
  write(text: string | readonly string[]): Promise<void>;
}

export function stateFile(path: string): StateFile {
  let busy = false;
  let pending: PendingWrite | null = null;

  async function drain(): Promise<void> {
    busy = true;
    while (pending !== null) {
      const { text, callers } = pending;
      pending = null;
      try {
        await replace(path, text);
        for (const { resolve } of callers) resolve();
      } catch (error) {
        for (const { reject } of callers) reject(asUsageError(error, 'write the state file', path));
      }
    }
    busy = false;
  }

  return {
    write(text) {
      return new Promise((resolve, reject) => {
        pending = { text, callers: [...(pending?.callers ?? []), { resolve, reject }] };
        if (!busy) void drain();
      });
    },
  };
}

interface PendingWrite {
  readonly text: string | readonly string[];
  readonly callers: readonly { readonly resolve: () => void; readonly reject: (error: unknown) => void }[];
}

async function replace(path: string, text: string | readonly string[]): Promise<void> {
  const temporary = `${path}.tmp`;
  // Overwrites a file that a crash left.
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.chmod(0o600);
    for (const piece of typeof text === 'string' ? [text] : text) await file.appendFile(piece);
    await file.datasync();
    await rename(temporary, path);
  } catch (error) {
    // Frees the space on a full disk. If that fails too, the first error is the one to report.
    await tolerateAsync('any', undefined, unlink(temporary));
    throw error;
  } finally {
    await file.close();
  }
}
