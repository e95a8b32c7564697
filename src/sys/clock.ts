// The machine's clock. Its timers count at most 2^31 - 1 milliseconds, so a later moment is reached in several waits; and
// they may be a moment early by the wall clock, so the moment is looked at again before anyone is called.

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
