// The shell that leads the session of a process of ours, and records how it ends (recording-shell.ts): whether it lives, though
// another engine started it, and when it is gone. It is nobody's child then: its record tells of its end, and a slow look
// of one that could leave none.

import { allProcesses, bootId, findProcess, hadBegunAt, lives } from '../sys/process-table.ts';
import type { ProcessEntry } from '../sys/process-table.ts';
import { readExit } from './step-folder.ts';
import { watchPath } from '../sys/watch.ts';
import type { ProcessRecord, StepFolder } from './step-folder.ts';

/** By what it has recorded, and by its marker. Null where it does not live. */
export function livingLeader(record: ProcessRecord, marker: string): ProcessEntry | null {
  if (record.kind !== 'written') {
    // It may be about to write its record.
    return allProcesses().find((entry) => entry.pid === entry.session && entry.marker === marker) ?? null;
  }
  if (record.bootId !== bootId()) return null;
  const entry = findProcess(record.pid);
  if (entry === null || (entry.environment === 'told' && entry.marker !== marker)) return null;
  // A later process has its pid by now.
  return record.uptime !== null && hadBegunAt(entry, record.uptime) === false ? null : entry;
}

/**
 * The process that leads a turn. The spawner starts its program directly, and until the program is executed the process has
 * the environment of the spawner, so that only its age tells it from a later process. Null if it is not alive.
 */
export function turnLeader(record: ProcessRecord, marker: string): ProcessEntry | null {
  return livingLeader(record, marker) ?? beforeExec(record);
}

function beforeExec(record: ProcessRecord): ProcessEntry | null {
  if (record.kind !== 'written' || record.bootId !== bootId() || record.uptime === null) return null;
  const entry = findProcess(record.pid);
  if (entry === null || entry.marker !== null || entry.session !== entry.pid) return null;
  return hadBegunAt(entry, record.uptime) === true ? entry : null;
}

/** Told of within a second. */
const LOOK_MS = 800;

/** Those who wait for an end: one timer looks for all of them, and is not there while nobody waits. */
const waiting = new Set<() => void>();
let rounds: NodeJS.Timeout | null = null;

/** Calls once, when it has left its status or is gone without one. Keeps nobody from ending. */
export function whenGone(leader: ProcessEntry, folder: StepFolder, gone: (status: number | null) => void): void {
  let over = false;
  const end = (status: number | null): void => {
    over = true;
    leaveRounds(lookIfGone);
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
  // As long as it lives, what it leaves is told of by the watch.
  const lookIfGone = (): void => {
    if (watcher === null || !lives(leader)) look();
  };
  const watcher = watchPath(folder.path, look, { background: true });
  setTimeout(look, 0).unref();
  joinRounds(lookIfGone);
}

function joinRounds(look: () => void): void {
  waiting.add(look);
  rounds ??= setInterval(() => {
    for (const each of waiting) each();
  }, LOOK_MS).unref();
}

function leaveRounds(look: () => void): void {
  waiting.delete(look);
  if (waiting.size > 0 || rounds === null) return;
  clearInterval(rounds);
  rounds = null;
}
