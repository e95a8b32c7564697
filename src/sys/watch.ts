// Waking up when a file or folder changes. The operating system reports changes; while it has no watches left, or the path
// does not exist, the waiter wakes up every 250 ms instead.

import { type FSWatcher, watch } from 'node:fs';

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
