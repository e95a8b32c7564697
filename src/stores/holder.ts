// The process that holds a lock, identified so that neither a reused pid nor a reboot is mistaken for it.

import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';

import { isErrno } from '../sys/errno.ts';

export interface ProcessIdentity {
  readonly pid: number;
  /** When the process started, as the system writes it. Only for comparison. */
  readonly processStart: string;
  /** Differs after each boot. */
  readonly bootId: string;
}

export interface LockHolder extends ProcessIdentity {
  /** `flock`: the kernel holds the lock. `file`: this text is the lock. */
  readonly kind: 'flock' | 'file';
  readonly takenAt: string;
  /** Differs each time that the lock is acquired. */
  readonly nonce: string;
}

export async function thisProcess(): Promise<ProcessIdentity> {
  return { pid: process.pid, processStart: (await processStart(process.pid)) ?? '', bootId: await bootId() };
}

export async function isHolderAlive(holder: ProcessIdentity): Promise<boolean> {
  return holder.bootId === (await bootId()) && holder.processStart === (await processStart(holder.pid));
}

/** Null if the text is incomplete. */
export function parseHolder(text: string): LockHolder | null {
  try {
    const holder = JSON.parse(text) as LockHolder;
    return Number.isInteger(holder.pid) && typeof holder.nonce === 'string' ? holder : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}

/** Null if the process does not exist, or is a zombie. */
async function processStart(pid: number): Promise<string | null> {
  if (process.platform !== 'linux') return outputOf('ps', ['-o', 'lstart=', '-p', String(pid)]);
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    // The second field is the command's name in brackets, and may contain anything. The fields after the last bracket cannot.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state] = fields;
    return state === 'Z' || state === 'X' ? null : (fields[19] ?? null);
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH')) return null;
    throw error;
  }
}

async function bootId(): Promise<string> {
  if (process.platform !== 'linux') return outputOf('sysctl', ['-n', 'kern.bootsessionuuid']) ?? '';
  return (await readFile('/proc/sys/kernel/random/boot_id', 'latin1')).trim();
}

/** Null if the command is missing or fails. */
function outputOf(command: string, args: readonly string[]): string | null {
  try {
    const text = execFileSync(command, args, { stdio: ['ignore', 'pipe', 'ignore'], encoding: 'utf8' }).trim();
    return text === '' ? null : text;
  } catch (error) {
    if (isErrno(error, 'ENOENT') || (error instanceof Error && 'status' in error)) return null;
    throw error;
  }
}
