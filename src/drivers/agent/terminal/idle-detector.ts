// Detects that an agent is idle, from its hooks and its screen. Pure.
//
// The hook decides at once, unless the screen shows new work. An interrupt by a person calls no hook: then a screen
// without work for a while decides.

import type { TerminalProfile, Timing } from '../../../ir/adapter.ts';
import type { HookLog } from './hook-log.ts';
import type { Screen } from './screen.ts';

export class IdleDetector {
  /** Whether idleness can be detected at all. */
  readonly canDetect: boolean;
  readonly #showsBusy: boolean;
  readonly #timing: Timing;
  readonly #hooks: Pick<HookLog, 'reportsIdle' | 'isIdle'> | null;
  #idleSince: number | null = null;

  constructor(ways: TerminalProfile, hooks: Pick<HookLog, 'reportsIdle' | 'isIdle'> | null) {
    const { acknowledge, ready, timing } = ways;
    this.#timing = timing;
    this.#showsBusy = acknowledge.busy.length > 0;
    this.#hooks = hooks?.reportsIdle === true ? hooks : null;
    this.canDetect = this.#hooks !== null || this.#showsBusy || ready !== null;
  }

  /** Call with every observed screen. */
  observe({ dialog, isReady, isBusy, isQueued }: Screen, now: number): boolean {
    const seemsIdle = dialog === null && isReady && !isBusy && !isQueued;
    this.#idleSince = seemsIdle ? (this.#idleSince ?? now) : null;
    const idleMs = now - (this.#idleSince ?? now);
    if (this.#hooks === null) return seemsIdle && idleMs >= this.#timing.pauseMs;
    if (this.#hooks.isIdle) return !isBusy && dialog === null;
    // A hook would have reported by then.
    return this.#showsBusy && seemsIdle && idleMs >= this.#timing.reactMs;
  }
}

// Decides when to type at a program without a ready pattern: input during start-up may be lost although the terminal
// echoes it. Waits for the adapter's start-up time, then until the program has printed something and does nothing any
// more. A program that prints nothing, or never stops, is not waited for much longer, but one that computes is. Pure.

export class StartupWait {
  readonly #startedBy: number;
  readonly #timing: Timing;
  #printed = 0;
  #printedAt = Number.NEGATIVE_INFINITY;
  #computedAt = Number.NEGATIVE_INFINITY;

  /** `startedBy`: when the program should be ready. */
  constructor(startedBy: number, timing: Timing) {
    this.#startedBy = startedBy;
    this.#timing = timing;
  }

  /** Milliseconds left to wait. `printed`: total output so far. `computes`: its processes do not sleep. */
  leftMs({ printed, computes }: { readonly printed: number; readonly computes: boolean }, now: number): number {
    const { pauseMs, reactMs } = this.#timing;
    if (printed !== this.#printed) this.#printedAt = now;
    else if (computes) this.#computedAt = now;
    this.#printed = printed;
    const latest = this.#startedBy + reactMs;
    const quiet = printed === 0 ? latest : Math.min(this.#printedAt + pauseMs, latest);
    return Math.max(this.#startedBy, quiet, this.#computedAt + pauseMs) - now;
  }
}
