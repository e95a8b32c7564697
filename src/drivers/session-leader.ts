// The process that leads the session of an attempt (recording-shell.ts): whether it is alive, although another engine started
// it, and when it is gone. It is then nobody's child: its record shows its exit, and polling shows the death of one that
// leaves no record. While it is alive, a recorded exit is forged: the shell records it last.

import { allProcesses, bootId, findProcess, hadBegunAt, lives, type ProcessEntry } from '../sys/process.ts';
import { watchPath } from '../sys/watch.ts';
import { type ProcessRecord, readExit, readProcess, stepFile, type StepFolder } from './step-folder.ts';

/** Identified by its record and its marker. Null if it is not alive. */
export function livingLeader(record: ProcessRecord, marker: string): ProcessEntry | null {
  if (record.kind !== 'written') {
    // It may not have written its record yet.
    return allProcesses().find((entry) => entry.pid === entry.session && entry.marker === marker) ?? null;
  }
  if (record.bootId !== bootId()) return null;
  const entry = findProcess(record.pid);
  if (entry === null || (entry.environment === 'told' && entry.marker !== marker)) return null;
  // Otherwise a later process has reused its pid.
  return record.uptime !== null && hadBegunAt(entry, record.uptime) === false ? null : entry;
}

/**
 * The process that leads a turn. The spawner starts its program directly, and until the program is executed the process has
 * the environment of the spawner, so that only its age tells it from a later process. Null if it is not alive.
 */
export function turnLeader(record: ProcessRecord, marker: string): ProcessEntry | null {
  const leader = livingLeader(record, marker);
  if (leader !== null) return leader;
  if (record.kind !== 'written' || record.bootId !== bootId() || record.uptime === null) return null;
  const entry = findProcess(record.pid);
  if (entry === null || entry.marker !== null || entry.session !== entry.pid) return null;
  return hadBegunAt(entry, record.uptime) === true ? entry : null;
}

/** The recorded exit of an attempt whose leader is gone. */
export function exitOfGone(folder: StepFolder, marker: string, leader = livingLeader): number | null {
  if (readExit(folder) === null || leader(readProcess(folder), marker) !== null) return null;
  // The leader may have recorded its exit after the first look.
  return readExit(folder);
}

/** Whether a process of this attempt has begun. It may have created its record and not written it yet. */
export function hasBegunProcess(folder: StepFolder, marker: string): boolean {
  const isWritten = (): boolean => readProcess(folder).kind === 'written';
  // The second look is for one that has written its record and ended meanwhile.
  return isWritten() || livingLeader({ kind: 'incomplete' }, marker) !== null || isWritten();
}

/** An end without a record is noticed within a second. */
const LOOK_MS = 800;

/** Everybody who waits for an end shares one timer, which exists only while somebody waits. */
const waiting = new Set<() => void>();
let rounds: NodeJS.Timeout | null = null;

/** Between the record of an exit and the end of the process that wrote it. */
const SOON_MS = 10;

/** Calls once, when the process is gone. Returns a function that cancels it. Does not keep this process alive. */
export function whenGone(leader: ProcessEntry, folder: StepFolder, gone: (status: number | null) => void): () => void {
  let over = false;
  const close = (): void => {
    over = true;
    watcher?.close();
    waiting.delete(look);
    if (waiting.size > 0 || rounds === null) return;
    clearInterval(rounds);
    rounds = null;
  };
  const look = (): void => {
    if (over || lives(leader)) return;
    close();
    gone(readExit(folder));
  };
  const onRecord = (): void => {
    look();
    if (!over) setTimeout(look, SOON_MS).unref();
  };
  const watcher = watchPath(stepFile(folder, 'status'), onRecord, { background: true });
  setTimeout(look, 0).unref();
  waiting.add(look);
  rounds ??= setInterval(() => {
    for (const each of waiting) each();
  }, LOOK_MS).unref();
  return close;
}
