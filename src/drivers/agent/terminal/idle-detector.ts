// Detects that an agent is idle, from its hooks and its screen. Pure.
//
// The hook decides at once, unless the screen shows new work. An interrupt by a person calls no hook: then a screen
// without work for a while decides.

import type { TerminalProfile } from '../../../ir/adapter.ts';
import type { HookLog } from './hook-log.ts';
import type { Screen } from './screen.ts';

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
