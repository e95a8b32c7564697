// Files and folders of ours that other processes could have touched. Everybody who opens or replaces such a file does it here.
//
// guard/1  No link is followed: neither at the path itself, nor at a folder between it and its pinned folder.
// guard/2  Nothing waits: a pipe, a socket or a device in the place of a file is not opened for reading or writing.
// guard/3  What is in the way of a write makes room for it: a folder is moved aside to NAME.aside-XXXX, anything else is
//          removed. Neither a link's target nor another name of the same file changes.
// guard/4  New files have names that nobody can foresee until they are complete.
// guard/5  Folders are 0700 and files 0600, whatever the umask.
//
// A *pinned* folder, such as the folder of a run, is one that nobody may replace while we work: writing below it is refused if
// its path leads to another folder, or it is made anew if nothing is lost by that.
//
// Between a check and the system call that relies on it, a process of the same user can still win a race of microseconds,
// because Node cannot open a file relative to a folder that it has opened. The spawner can (drivers/spawner-script.ts).

import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  type BigIntStats,
  type Stats,
  statSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';

import { UsageError } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import { ABSENT, asUsageError, EXHAUSTED, isErrno, tolerate, tolerateAsync } from './errors.ts';
import { type Shape } from '../base/shape.ts';

/** Read once: reading the umask changes it for a moment. */
export const UMASK = process.umask();

/** The umask takes permissions from the owner as well. */
export const OWNER_MASKED = (UMASK & 0o700) !== 0;

interface PinnedFolder {
  readonly path: string;
  /** The folder that must be at this path; null: any folder, but not a link. */
  readonly identity: Identity | null;
  /** The folder that contains it; null: not known. */
  parent: Identity | null;
}

interface Identity {
  /** `DEV:INO`. Exact: some file systems have numbers that a double cannot hold. */
  readonly id: string;
  readonly isLink: boolean;
}

function identityOf(path: string): Identity {
  return { id: idOf(statSync(path, { bigint: true })), isLink: lstatSync(path).isSymbolicLink() };
}

function idOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

const pinned = new Map<string, PinnedFolder>();

/** Refuses to write below this folder once its path leads elsewhere. Returns a function that ends this. */
export function pinFolder(path: string): () => void {
  // Held open, because some file systems number a folder anew when nobody uses it.
  const file = tolerate(EXHAUSTED, null, () => openSync(path, constants.O_RDONLY | constants.O_DIRECTORY));
  const unpin = pin({ path, identity: identityOf(path), parent: null });
  return () => {
    if (unpin() && file !== null) closeSync(file);
  };
}

/**
 * Makes this folder, and the folder that contains it, anew whenever something else is at its path. Returns a function that
 * ends this.
 */
export function ownFolder(path: string): () => void {
  return pin({ path, identity: null, parent: identityOf(dirname(path)) });
}

function pin(folder: PinnedFolder): () => boolean {
  pinned.set(folder.path, folder);
  return () => pinned.get(folder.path) === folder && pinned.delete(folder.path);
}

function pinnedFolderOf(path: string): PinnedFolder | null {
  let found: PinnedFolder | null = null;
  for (const each of pinned.values()) {
    const contains = path === each.path || isWithin(each.path, path);
    if (contains && each.path.length >= (found?.path.length ?? 0)) found = each;
  }
  return found;
}

/**
 * For a program that enters a folder by itself, so that nothing can be swapped between check and use: the pinned folder above it,
 * the `DEV:INO` that must be there, and the folders from there on. A folder that is not below a pinned one is its own `top`.
 */
export function pinnedPlace(folder: string): {
  readonly top: string;
  readonly identity: string;
  readonly folders: string;
} {
  const pin = pinnedFolderOf(folder);
  if (pin === null || pin.identity === null) return { top: folder, identity: '', folders: '' };
  return { top: pin.path, identity: pin.identity.id, folders: folder.slice(pin.path.length + 1) };
}

