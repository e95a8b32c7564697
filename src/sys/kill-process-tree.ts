// Kills all processes of an attempt: TERM, time to clean up, KILL, until none is left.
//
// These are the processes with its marker, and those in a session with one of them or with its leader: only processes of the
// attempt begin such sessions, so they contain no others. The result lists processes that could not be killed.

import { setTimeout as sleep } from 'node:timers/promises';

import { tolerate } from './errors.ts';
import { allProcesses, lives, pauseBeforeStart, type ProcessEntry } from './process.ts';

export interface Termination {
  /** Ends the time to clean up. */
  atOnce(): void;
  /** Checks again now: something has changed. */
  look(): void;
  /** Resolves to the processes that could not be killed. */
  readonly done: Promise<readonly ProcessEntry[]>;
}

export function killProcessTree(target: Target, how: { readonly graceMs: number }): Termination {
  let killAt = performance.now() + how.graceMs;
  let wake: (() => void) | null = null;
  const look = (): void => wake?.();
  const pause = (ms: number, wakeable: boolean): Promise<void> =>
    new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        wake = null;
        resolve();
      };
      const timer = setTimeout(end, ms);
      if (wakeable) wake = end;
    });

  const run = async (): Promise<readonly ProcessEntry[]> => {
    const terminated = new Set<string>();
    let pauseMs = PAUSE_MIN_MS;
    let known: readonly ProcessEntry[] = [];
    for (let empty = 0; ; ) {
      // Reading the whole table is slow: only if the known processes are gone, or the time is over.
      const left = known.filter(lives);
      const looked = left.length > 0 && performance.now() < killAt ? null : await withFiles(() => membersOf(target));
      known = looked?.members ?? left;
      const now = performance.now();
      if (known.length === 0) {
        empty += 1;
        // Processes come and go during the read, and a process shows no marker while it executes another program.
        if (empty > (looked?.unsure === true ? LOOKS_MAX : LOOKS_MIN)) return [];
      } else {
        empty = 0;
        if (now >= killAt + UNKILLABLE_MS) return known;
        if (now >= killAt) {
          send('SIGKILL', known);
        } else {
          const fresh = known.filter((entry) => !terminated.has(keyOf(entry)));
          for (const entry of fresh) terminated.add(keyOf(entry));
          send('SIGTERM', fresh);
          send('SIGCONT', fresh);
        }
      }
      const brief = known.length === 0 || now >= killAt;
      // A second check in the same tick would see the same table.
      await pause(brief ? PAUSE_MIN_MS : Math.min(pauseMs, killAt - now), !brief);
      pauseMs = Math.min(pauseMs * 2, PAUSE_MAX_MS);
    }
  };

  return {
    atOnce() {
      killAt = Math.min(killAt, performance.now());
      look();
    },
    look,
    done: run(),
  };
}

export interface Target {
  /** One marker, or a test for the markers of several attempts. */
  readonly marker: string | ((marker: string) => boolean);
  /** The leader of the attempt's session, if known. */
  readonly leader: number | null;
}

/** How often the table must be empty: usually, and while it contains processes that cannot be identified. */
const LOOKS_MIN = 1;
const LOOKS_MAX = 5;
const PAUSE_MIN_MS = 4;
const PAUSE_MAX_MS = 200;
/** A process that waits in the kernel for a device cannot be killed. We do not wait for the device. */
const UNKILLABLE_MS = 5_000;

function membersOf({ marker, leader }: Target): {
  readonly members: readonly ProcessEntry[];
  readonly unsure: boolean;
} {
  const everyone = snapshot();
  // An engine that the attempt itself started does not kill itself.
  const own = everyone.find(({ pid }) => pid === process.pid)?.session;
  const all = everyone.filter(({ session }) => session !== own);
  const isMarked = typeof marker === 'string' ? (each: string) => each === marker : marker;
  const marked = all.filter((entry) => entry.marker !== null && isMarked(entry.marker));
  const sessions = new Set(marked.map(({ session }) => session));
  if (leader !== null) sessions.add(leader);
  return {
    // A process with the marker is in one of the sessions.
    members: all.filter(({ session }) => sessions.has(session)),
    // Session 0 is the kernel's.
    unsure: all.some(({ environment, session }) => environment === 'empty' && session !== 0),
  };
}

/** Waits while there is no file descriptor to read the table with: nobody may take that for an empty table. */
async function withFiles<T>(read: () => T): Promise<T> {
  for (let refusals = 1; ; refusals += 1) {
    try {
      return read();
    } catch (error) {
      const pauseMs = pauseBeforeStart(error, refusals);
      if (pauseMs === null) throw error;
      await sleep(pauseMs);
    }
  }
}

/** Read once per tick, for all trees together. */
function snapshot(): readonly ProcessEntry[] {
  if (current === null) {
    current = allProcesses();
    setImmediate(() => {
      current = null;
    });
  }
  return current;
}

let current: readonly ProcessEntry[] | null = null;

/** Signals whole groups, so that a process that is just being forked is not missed. */
function send(signal: NodeJS.Signals, members: readonly ProcessEntry[]): void {
  for (const group of new Set(members.map((entry) => entry.group))) {
    // Gone, or not ours to signal: the next read shows who is left.
    tolerate(['ESRCH', 'EPERM'], undefined, () => process.kill(-group, signal));
  }
}

function keyOf({ pid, start }: ProcessEntry): string {
  return `${pid} ${start}`;
}
