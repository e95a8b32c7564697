// The files of a run in a folder on this machine. Folders are 0700 and files 0600, whatever the umask.

import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { chmod, lstat, mkdir, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { assert } from '../base/assert.ts';
import type { RunFile, RunFiles } from '../engine/ports.ts';
import { ABSENT, isErrno } from '../sys/errno.ts';
import { watchChanges } from '../sys/watch.ts';
import { readFrom } from './read-bytes.ts';

/** `root`: the run's folder, absolute. */
export function localRunFiles(root: string): RunFiles {
  const place = (path: string): string => {
    const segments = path.split('/');
    assert(!segments.includes('..') && !path.startsWith('/'), `${path} leads out of the run`);
    return path === '' ? root : join(root, path);
  };

  return {
    async list(folder) {
      const at = place(folder);
      if (!(await isWithin(root, at))) return [];
      const names = await unlessAbsent(readdir(at), []);
      const found = await Promise.all(names.toSorted(byName).map((name) => describe(at, name)));
      return found.filter((each) => each !== null);
    },

    async read(path, start = 0, length = Infinity) {
      const at = place(path);
      if (!(await isWithin(root, dirname(at)))) return null;
      const file = await openPlain(at);
      if (file === null) return null;
      try {
        const { size } = await file.stat();
        return await readFrom(file, start, Math.max(0, Math.min(length, size - start)));
      } finally {
        await file.close();
      }
    },

    async *changes(folder, signal) {
      const changes = watchChanges(place(folder), { signal });
      try {
        while (!signal.aborted) {
          yield;
          await changes.next();
        }
      } finally {
        changes.close();
      }
    },

    async append(path, bytes) {
      const at = place(path);
      await makeFolders(root, dirname(at));
      await writeTo(at, 'a', bytes);
    },

    async replace(path, bytes) {
      const at = place(path);
      await makeFolders(root, dirname(at));
      await writeTo(`${at}.new`, 'w', bytes);
      await rename(`${at}.new`, at);
    },

    remove: (path) => rm(place(path), { recursive: true, force: true }),
    localPath: place,
  };
}

/** Whether a folder is in the run by its real path: steps could have put a link in its place. */
async function isWithin(root: string, folder: string): Promise<boolean> {
  if (folder === root) return true;
  const [real, top] = await Promise.all([unlessAbsent(realpath(folder), null), unlessAbsent(realpath(root), null)]);
  return real !== null && top !== null && (real === top || real.startsWith(`${top}/`));
}

function byName(a: string, b: string): number {
  return a < b ? -1 : 1;
}

async function describe(folder: string, name: string): Promise<RunFile | null> {
  const stats = await unlessAbsent(lstat(join(folder, name)), null);
  if (stats === null) return null;
  const kind = stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : 'other';
  return { name, kind, size: kind === 'file' ? stats.size : 0 };
}

/** Null unless it is a regular file. Neither follows a link nor waits for the writer of a pipe. */
async function openPlain(path: string): Promise<FileHandle | null> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (isErrno(error, ...ABSENT, 'ELOOP', 'EMLINK', 'ENXIO')) return null;
    throw error;
  }
  if ((await file.stat()).isFile()) return file;
  await file.close();
  return null;
}

async function makeFolders(root: string, folder: string): Promise<void> {
  if (folder !== root) await makeFolders(root, dirname(folder));
  try {
    await mkdir(folder, 0o700);
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return;
    throw error;
  }
  await chmod(folder, 0o700);
}

async function writeTo(path: string, flags: 'a' | 'w', bytes: Uint8Array): Promise<void> {
  const { O_WRONLY, O_CREAT, O_APPEND, O_TRUNC, O_NOFOLLOW } = constants;
  const file = await open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | (flags === 'a' ? O_APPEND : O_TRUNC), 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(bytes);
  } finally {
    await file.close();
  }
}

async function unlessAbsent<T, U>(asked: Promise<T>, otherwise: U): Promise<T | U> {
  try {
    return await asked;
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return otherwise;
    throw error;
  }
}
