// The files of a run in a folder on this machine. Folders are 0700 and files 0600, whatever the umask.

import { closeSync, constants, writeFileSync } from 'node:fs';
import { lstat, readdir, realpath, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { assert } from '../base/errors.ts';
import type { RunFile, RunFiles } from '../engine/ports.ts';
import { ABSENT, tolerateAsync } from '../sys/errors.ts';
import { makeFolder, makeFolderBelow, openPrivate, openRegular, readFrom, replacePrivate } from '../sys/files.ts';
import { watchChanges } from '../sys/watch.ts';

/** `root`: the run's folder, absolute. */
export function localRunFiles(root: string): RunFiles {
  const place = (path: string): string => {
    assert(!path.split('/').includes('..') && !path.startsWith('/'), `${path} leads out of the run`);
    return path === '' ? root : join(root, path);
  };

  const folderMade = (path: string): string => {
    makeFolder(root);
    makeFolderBelow(root, dirname(path));
    return path;
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
      const opening = openRegular(at, constants.O_RDONLY);
      const file = await tolerateAsync([...ABSENT, 'ELOOP', 'EMLINK', 'ENXIO'], null, opening);
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
      const at = folderMade(place(path));
      const file = openPrivate(at);
      try {
        writeFileSync(file, bytes);
      } finally {
        closeSync(file);
      }
    },

    async replace(path, bytes) {
      replacePrivate(folderMade(place(path)), bytes);
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