/** Creates the folder and its parents; succeeds if it exists. */
export function makeFolder(path: string): void {
  const top = pinnedFolderOf(path);
  if (top !== null) return checkFolders(top, path, true);
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

/** The same for a folder that is, or is below, `top`: neither may be a link, or below one that is (guard/1, guard/3). */
export function makeFolderBelow(top: string, path: string): void {
  checkFolders(pinned.get(top) ?? { path: top, identity: null, parent: null }, path, true);
}

/** Replaces everything that is not a folder between the pinned folder and this one. `makes`: and what is missing. */
function checkFolders(known: PinnedFolder, folder: string, makes: boolean): void {
  const { path: top, identity, parent } = known;
  if (parent !== null && !parent.isLink && lookAt(dirname(top))?.isDirectory() !== true) {
    isFolder(dirname(top), true);
    known.parent = identityOf(dirname(top));
  }
  if (known.parent !== null) checkIdentity(dirname(top), known.parent);
  if (identity !== null) checkIdentity(top, identity);
  else if (!isFolder(top, makes || parent !== null)) return;
  let path = top;
  for (const name of folder.slice(top.length).split('/')) {
    if (name === '') continue;
    path = `${path}/${name}`;
    if (!isFolder(path, makes)) return;
  }
}

function checkIdentity(path: string, { id }: Identity): void {
  const found = tolerate(ABSENT, undefined, () => statSync(path, { bigint: true }));
  if (found === undefined) throw refusal('ENOENT', 'no such file or directory', path);
  if (idOf(found) !== id) throw refusal('ELOOP', 'somebody has put another folder in its place', path);
}

/** Whether there is a folder: always, unless the path is free and nobody `makes` one. */
function isFolder(path: string, makes: boolean): boolean {
  const stats = lookAt(path);
  if (stats?.isDirectory() === true) return true;
  if (stats === undefined && !makes) return false;
  if (stats !== undefined) clearObstacle(path, stats);
  tolerate(['EEXIST'], undefined, () => mkdirSync(path, 0o700));
  if (OWNER_MASKED) chmodSync(path, 0o700);
  return true;
}

/** Before a file is written whose folder should exist. */
function checkFoldersOf(path: string): void {
  const top = pinnedFolderOf(path);
  if (top !== null && top.path !== path) checkFolders(top, dirname(path), false);
}

/** Makes room for a file (guard/3). */
export function clearObstacle(path: string, stats: Stats | undefined = lookAt(path)): void {
  if (stats === undefined) return;
  // A file may have been somebody's work; links and pipes contain nothing.
  const isKept = stats.isDirectory() || (stats.isFile() && stats.nlink === 1);
  tolerate(ABSENT, undefined, () => {
    if (isKept) renameSync(path, `${path}.aside-${randomName()}`);
    else unlinkSync(path);
  });
}

/** Removes whatever would keep another program from creating a file here. A regular file with one name stays. */
export function clearPlaceOf(path: string): void {
  const stats = lookAt(path);
  if (stats !== undefined && (!stats.isFile() || stats.nlink > 1)) clearObstacle(path, stats);
}

/** Undefined if the path does not exist, or if a part of it is not a folder. */
export function lookAt(path: string): Stats | undefined {
  // Most are absent, and exceptions are slow; but it throws if a file is in the place of a folder.
  return tolerate(ABSENT, undefined, () => lstatSync(path, { throwIfNoEntry: false }));
}

function randomName(): string {
  return randomBytes(6).toString('hex');
}

function refusal(code: string, meaning: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${meaning}, open '${path}'`), { code, syscall: 'open', path });
}

/** 0700, whatever the umask. An existing folder must be ours, closed to others, and not a link. */
export function makePrivateFolder(path: string): void {
  try {
    mkdirSync(path, 0o700);
    chmodSync(path, 0o700);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
    const stats = lstatSync(path);
    const ours = process.getuid === undefined || stats.uid === process.getuid();
    if (stats.isDirectory() && ours && (stats.mode & 0o077) === 0) return;
    throw new UsageError(`${path} is not a private folder of yours`, 'move it away; meow creates its own');
  }
}

const { O_RDONLY, O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
const CREATE = O_WRONLY | O_APPEND | O_CREAT | O_EXCL;
/** Neither follows a link nor waits. The type is checked afterwards. */
const CAREFULLY = O_NOFOLLOW | O_NONBLOCK;

/**
 * Opens for appending: a second open destroys nothing, and a command that truncates its own output leaves no hole. The
 * folder must be ours: `makeFolder`.
 */
export function openPrivate(path: string): number {
  const file =
    tolerate(['EEXIST'], null, () => openSync(path, CREATE, 0o600)) ?? reopenOwn(path) ?? createInPlace(path);
  if (OWNER_MASKED) fchmodSync(file, 0o600);
  return file;
}

/** For appending. Null if the path is not a file, or has a second name, or is another user's. */
function reopenOwn(path: string): number | null {
  const codes = [...ABSENT, 'ELOOP', 'EMLINK', 'ENXIO', 'EISDIR', 'EACCES', 'EPERM'];
  const file = tolerate(codes, null, () => openSync(path, O_WRONLY | O_APPEND | CAREFULLY));
  if (file === null) return null;
  const stats = fstatSync(file);
  const isOurs = process.getuid === undefined || stats.uid === process.getuid();
  if (stats.isFile() && stats.nlink === 1 && isOurs) return file;
  closeSync(file);
  return null;
}

function createInPlace(path: string): number {
  clearObstacle(path);
  return openSync(path, CREATE, 0o600);
}

export function writePrivate(path: string, text: string | Uint8Array): void {
  checkFoldersOf(path);
  // Most are new.
  const file = tolerate(['EEXIST'], null, () => openSync(path, CREATE, 0o600));
  if (file === null) return replaceChecked(path, text);
  writeAndClose(file, text);
}

/** A reader finds the old contents or the new, never a part. */
export function replacePrivate(path: string, text: string | Uint8Array): void {
  checkFoldersOf(path);
  replaceChecked(path, text);
}

function replaceChecked(path: string, text: string | Uint8Array): void {
  const unfinished = `${path}.${randomName()}.new`;
  try {
    writeAndClose(openSync(unfinished, CREATE, 0o600), text);
    renameInto(unfinished, path);
  } catch (error) {
    // Frees the space on a full disk. If that fails too, the first error is the one to report.
    tolerate('any', undefined, () => unlinkSync(unfinished));
    throw error;
  }
}

function writeAndClose(file: number, text: string | Uint8Array): void {
  try {
    if (OWNER_MASKED) fchmodSync(file, 0o600);
    writeFileSync(file, text);
  } finally {
    closeSync(file);
  }
}

/** Replaces whatever has the name, except that a folder is moved aside. */
function renameInto(unfinished: string, path: string): void {
  try {
    renameSync(unfinished, path);
  } catch (error) {
    if (!isErrno(error, ...IN_THE_WAY)) throw error;
    clearObstacle(path);
    renameSync(unfinished, path);
  }
}

/** A folder has the name. */
const IN_THE_WAY = ['EISDIR', 'ENOTEMPTY', 'EEXIST'];

/** The folder itself is not within. */
export function isWithin(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Opens a file that others could have replaced: neither follows a link nor waits for a pipe. Rejects (ENXIO) unless it is a file. */
export async function openRegular(path: string, flags: number, mode?: number): Promise<FileHandle> {
  const file = await open(path, flags | CAREFULLY, mode);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw refusal('ENXIO', 'not a regular file', path);
}

/** The same for reading, at once. */
export function openForReading(path: string): number {
  const file = openSync(path, O_RDONLY | CAREFULLY);
  if (fstatSync(file).isFile()) return file;
  closeSync(file);
  throw refusal('ENXIO', 'not a regular file', path);
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
    openSync(path, O_RDONLY | CAREFULLY),
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
  const file = openForReading(path);
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

/**
 * Null if absent, not a file, or truncated by a machine crash: then nothing that it describes survived the machine.
 */
export function readJsonFile(path: string): unknown {
  // Most are absent, and exceptions are slow.
  if (lookAt(path)?.isFile() !== true) return null;
  return parseJson(readUntrustedFile(path, READ_BYTES_MAX)?.text ?? '');
}

/** For a file that others may have changed: also null if its value does not have the shape. */
export function readRecord<T>(path: string, hasShape: Shape<T>): T | null {
  const value = readJsonFile(path);
  return hasShape(value) ? value : null;
}

/** Node cannot hold much longer texts in one string. */
const READ_BYTES_MAX = 500_000_000;

/** Adds a value to a file with one JSON text a line. */
export function appendLine(path: string, value: unknown): void {
  checkFoldersOf(path);
  const file = reopenOwn(path) ?? openPrivate(path);
  try {
    // Starts with a line end, which terminates a torn line before it.
    writeSync(file, `\n${JSON.stringify(value)}\n`);
  } finally {
    closeSync(file);
  }
}

/** The values of such a file that have the shape; none if it is absent or not a file. A torn line is ignored. */
export function readLines<T>(path: string, hasShape: Shape<T>): readonly T[] {
  if (lookAt(path)?.isFile() !== true) return [];
  const lines = (readUntrustedFile(path, READ_BYTES_MAX)?.text ?? '').split('\n');
  return lines.map((line): unknown => parseJson(line)).filter(hasShape);
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

/** `scratch`: the folder for unfinished files, on the same file system; default: that of the file. */
export function stateFile(path: string, scratch = dirname(path)): StateFile {
  let busy = false;
  let isClean = false;
  let pending: PendingWrite | null = null;

  async function drain(): Promise<void> {
    busy = true;
    while (pending !== null) {
      const { text, callers } = pending;
      pending = null;
      try {
        if (!isClean) removeUnfinished(scratch, basename(path));
        isClean = true;
        await replace(path, text, join(scratch, `.${basename(path)}.${randomName()}.tmp`));
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

/** What a crash left. */
function removeUnfinished(folder: string, name: string): void {
  for (const each of tolerate('any', [], () => readdirSync(folder))) {
    const isOurs = each.startsWith(`.${name}.`) && /^\.[0-9a-f]{12}\.tmp$/.test(each.slice(name.length + 1));
    if (isOurs) tolerate('any', undefined, () => unlinkSync(join(folder, each)));
  }
}

async function replace(path: string, text: string | readonly string[], unfinished: string): Promise<void> {
  checkFoldersOf(path);
  checkFoldersOf(unfinished);
  const first = await tolerateAsync(['ENOENT'], null, open(unfinished, CREATE, 0o600));
  // Somebody has moved the folder away since the check.
  if (first === null) checkFoldersOf(unfinished);
  const file = first ?? (await open(unfinished, CREATE, 0o600));
  try {
    await file.chmod(0o600);
    for (const piece of typeof text === 'string' ? [text] : text) await file.appendFile(piece);
    await file.datasync();
    try {
      await rename(unfinished, path);
    } catch (error) {
      if (!isErrno(error, ...IN_THE_WAY)) throw error;
      clearObstacle(path);
      await rename(unfinished, path);
    }
  } catch (error) {
    // Frees the space on a full disk. If that fails too, the first error is the one to report.
    await tolerateAsync('any', undefined, unlink(unfinished));
    throw error;
  } finally {
    await file.close();
  }
}
