// Processes: starting ones that outlive this one, and the processes of this machine.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { cureOfErrno, describeErrno, type ErrnoError, EXHAUSTED, isErrno, isSystemError, tolerate } from './errors.ts';
import { clearPlaceOf, makeFolder, openPrivate } from './files.ts';

/** Two layers: what is common to many processes, and what is laid over it. Copying the first for each would be slow. */
export interface Environment {
  readonly base: Readonly<Record<string, string>>;
  readonly own: Readonly<Record<string, string>>;
}

export function wholeEnvironment({ base, own }: Environment): Readonly<Record<string, string>> {
  return { ...base, ...own };
}

export interface ProcessRequest {
  readonly path: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly environment: Environment;
  /** The paths of `stdout` and `stderr` without these names. Their folder is created if it is missing. */
  readonly prefix: string;
  /** Does not keep this process alive. */
  readonly background?: boolean;
}

export interface ProcessEvents {
  begun(pid: number): void;
  /** It could not be started: the system's reason. */
  refused(error: ErrnoError): void;
  /** 128 + N for death by signal N, as in shells. */
  ended(status: number): void;
}

/**
 * Starts a process that outlives this one: it leads its own session and process group, reads nothing, and writes straight
 * into files. `begun` may come during this call; the others come later.
 */
export function startProcess(request: ProcessRequest, events: ProcessEvents): void {
  const { path, args, cwd, environment, prefix, background } = request;
  const files: number[] = [];
  try {
    makeFolder(dirname(`${prefix}stdout`));
    // A shell that records its process there would wait for a pipe, or write through a link.
    clearPlaceOf(`${prefix}status`);
    for (const name of ['stdout', 'stderr']) files.push(openPrivate(`${prefix}${name}`));
    const env = wholeEnvironment(environment);
    const child = spawn(path, args, { cwd, env, detached: true, stdio: ['ignore', ...files] });
    child.once('error', (error) => events.refused(errnoOf(error)));
    child.once('exit', (code, signal) => events.ended(signal === null ? (code ?? 0) : 128 + constants.signals[signal]));
    if (background === true) child.unref();
    if (child.pid !== undefined) events.begun(child.pid);
  } catch (error) {
    // Some refusals are exceptions, others are events. A wrong argument is a bug, not a refusal.
    const refusal = errnoOf(error);
    setImmediate(() => events.refused(refusal));
  } finally {
    for (const file of files) closeSync(file);
  }
}

/**
 * How long to wait before a process is started again that the system has refused so often for lack of files, processes or
 * memory; null: the reason is another one, or about three minutes have passed.
 */
export function pauseBeforeStart(error: unknown, refusals: number): number | null {
  if (!isErrno(error, ...EXHAUSTED) || refusals >= STARTS_MAX) return null;
  tellShortage(error.code);
  return Math.min(START_PAUSE_MIN_MS * 2 ** (refusals - 1), START_PAUSE_MAX_MS);
}

const STARTS_MAX = 100;
const START_PAUSE_MIN_MS = 50;
const START_PAUSE_MAX_MS = 2_000;

let shortageListener: ((line: string) => void) | null = null;
const toldShortages = new Set<string>();
let waitingHelpers = 0;

/** The listener gets one line for each kind of shortage that processes wait for. */
export function onShortage(listener: (line: string) => void): void {
  shortageListener = listener;
}

function tellShortage(code: string): void {
  if (toldShortages.has(code) || shortageListener === null) return;
  toldShortages.add(code);
  const awaited = code === 'EMFILE' || code === 'ENFILE' ? 'file descriptors' : 'room for another process';
  shortageListener(`waiting for ${awaited}: ${describeErrno(code)} (${code}); ${cureOfErrno(code)}`);
}

/** Whether a helper waits because the system has no room for it. */
export function isHelperWaiting(): boolean {
  return waitingHelpers > 0;
}

