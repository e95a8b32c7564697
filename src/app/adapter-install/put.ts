// Installs an adapter's folder atomically: copies it beside its target, then renames.

import type { Dirent } from 'node:fs';
import { copyFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { ABSENT, isErrno } from '../../sys/errno.ts';
import { UsageError } from '../../base/usage-error.ts';
import { asUsageError } from '../../stores/usage-errors.ts';

/** A larger folder is not an adapter. */
const FILES_MAX = 200;
const BYTES_MAX = 5_000_000;

/** Replaces `target` if it exists. */
export function putFolder(source: string, target: string): void {
  const files = filesIn(source);
  try {
    mkdirSync(dirname(target), { recursive: true });
    const staging = mkdtempSync(join(dirname(target), '.new-'));
    try {
      const fresh = join(staging, 'fresh');
      for (const file of files) {
        mkdirSync(dirname(join(fresh, file)), { recursive: true });
        copyFileSync(join(source, file), join(fresh, file));
      }
      if (isThere(target)) renameSync(target, join(staging, 'old'));
      renameSync(fresh, target);
    } catch (error) {
      if (existsSync(join(staging, 'old')) && !isThere(target)) renameSync(join(staging, 'old'), target);
      throw error;
    } finally {
      rmSync(staging, { recursive: true, force: true });
    }
  } catch (error) {
    throw asUsageError(error, 'install the adapter', target);
  }
}

/** Removes a link without touching its target. */
export function removeFolder(target: string): void {
  try {
    const away = mkdtempSync(join(dirname(target), '.old-'));
    renameSync(target, join(away, 'old'));
    rmSync(away, { recursive: true, force: true });
  } catch (error) {
    throw asUsageError(error, 'remove the adapter', target);
  }
}

/** True for a dangling link, too. */
export function isThere(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return false;
    throw error;
  }
}

/** Plain files only, relative to the folder: a link could bring in anything. */
function filesIn(folder: string): readonly string[] {
  const files: string[] = [];
  let bytes = 0;
  const add = (inside: string, entry: Dirent): void => {
    const path = join(inside, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== '.git') visit(path);
      return;
    }
    if (!entry.isFile()) {
      throw new UsageError(
        `${path} is not a regular file; an adapter has only regular files`,
        'remove it, or put a copy there',
      );
    }
    files.push(path);
    bytes += lstatSync(join(folder, path)).size;
    if (files.length > FILES_MAX || bytes > BYTES_MAX) {
      throw new UsageError(`${folder} is too much for an adapter: over ${FILES_MAX} files or ${BYTES_MAX / 1e6} MB`);
    }
  };
  const visit = (inside: string): void => {
    for (const entry of readdirSync(join(folder, inside), { withFileTypes: true })) add(inside, entry);
  };
  visit('');
  return files;
}
