// Detects that an agent is idle, from its hooks and its screen. Pure.
//
// The hook decides at once, unless the screen shows new work. An interrupt by a person calls no hook: then a screen
// without work for a while decides.

import type { TerminalProfile, Timing } from '../../../ir/adapter.ts';
import type { HookLog } from './hook-log.ts';
import type { Screen } from './screen.ts';

export function idleDetector(
  { acknowledge, ready, timing }: TerminalProfile,
  hooks: Pick<HookLog, 'reportsIdle' | 'isIdle'> | null,
) {
  const showsBusy = acknowledge.busy.length > 0;
  const hook = hooks?.reportsIdle === true ? hooks : null;
  let idleSince: number | null = null;
  return {
    canDetect: hook !== null || showsBusy || ready !== null,
    /** Call with every observed screen. */
    observe({ dialog, isReady, isBusy, isQueued }: Screen, now: number): boolean {
      const seemsIdle = dialog === null && isReady && !isBusy && !isQueued;
      idleSince = seemsIdle ? (idleSince ?? now) : null;
      const idleMs = now - (idleSince ?? now);
      if (hook === null) return seemsIdle && idleMs >= timing.pauseMs;
      if (hook.isIdle) return !isBusy && dialog === null;
      // A hook would have reported by then.
      return showsBusy && seemsIdle && idleMs >= timing.reactMs;
    },
  };
}

// Decides when to type at a program without a ready pattern: input during start-up may be lost although the terminal
// echoes it. Waits for the adapter's start-up time, then until the program has printed something and does nothing any
// more. A program that prints nothing, or never stops, is not waited for much longer, but one that computes is. Pure.

/** `startedBy`: when the program should be ready. */
export function startupWait(startedBy: number, { pauseMs, reactMs }: Timing) {
  let printedBefore = 0;
  let printedAt = Number.NEGATIVE_INFINITY;
  let computedAt = Number.NEGATIVE_INFINITY;
  const latest = startedBy + reactMs;
  /** Milliseconds left to wait. `printed`: total output so far. `computes`: its processes do not sleep. */
  return ({ printed, computes }: { readonly printed: number; readonly computes: boolean }, now: number): number => {
    if (printed !== printedBefore) printedAt = now;
    else if (computes) computedAt = now;
    printedBefore = printed;
    const quiet = printed === 0 ? latest : Math.min(printedAt + pauseMs, latest);
    return Math.max(startedBy, quiet, computedAt + pauseMs) - now;
  };
}
