// The process that holds a lock, identified so that neither a reused pid nor a reboot is mistaken for it.

import { bootId, findProcess } from '../sys/process-table.ts';

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

export function thisProcess(): ProcessIdentity {
  return { pid: process.pid, processStart: findProcess(process.pid)?.start ?? '', bootId: bootId() };
}

export function isHolderAlive(holder: ProcessIdentity): boolean {
  return holder.bootId === bootId() && holder.processStart === findProcess(holder.pid)?.start;
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
