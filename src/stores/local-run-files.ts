// The files of a run in a folder on this machine. Folders are 0700 and files 0600, whatever the umask.

import { constants } from 'node:fs';
import { chmod, type FileHandle, lstat, mkdir, open, readdir, realpath, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { assert } from '../base/errors.ts';
import type { RunFile, RunFiles } from '../engine/ports.ts';
import { ABSENT, tolerateAsync } from '../sys/errors.ts';
import { readFrom } from '../sys/files.ts';
import { watchChanges } from '../sys/watch.ts';

/** `root`: the run's folder, absolute. */
export function localRunFiles(root: string): RunFiles {
  const place = (path: string): string => {
    assert(!path.split('/').includes('..') && !path.startsWith('/'), `${path} leads out of the run`);
    return path === '' ? root : join(root, path);
  };

  return {
    async list(folder) {
      const at = place(folder);
      if (!(await isWithin(root, at))) return [];
      const names: readonly string[] = await tolerateAsync(ABSENT, [], readdir(at));
      const found = await Promise.all(names.toSorted().map((name) => describe(at, name)));
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
      const changes = watchChanges(place(folder), signal);
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
  const realOf = (path: string): Promise<string | null> => tolerateAsync(ABSENT, null, realpath(path));
  const [real, top] = await Promise.all([realOf(folder), realOf(root)]);
  return real !== null && top !== null && (real === top || real.startsWith(`${top}/`));
}

async function describe(folder: string, name: string): Promise<RunFile | null> {
  const stats = await tolerateAsync(ABSENT, null, lstat(join(folder, name)));
  if (stats === null) return null;
  const kind = stats.isFile() ? 'file' : stats.isDirectory() ? 'folder' : 'other';
  return { name, kind, size: kind === 'file' ? stats.size : 0 };
}

/** Null unless it is a regular file. Neither follows a link nor waits for the writer of a pipe. */
async function openPlain(path: string): Promise<FileHandle | null> {
  const opening = open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const file = await tolerateAsync([...ABSENT, 'ELOOP', 'EMLINK', 'ENXIO'], null, opening);
  if (file === null || (await file.stat()).isFile()) return file;
  await file.close();
  return null;
}

async function makeFolders(root: string, folder: string): Promise<void> {
  if (folder !== root) await makeFolders(root, dirname(folder));
  const made = mkdir(folder, 0o700).then(() => chmod(folder, 0o700));
  await tolerateAsync(['EEXIST'], undefined, made);
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
