// Waking up when a file or folder changes. The operating system reports changes; while it has no watches left, or the path
// does not exist, the waiter wakes up every 250 ms instead.

import { type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';

import { tolerate, UNUSABLE } from './errors.ts';

const LOOK_MS = 250;
const WAIT_MAX_MS = 2 ** 31 - 1;

export interface Changes {
  /** Resolves if something has changed since the last call, when something changes, after `withinMs`, or at the abort. */
  next(withinMs?: number | null): Promise<void>;
  close(): void;
}

/** `only`: the entries of a watched folder that matter; an unknown name always does. */
export function watchChanges(
  path: string,
  signal: AbortSignal | undefined,
  only: (name: string) => boolean = () => true,
): Changes {
  let changed = false;
  let wake = (): void => {};
  const onChange = (): void => {
    changed = true;
    wake();
  };
  const watcher = watchPath(path, (name) => {
    if (name === null || only(name)) onChange();
  });
  signal?.addEventListener('abort', onChange);
  return {
    async next(withinMs = null) {
      const waitMs = Math.min(withinMs ?? Infinity, watcher === null ? LOOK_MS : WAIT_MAX_MS);
      if (!changed && signal?.aborted !== true) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, waitMs);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      wake = () => {};
      changed = false;
    },
    close() {
      watcher?.close();
      signal?.removeEventListener('abort', onChange);
      wake();
    },
  };
}

/** Null if the path cannot be watched: look at intervals instead. A watch that fails later counts as a change. */
export function watchPath(
  path: string,
  onChange: (name: string | null) => void,
  { background = false } = {},
): FSWatcher | null {
  const watcher = tolerate(UNUSABLE, null, () =>
    watch(path, { persistent: !background }, (_kind, name) => onChange(name)),
  );
  return watcher?.on('error', () => onChange(null)) ?? null;
}

/**
 * Calls with the names of changed entries of a folder, which may not exist yet, may be deleted and may come back; with null
 * if any entry may have changed. Does not keep the process alive.
 */
export function watchFolder(path: string, onChange: (name: string | null) => void): { close(): void } {
  let close = (): void => {};
  let closed = false;

  const arm = (): void => {
    close();
    if (closed) return;
    const found = nearestFolder(path);
    const inode = inodeOf(found);
    const isIt = found === path;
    /** What must appear in the nearest folder. */
    const next = isIt
      ? null
      : path
          .slice(found.length)
          .split('/')
          .find((part) => part !== '');
    const watcher = watchPath(
      found,
      (name) => {
        if (inodeOf(found) !== inode || (!isIt && (name === null || name === next))) {
          arm();
          onChange(null);
        } else if (isIt) onChange(name);
      },
      { background: true },
    );
    const timer = watcher === null ? setInterval(() => onChange(null), SLOW_LOOK_MS).unref() : null;
    close = () => {
      watcher?.close();
      if (timer !== null) clearInterval(timer);
    };
    // It may have appeared before it was watched.
    if (!isIt && nearestFolder(path) !== found) arm();
  };

  arm();
  return {
    close() {
      closed = true;
      close();
    },
  };
}

/** For a folder that cannot be watched. */
const SLOW_LOOK_MS = 2_000;

function nearestFolder(path: string): string {
  const isFolder = tolerate(UNUSABLE, false, () => statSync(path).isDirectory());
  return isFolder || dirname(path) === path ? path : nearestFolder(dirname(path));
}

function inodeOf(path: string): number | null {
  return tolerate(UNUSABLE, null, () => statSync(path).ino);
}
