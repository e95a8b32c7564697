// The shell that leads the session of a process of ours, and records how it ends (wrapper.ts): whether it lives, though
// another engine started it, and when it is gone. It is nobody's child then: its record tells of its end, and a slow look
// of one that could leave none.

import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { ABSENT, EXHAUSTED, isErrno } from '../base/errno.ts';
import { allProcesses, BOOT_ID, findProcess, hadBegunAt, lives } from './process-table.ts';
import type { ProcessEntry } from './process-table.ts';
import { readExit } from './step-folder.ts';
import type { ProcessRecord, StepFolder } from './step-folder.ts';

/** By what it has recorded, and by its marker. Null where it does not live. */
export function livingLeader(record: ProcessRecord, marker: string): ProcessEntry | null {
  if (record.kind !== 'written') {
    // It may be about to write its record.
    return allProcesses().find((entry) => entry.pid === entry.session && entry.marker === marker) ?? null;
  }
  if (record.bootId !== BOOT_ID) return null;
  const entry = findProcess(record.pid);
  if (entry === null || (entry.environment === 'told' && entry.marker !== marker)) return null;
  if (record.uptime !== null && hadBegunAt(entry, record.uptime) === false) return null;
  return entry;
}

const LOOK_MIN_MS = 100;
/** Told of within a second. */
const LOOK_MAX_MS = 800;

/** Calls once, when it has left its status or is gone without one. Keeps nobody from ending. */
export function whenGone(leader: ProcessEntry, folder: StepFolder, gone: (status: number | null) => void): void {
  let pauseMs = LOOK_MIN_MS;
  let over = false;
  let timer: NodeJS.Timeout;
  const end = (status: number | null): void => {
    over = true;
    clearTimeout(timer);
    watcher?.close();
    gone(status);
  };
  const look = (): void => {
    if (over) return;
    const alive = lives(leader);
    const status = readExit(folder);
    if (status !== null) end(status);
    else if (!alive) end(null);
  };
  const lookSlowly = (): void => {
    look();
    if (over) return;
    timer = setTimeout(lookSlowly, pauseMs).unref();
    pauseMs = Math.min(pauseMs * 2, LOOK_MAX_MS);
  };
  const watcher = watchFolder(folder.path, look);
  timer = setTimeout(lookSlowly, 0).unref();
}

/** Null where the system has no watches left. */
export function watchFolder(path: string, changed: () => void): FSWatcher | null {
  try {
    const watcher = watch(path, { persistent: false }, changed);
    return watcher.on('error', (error) => {
      queueMicrotask(() => {
        throw error;
      });
    });
  } catch (error) {
    if (isErrno(error, 'ENOSPC', ...EXHAUSTED, ...ABSENT)) return null;
    throw error;
  }
}
