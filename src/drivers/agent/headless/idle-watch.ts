// Reports an agent that was silent for too long. Signs of life are output and a tool call in flight. Without both, its
// processes are checked twice: at half of the time and at its end. A program that works silently is not idle.

import { readFileSync } from 'node:fs';

import { tolerate } from '../../../sys/errors.ts';
import { allProcesses, HAS_PROC } from '../../../sys/process.ts';

export interface IdleWatchRequest {
  /** Limit of silence. */
  readonly idleMs: number;
  /** Activity of its processes; null if unavailable. */
  readonly signs: () => LifeSigns | null;
  readonly toolInFlight: () => boolean;
  /** Called once. */
  readonly idle: () => void;
  /** Does not keep the process alive. */
  readonly background: boolean;
}

export class IdleWatch {
  readonly #request: IdleWatchRequest;
  #signAt = performance.now();
  #looked: { readonly signs: LifeSigns; readonly at: number } | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(request: IdleWatchRequest) {
    this.#request = request;
    this.#wait(request.idleMs / 2);
  }

  /** A sign of life. */
  sign(): void {
    this.#signAt = performance.now();
    this.#looked = null;
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #wait(ms: number): void {
    const timer = setTimeout(() => this.#look(), Math.min(Math.ceil(ms), WAIT_MAX_MS));
    this.#timer = this.#request.background ? timer.unref() : timer;
  }

  #look(): void {
    const { idleMs, signs: look, toolInFlight, idle } = this.#request;
    if (toolInFlight()) this.sign();
    const now = performance.now();
    const silentMs = now - this.#signAt;
    if (silentMs < idleMs / 2) return this.#wait(idleMs / 2 - silentMs);
    const [before, signs] = [this.#looked, look()];
    this.#looked = signs === null ? null : { signs, at: now };
    if (signs !== null && before === null) return this.#wait(Math.max(idleMs - silentMs, idleMs / 2));
    if (signs !== null && before !== null && showLife(before.signs, signs, now - before.at)) this.#signAt = now;
    else if (silentMs >= idleMs) return idle();
    this.#wait(this.#signAt + idleMs - now);
  }
}

/** Longest timer of the system. */
const WAIT_MAX_MS = 2 ** 31 - 1;

/**
 * Activity of silent processes: the processor time and disk writes of all processes with a marker. Terminal output
 * does not count.
 */
export interface LifeSigns {
  /** Milliseconds, including ended children. */
  readonly cpu: number;
  /** Bytes. */
  readonly written: number;
}

/** Null if the system does not report it. Reads the whole process table, so use it rarely. */
export function processActivity(marker: string): LifeSigns | null {
  if (!HAS_PROC) return null;
  const each = allProcesses().filter((entry) => entry.marker === marker);
  return {
    cpu: each.reduce((sum, { pid }) => sum + cpuOf(pid), 0),
    written: each.reduce((sum, { pid }) => sum + writtenBy(pid), 0),
  };
}

/** Detects that a process with a marker runs, is stopped, or has run since the last call. */
export class ComputingDetector {
  readonly #marker: string;
  #cpu = 0;

  constructor(marker: string) {
    this.#marker = marker;
  }

  /** False if the system does not report it. */
  computes(): boolean {
    if (!HAS_PROC) return false;
    const each = allProcesses().filter((entry) => entry.marker === this.#marker);
    const before = this.#cpu;
    this.#cpu = each.reduce((sum, { pid }) => sum + cpuOf(pid), 0);
    return this.#cpu !== before || each.some(({ pid }) => !/^[SI]/.test(statOf(pid)[0] ?? 'S'));
  }
}

/**
 * Whether there was activity between two measurements. A waiting program uses a little time, too. Less than before
 * means that a process has ended.
 */
export function showLife(before: LifeSigns, after: LifeSigns, ms: number): boolean {
  return after.written !== before.written || after.cpu < before.cpu || after.cpu - before.cpu > ms * WAITING_SHARE;
}

const WAITING_SHARE = 0.01;

/** The unit of /proc/PID/stat is the same on every Linux. */
const TICK_MS = 10;

function cpuOf(pid: number): number {
  return (
    statOf(pid)
      .slice(11, 15)
      .reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS
  );
}

/** Fields from the third on. The second is the program name in parentheses and may contain anything. */
function statOf(pid: number): readonly string[] {
  const text = readProc(pid, 'stat');
  return text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function writtenBy(pid: number): number {
  return Number(/^write_bytes: (\d+)$/m.exec(readProc(pid, 'io'))?.[1] ?? 0);
}

/** Empty if it is gone or not readable. */
function readProc(pid: number, file: string): string {
  return tolerate(['ENOENT', 'ESRCH', 'EACCES', 'EPERM'], '', () => readFileSync(`/proc/${pid}/${file}`, 'latin1'));
}
