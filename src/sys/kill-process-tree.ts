// Ends all the processes of one attempt: TERM, time to clean up, KILL, until none is left.
//
// Its processes are those that carry its marker, and those in a session with one of them or with its leader: sessions
// are only ever begun by the attempt's own processes, so no stranger is in one. What cannot be ended is named.

import { isErrno } from './errno.ts';
import { allProcesses, lives } from './process-table.ts';
import type { ProcessEntry } from './process-table.ts';

export interface Termination {
  /** Leaves no more time to clean up. */
  atOnce(): void;
  /** Something has changed: look now rather than soon. */
  look(): void;
  /** Resolves to those that could not be ended. */
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
    const asked = new Set<string>();
    let pauseMs = PAUSE_MIN_MS;
    let known: readonly ProcessEntry[] = [];
    for (let empty = 0; ; ) {
      // The whole table is dear to read: only when those we know are gone, or are to be killed.
      const left = known.filter(lives);
      const looked = left.length > 0 && performance.now() < killAt ? null : membersOf(target);
      known = looked?.members ?? left;
      const now = performance.now();
      if (known.length === 0) {
        empty += 1;
        // Processes come and go while the table is read, and one that becomes another program shows no marker then.
        if (empty > (looked?.unsure === true ? LOOKS_MAX : LOOKS_MIN)) return [];
      } else {
        empty = 0;
        if (now >= killAt + UNKILLABLE_MS) return known;
        if (now >= killAt) {
          send('SIGKILL', known);
        } else {
          const fresh = known.filter((entry) => !asked.has(keyOf(entry)));
          for (const entry of fresh) asked.add(keyOf(entry));
          send('SIGTERM', fresh);
          send('SIGCONT', fresh);
        }
      }
      const brief = known.length === 0 || now >= killAt;
      // To look twice in one turn is to look once.
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
  readonly marker: string;
  /** The leader of the attempt's session, if it is known to be the attempt's. */
  readonly leader: number | null;
}

/** How often the table must have shown nobody: usually, and while it shows processes that might be anybody. */
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
  // An engine that was itself started by the attempt does not end itself.
  const own = everyone.find(({ pid }) => pid === process.pid)?.session;
  const all = everyone.filter(({ session }) => session !== own);
  const sessions = new Set(all.filter((entry) => entry.marker === marker).map(({ session }) => session));
  if (leader !== null) sessions.add(leader);
  return {
    members: all.filter((entry) => entry.marker === marker || sessions.has(entry.session)),
    // Those of session 0 are the kernel's own.
    unsure: all.some(({ environment, session }) => environment === 'empty' && session !== 0),
  };
}

/** Read once a turn, however many are being ended. */
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

/** To whole groups: a process that is just being forked is not missed. */
function send(signal: NodeJS.Signals, members: readonly ProcessEntry[]): void {
  for (const group of new Set(members.map((entry) => entry.group))) {
    try {
      process.kill(-group, signal);
    } catch (error) {
      // Gone meanwhile, or not ours to signal: whoever is left is counted again.
      if (!isErrno(error, 'ESRCH', 'EPERM')) throw error;
    }
  }
}

function keyOf({ pid, start }: ProcessEntry): string {
  return `${pid} ${start}`;
}
