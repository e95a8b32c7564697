// Detects that an agent is idle, from its hooks and its screen. Pure.
//
// The hook decides at once, unless the screen shows new work. An interrupt by a person calls no hook: then a screen
// without work for a while decides.

import type { HookLog } from './hook-log.ts';
import type { Screen } from './screen.ts';
import type { TerminalProfile } from '../../../ir/adapter.ts';

export class IdleDetector {
  readonly #showsBusy: boolean;
  readonly #showsReady: boolean;
  readonly #hooks: Pick<HookLog, 'reportsIdle' | 'isIdle'> | null;
  #idleSince: number | null = null;

  constructor({ acknowledge, ready }: TerminalProfile, hooks: Pick<HookLog, 'reportsIdle' | 'isIdle'> | null) {
    this.#showsBusy = acknowledge.busy.length > 0;
    this.#showsReady = ready !== null;
    this.#hooks = hooks?.reportsIdle === true ? hooks : null;
  }

  /** Whether idleness can be detected at all. */
  get canDetect(): boolean {
    return this.#hooks !== null || this.#showsBusy || this.#showsReady;
  }

  /** Call with every observed screen. */
  observe({ dialog, isReady, isBusy, isQueued }: Screen, now: number): boolean {
    const seems = dialog === null && isReady && !isBusy && !isQueued;
    this.#idleSince = seems ? (this.#idleSince ?? now) : null;
    if (this.#hooks === null) return seems && now - (this.#idleSince ?? now) >= STEADY_MS;
    if (this.#hooks.isIdle) return !isBusy && dialog === null;
    return this.#showsBusy && seems && now - (this.#idleSince ?? now) >= UNTOLD_MS;
  }
}

/** Agents pause for a moment between two pieces of work. */
const STEADY_MS = 300;
/** A hook would have reported by then. */
const UNTOLD_MS = 3_000;

// Decides when to type at a program without a ready pattern: input during start-up may be lost although the terminal
// echoes it. Waits for the adapter's start-up time, then for output followed by silence; a program that prints nothing,
// or never stops, is not waited for much longer. Pure.

export class StartupWait {
  readonly #startedBy: number;
  #printed = 0;
  #printedAt = 0;

  /** `startedBy`: when the program should be ready. */
  constructor(startedBy: number) {
    this.#startedBy = startedBy;
  }

  /** Milliseconds left to wait. `printed`: total output so far. */
  leftMs(printed: number, now: number): number {
    if (printed !== this.#printed) this.#printedAt = now;
    this.#printed = printed;
    const latest = this.#startedBy + PATIENCE_MS;
    const quiet = printed === 0 ? latest : Math.min(this.#printedAt + QUIET_MS, latest);
    return Math.max(this.#startedBy, quiet) - now;
  }
}

const QUIET_MS = 300;
const PATIENCE_MS = 2_000;
