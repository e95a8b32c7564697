// Who holds a lock, told so that a pid given to another process, or a restart of the machine, is not mistaken for it.

import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';

import { isErrno } from './usage-errors.ts';

export interface ProcessIdentity {
  readonly pid: number;
  /** When the process began, in the system's own words: to be compared, not to be read. */
  readonly processStart: string;
  /** Differs after each start of the machine. */
  readonly bootId: string;
}

export interface LockHolder extends ProcessIdentity {
  /** `flock`: the kernel holds the lock for the process. `file`: the lock is as good as this text. */
  readonly kind: 'flock' | 'file';
  readonly takenAt: string;
  /** Tells this taking from every other. */
  readonly nonce: string;
}

export async function thisProcess(): Promise<ProcessIdentity> {
  return { pid: process.pid, processStart: (await processStart(process.pid)) ?? '', bootId: await bootId() };
}

export async function isHolderAlive(holder: ProcessIdentity): Promise<boolean> {
  return holder.bootId === (await bootId()) && holder.processStart === (await processStart(holder.pid));
}

/** Null where the text was cut off. */
export function parseHolder(text: string): LockHolder | null {
  try {
    const holder = JSON.parse(text) as LockHolder;
    return Number.isInteger(holder.pid) && typeof holder.nonce === 'string' ? holder : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}

/** Null where there is no such process, or only its remains. */
async function processStart(pid: number): Promise<string | null> {
  if (process.platform !== 'linux') return runQuietly('ps', ['-o', 'lstart=', '-p', String(pid)]);
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    // The second field is the command's name in brackets and may contain anything; what follows the last bracket may not.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state] = fields;
    return state === 'Z' || state === 'X' ? null : (fields[19] ?? null);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return null;
    throw error;
  }
}

async function bootId(): Promise<string> {
  if (process.platform !== 'linux') return runQuietly('sysctl', ['-n', 'kern.bootsessionuuid']) ?? '';
  return (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim();
}

/** Null where the command is missing or says no. */
function runQuietly(command: string, args: readonly string[]): string | null {
  try {
    const text = execFileSync(command, args, { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' }).trim();
    return text === '' ? null : text;
  } catch (error) {
    if (isErrno(error, 'ENOENT') || (error instanceof Error && 'status' in error)) return null;
    throw error;
  }
}
