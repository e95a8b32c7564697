// The time that durations on the page are measured against. It stands still while the page is not connected, so that
// nothing seems to happen that the page cannot see, and in an exported run.

import { effect, signal } from '@preact/signals';
import { connection } from './connection.ts';
import { exported } from './exported.ts';

const TICK_MS = 1000;

/** Milliseconds since 1970. Components that read it are drawn again each second. */
export const now = signal(exported?.at ?? Date.now());

/** Always moves, for `Not connected since`. */
export const wallClock = signal(Date.now());

/** Call once. */
export function startClock(): void {
  setInterval(tick, TICK_MS);
  document.addEventListener('visibilitychange', tick);
  effect(() => {
    if (connection.value.kind === 'live') tick();
  });
}

function tick(): void {
  if (document.hidden) return;
  wallClock.value = Date.now();
  if (connection.peek().kind === 'live') now.value = wallClock.peek();
}
