// The processes of this machine: which are alive, which belong together, which have a marker.
//
// The start time distinguishes a process from a later one with the same pid. A zombie is not alive. Linux has /proc; elsewhere
// `ps` is called, which shows markers only of the user's own processes.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { isErrno } from './errno.ts';
import { outputOf } from './process.ts';

/** The environment variable by which the processes of a run are known. */
export const MARKER = 'MEOW_RUN';

export interface ProcessEntry {
  readonly pid: number;
  readonly group: number;
  /** If unknown, the group. */
  readonly session: number;
  /** As the system writes it; only for comparison. */
  readonly start: string;
  /** Null if it has none, or its environment is unknown. */
  readonly marker: string | null;
  /** `empty`: it has none, or is executing another program. `hidden`: not readable by us. */
  readonly environment: 'told' | 'empty' | 'hidden';
}

export const HAS_PROC = existsSync('/proc/self/stat') && existsSync('/proc/uptime');

/** All living processes. */
export function allProcesses(): readonly ProcessEntry[] {
  return HAS_PROC ? allByProc() : allByPs();
}

export function findProcess(pid: number): ProcessEntry | null {
  return HAS_PROC ? entryByProc(pid) : (allByPs().find((entry) => entry.pid === pid) ?? null);
}

/** Fast, and starts no process. Without /proc it cannot recognise a reused pid. */
export function lives(entry: ProcessEntry): boolean {
  if (HAS_PROC) return statByProc(entry.pid)?.start === entry.start;
  try {
    process.kill(entry.pid, 0);
    return true;
  } catch (error) {
    if (isErrno(error, 'ESRCH')) return false;
    if (isErrno(error, 'EPERM')) return true;
    throw error;
  }
}

/** Whether the process lost its terminal: most programs exit then, and one that does not is unreachable. False if it is gone. */
export function hasLostTerminal(pid: number): boolean {
  if (!HAS_PROC) return /^\?+$/.test(outputOf('ps', ['-o', 'tty=', '-p', String(pid)])?.trim() ?? '');
  return readStat(pid)?.[4] === '0';
}

/** Whether the process existed at this uptime (seconds); null if unknown. */
export function hadBegunAt(entry: ProcessEntry, uptime: number): boolean | null {
  if (!HAS_PROC) return null;
  const own = statByProc(process.pid);
  const now = Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]);
  // In some containers the uptime is the container's, but start times are the machine's.
  if (own === null || Number(own.start) > (now + 1) * TICKS_A_SECOND) return null;
  return Number(entry.start) <= uptime * TICKS_A_SECOND + 1;
}

/** The unit of /proc/PID/stat, the same on every Linux. */
const TICKS_A_SECOND = 100;

function allByProc(): readonly ProcessEntry[] {
  const entries: ProcessEntry[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const entry = entryByProc(Number(name));
    if (entry !== null) entries.push(entry);
  }
  return entries;
}

function entryByProc(pid: number): ProcessEntry | null {
  const stat = statByProc(pid);
  if (stat === null) return null;
  const text = readProc(pid, 'environ');
  if (text === null) return { ...stat, marker: null, environment: 'hidden' };
  return { ...stat, marker: markerIn(text), environment: text === '' ? 'empty' : 'told' };
}

function statByProc(pid: number): Omit<ProcessEntry, 'marker' | 'environment'> | null {
  const fields = readStat(pid);
  if (fields === null) return null;
  const [state, , group, session] = fields;
  if (state === 'Z' || state === 'X') return null;
  return { pid, group: Number(group), session: Number(session), start: fields[19] ?? '' };
}

/** The fields of /proc/PID/stat from the third on. The second is the program's name in brackets, and may contain anything. */
function readStat(pid: number): readonly string[] | null {
  const text = readProc(pid, 'stat');
  return text === null ? null : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function readProc(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'EPERM')) return null;
    throw error;
  }
}

function markerIn(environment: string): string | null {
  const at = `\0${environment}`.indexOf(`\0${MARKER}=`);
  if (at === -1) return null;
  const end = environment.indexOf('\0', at);
  return environment.slice(at + MARKER.length + 1, end === -1 ? undefined : end);
}

/** Exported for a test on systems that have both. */
export function allByPs(): readonly ProcessEntry[] {
  const everything = process.platform === 'darwin' ? '-axEww' : 'axeww';
  const lines = outputOf('ps', [everything, '-o', 'pid=,pgid=,stat=,lstart=,command='])?.split('\n') ?? [];
  return lines.flatMap((line) => {
    const fields = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\d+\s+[\d:]+\s+\d+)\s(.*)$/.exec(line);
    if (fields === null) return [];
    const [, pid, group, state = '', start = '', command = ''] = fields;
    if (state.startsWith('Z')) return [];
    const marker = new RegExp(`(?:^|\\s)${MARKER}=(\\S+)`).exec(command)?.[1] ?? null;
    const environment = marker === null ? 'hidden' : 'told';
    return [{ pid: Number(pid), group: Number(group), session: Number(group), start, marker, environment }];
  });
}

let knownBootId: string | null = null;

/** Differs after each boot. */
export function bootId(): string {
  knownBootId ??= readBootId();
  return knownBootId;
}

function readBootId(): string {
  if (HAS_PROC) return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  const text =
    outputOf('sysctl', ['-n', 'kern.bootsessionuuid']) ?? outputOf('sysctl', ['-n', 'kern.boottime']) ?? 'unknown';
  return text.trim().replaceAll(/\s+/g, '_');
}
