// Whether an agent has come to rest, as far as its hooks and its screen tell. Pure: screens go in.
//
// Its hook is right at once, unless the screen shows that it works again. But there is none when a person interrupts it: a
// screen that shows no work for a while tells the same.

import type { TerminalWays } from '../../../ir/adapter.ts';
import type { HookLog } from './hook-log.ts';
import type { Screen } from './screen.ts';

export class Rest {
  readonly #showsBusy: boolean;
  readonly #showsReady: boolean;
  readonly #hooks: Pick<HookLog, 'tellsRest' | 'isAtRest'> | null;
  #restingSince: number | null = null;

  constructor({ acknowledge, ready }: TerminalWays, hooks: Pick<HookLog, 'tellsRest' | 'isAtRest'> | null) {
    this.#showsBusy = acknowledge.busy.length > 0;
    this.#showsReady = ready !== null;
    this.#hooks = hooks?.tellsRest === true ? hooks : null;
  }

  /** Whether it can be told at all. */
  get isTold(): boolean {
    return this.#hooks !== null || this.#showsBusy || this.#showsReady;
  }

  /** To be called with every screen that is seen. */
  see({ dialog, isReady, isBusy, isQueued }: Screen, now: number): boolean {
    const seems = dialog === null && isReady && !isBusy && !isQueued;
    this.#restingSince = seems ? (this.#restingSince ?? now) : null;
    if (this.#hooks === null) return seems && now - (this.#restingSince ?? now) >= STEADY_MS;
    if (this.#hooks.isAtRest) return !isBusy && dialog === null;
    return this.#showsBusy && seems && now - (this.#restingSince ?? now) >= UNTOLD_MS;
  }
}

/** Between two pieces of work there is a moment without any. */
const STEADY_MS = 300;
/** A hook that was going to tell has told by then. */
const UNTOLD_MS = 3_000;