/**
 * Starts a helper, and waits if the system has no room for it. Rejects with the system's reason, at the latest after so many
 * refusals.
 */
export async function startHelper<T extends ChildProcess>(start: () => T, refusalsMax = STARTS_MAX): Promise<T> {
  for (let refusals = 1; ; refusals += 1) {
    const started = startedOrRefused(start);
    if ('pid' in started && started.pid !== undefined) return started;
    // Without a process, its pipes may be missing too.
    const error =
      started instanceof Error ? started : await new Promise<Error>((resolve) => started.once('error', resolve));
    const pauseMs = pauseBeforeStart(error, refusals);
    if (pauseMs === null || refusals >= refusalsMax) throw error;
    waitingHelpers += 1;
    await sleep(pauseMs);
    waitingHelpers -= 1;
  }
}

/** Some refusals are exceptions, others are events. */
function startedOrRefused<T>(start: () => T): T | ErrnoError {
  try {
    return start();
  } catch (error) {
    return errnoOf(error);
  }
}

/** Standard output of a system program; null if it is missing or fails. */
export function outputOf(program: string, args: readonly string[]): string | null {
  const { status, stdout, error } = spawnSync(program, args, {
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C' },
    maxBuffer: 256 * 1024 * 1024,
  });
  if (error !== undefined && !isErrno(error, 'ENOENT')) throw error;
  return status === 0 ? stdout : null;
}

export const SIGNAL_NAMES: ReadonlyMap<number, string> = new Map(
  // Some signals have two names; the first one wins.
  Object.entries(constants.signals)
    .toReversed()
    .map(([name, number]) => [number, name]),
);

function errnoOf(error: unknown): ErrnoError {
  if (isSystemError(error)) return error;
  throw error;
}

// The processes of this machine: which are alive, which belong together, which have a marker.
//
// The start time distinguishes a process from a later one with the same pid. A zombie is not alive. Linux has /proc; elsewhere
// `ps` is called, which shows markers only of the user's own processes.

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

export function allProcesses(): readonly ProcessEntry[] {
  if (!HAS_PROC) return allByPs();
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => entryByProc(Number(pid)) ?? []);
}

export function findProcess(pid: number): ProcessEntry | null {
  return HAS_PROC ? entryByProc(pid) : (allByPs().find((entry) => entry.pid === pid) ?? null);
}

/** Markers of a process and of its living ancestors, the nearest first. Its own may have been set after it started. */
export function markersAround(pid = process.pid): readonly string[] {
  const markers = HAS_PROC ? ancestorMarkers(pid, linkByProc) : markersAroundByPs(pid);
  const own = pid === process.pid ? process.env[MARKER] : undefined;
  return own === undefined || markers.includes(own) ? markers : [own, ...markers];
}

/** Exported for a test on systems that have both. */
export function markersAroundByPs(pid: number): readonly string[] {
  const lines = outputOf('ps', [ALL_WITH_ENVIRONMENT, '-o', 'pid=,ppid=,command='])?.split('\n') ?? [];
  const links = lines.map((line): [number, AncestorLink] => {
    const [, child, parent, command = ''] = /^\s*(\d+)\s+(\d+)\s(.*)$/.exec(line) ?? [];
    return [Number(child), { parent: Number(parent), marker: markerInCommand(command) }];
  });
  const byPid = new Map(links);
  return ancestorMarkers(pid, (each) => byPid.get(each) ?? null);
}

interface AncestorLink {
  readonly parent: number;
  readonly marker: string | null;
}

function ancestorMarkers(pid: number, linkOf: (pid: number) => AncestorLink | null): readonly string[] {
  const markers = new Set<string>();
  const seen = new Set<number>();
  for (let each = pid; each > 0 && !seen.has(each); ) {
    seen.add(each);
    const link = linkOf(each);
    if (link === null) break;
    if (link.marker !== null) markers.add(link.marker);
    each = link.parent;
  }
  return [...markers];
}

