// Waits for a journal to grow, without polling: the system tells of each write. A journal that grows all the time is read
// again only as often as it costs little.

import type { FSWatcher } from 'node:fs';
import { watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { UsageError } from '../base/usage-error.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { FileStore } from '../stores/files.ts';
import { isErrno } from '../stores/usage-errors.ts';
import type { ReadRun } from './runs.ts';
import { readRun } from './runs.ts';

const INTERVAL_MIN_MS = 50;
const COST_SHARE = 10;

/**
 * Calls `seen` with the run and its new records, now and whenever there are some, until it returns false. `isAbandoned` is
 * asked after every change: if it returns true, nobody reads the results any more.
 */
export async function follow(
  store: FileStore,
  id: string,
  seen: (run: ReadRun, fresh: readonly JournalRecord[]) => boolean | Promise<boolean>,
  isAbandoned: () => boolean,
): Promise<void> {
  const changes = await watchJournal(store, id);
  try {
    let known = 0;
    for (;;) {
      const began = performance.now();
      const run = await readRun(store, id);
      const fresh = run.records.slice(known);
      if ((fresh.length > 0 || known === 0) && !(await seen(run, fresh))) return;
      known = run.records.length;
      await sleep(Math.max(INTERVAL_MIN_MS, (performance.now() - began) * COST_SHARE));
      await changes.next();
      if (isAbandoned()) return;
    }
  } finally {
    changes.close();
  }
}

/** One that cannot be watched can often not be read either, and the store knows to say why. */
async function watchJournal(store: FileStore, id: string): Promise<Changes> {
  try {
    return watchChanges(join(store.runFolder(id), 'journal.jsonl'));
  } catch (error) {
    await readRun(store, id);
    throw error;
  }
}

function watchPath(path: string, tell: () => void): FSWatcher {
  try {
    return watch(path, tell);
  } catch (error) {
    if (!isErrno(error, 'ENOSPC', 'EMFILE', 'ENFILE')) throw error;
    throw new UsageError(
      `the system has no watches left to follow ${path} (${error.code})`,
      'raise the limit: sysctl fs.inotify.max_user_watches and max_user_instances',
    );
  }
}

export interface Changes {
  /** Resolves when something changed since it was called last. */
  next(): Promise<void>;
  close(): void;
}

/** `path`: a file or a folder. */
export function watchChanges(...paths: readonly string[]): Changes {
  let changed = false;
  let wake: (() => void) | null = null;
  const tell = (): void => {
    changed = true;
    wake?.();
  };
  const watchers = paths.map((path) => watchPath(path, tell));
  return {
    async next() {
      if (!changed) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = null;
      changed = false;
    },
    close() {
      for (const watcher of watchers) watcher.close();
      wake?.();
    },
  };
}
