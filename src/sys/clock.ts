// The system clock, and waiting with a time limit. Timers count at most 2^31 - 1 milliseconds, so a later moment takes
// several waits; and they may fire a little early by the wall clock, so the time is checked before the call.

import type { Clock } from '../engine/ports.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  at(moment, call) {
    let timer: NodeJS.Timeout;
    const wait = (): void => {
      const left = Math.min(WAIT_MAX_MS, Math.max(0, moment - Date.now()));
      timer = setTimeout(() => {
        if (Date.now() < moment) wait();
        else call();
      }, left);
    };
    wait();
    return () => clearTimeout(timer);
  },
};

const WAIT_MAX_MS = 2 ** 31 - 1;

export interface TimeLimit {
  readonly timeoutMs?: number;
  readonly givenUp?: Promise<unknown> | undefined;
  readonly signal?: AbortSignal;
}

/** `ended` resolves at the limit. `cancel` clears the timer. */
export function timeLimit({ timeoutMs, givenUp, signal }: TimeLimit): {
  readonly ended: Promise<null>;
  readonly cancel: () => void;
} {
  let end = (): void => {};
  const ended = new Promise<null>((resolve) => {
    end = () => resolve(null);
  });
  const timer = timeoutMs === undefined ? undefined : setTimeout(end, timeoutMs);
  void givenUp?.then(end);
  signal?.addEventListener('abort', end);
  if (signal?.aborted === true) end();
  const cancel = (): void => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  };
  return { ended, cancel };
}

/** Null if the limit comes first. */
export async function within<T>(promise: Promise<T>, limit: TimeLimit): Promise<T | null> {
  const { ended, cancel } = timeLimit(limit);
  try {
    return await Promise.race([promise, ended]);
  } finally {
    cancel();
  }
}