function linkByProc(pid: number): AncestorLink | null {
  const parent = readStat(pid)?.[1];
  return parent === undefined ? null : { parent: Number(parent), marker: markerIn(readProc(pid, 'environ') ?? '') };
}

/** Fast, and starts no process. Without /proc it cannot recognise a reused pid. */
export function lives(entry: ProcessEntry): boolean {
  if (HAS_PROC) return statByProc(entry.pid)?.start === entry.start;
  // EPERM: it lives, and is another user's.
  return tolerate(['EPERM'], true, () => tolerate(['ESRCH'], false, () => process.kill(entry.pid, 0)));
}

/** The environment with which a process began; null if it is not readable. */
export function environmentOf(pid: number): Readonly<Record<string, string>> | null {
  const text = HAS_PROC ? readProc(pid, 'environ') : null;
  if (text === null) return null;
  const entries = text
    .split('\0')
    .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]);
  return Object.fromEntries(entries) as Record<string, string>;
}

/** The arguments of a process, with its name; empty if they are not readable. */
export function argumentsOf(pid: number): readonly string[] {
  if (HAS_PROC) return readProc(pid, 'cmdline')?.split('\0').slice(0, -1) ?? [];
  return (
    outputOf('ps', ['-o', 'command=', '-p', String(pid)])
      ?.trim()
      .split(' ') ?? []
  );
}

/** When a process began, in milliseconds since 1970; null if unknown. */
export function startTimeOf({ start }: ProcessEntry): number | null {
  if (!HAS_PROC) return Number.isNaN(Date.parse(start)) ? null : Date.parse(start);
  const booted = /^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'latin1'))?.[1];
  return booted === undefined ? null : (Number(booted) + Number(start) / TICKS_A_SECOND) * 1_000;
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
  return tolerate(['ENOENT', 'ESRCH', 'EACCES', 'EPERM'], null, () => readFileSync(`/proc/${pid}/${file}`, 'utf8'));
}

function markerIn(environment: string): string | null {
  const at = `\0${environment}`.indexOf(`\0${MARKER}=`);
  if (at === -1) return null;
  const end = environment.indexOf('\0', at);
  return environment.slice(at + MARKER.length + 1, end === -1 ? undefined : end);
}

/** Exported for a test on systems that have both. */
export function allByPs(): readonly ProcessEntry[] {
  const lines = outputOf('ps', [ALL_WITH_ENVIRONMENT, '-o', 'pid=,pgid=,stat=,lstart=,command='])?.split('\n') ?? [];
  return lines.flatMap((line) => {
    const fields = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(\S+\s+\S+\s+\d+\s+[\d:]+\s+\d+)\s(.*)$/.exec(line);
    if (fields === null) return [];
    const [, pid, group, state = '', start = '', command = ''] = fields;
    if (state.startsWith('Z')) return [];
    const marker = markerInCommand(command);
    const environment = marker === null ? 'hidden' : 'told';
    return [{ pid: Number(pid), group: Number(group), session: Number(group), start, marker, environment }];
  });
}

/** All processes, with their environments behind their arguments. */
const ALL_WITH_ENVIRONMENT = process.platform === 'darwin' ? '-axEww' : 'axeww';

function markerInCommand(command: string): string | null {
  return new RegExp(`(?:^|\\s)${MARKER}=(\\S+)`).exec(command)?.[1] ?? null;
}

let knownBootId: string | null = null;

/** Differs after each boot. */
export function bootId(): string {
  knownBootId ??= readBootId();
  return knownBootId;
}

function readBootId(): string {
  if (HAS_PROC) return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  const read = (name: string): string | null => outputOf('sysctl', ['-n', name]);
  return (read('kern.bootsessionuuid') ?? read('kern.boottime') ?? 'unknown').trim().replaceAll(/\s+/g, '_');
}
