// The system clock. Timers count at most 2^31 - 1 milliseconds, so a later moment takes several waits; and they may fire a
// little early by the wall clock, so the time is checked before the call.

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
