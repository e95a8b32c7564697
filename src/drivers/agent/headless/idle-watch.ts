// Tells when an agent at work has given no sign of life for too long. Output is one, and so is a tool that has been
// called and has not answered. Where there is neither, its processes are looked at (process-activity.ts), twice: after half
// of the time, and at its end. One that works silently is not idle.

import { showLife } from './process-activity.ts';
import type { LifeSigns } from './process-activity.ts';

export interface IdleWatchRequest {
  /** How long it may be silent. */
  readonly idleMs: number;
  /** Of its processes; null where they cannot be looked at. */
  readonly signs: () => LifeSigns | null;
  readonly toolInFlight: () => boolean;
  /** Told once. */
  readonly idle: () => void;
  /** This process may end meanwhile. */
  readonly background: boolean;
}

export class IdleWatch {
  readonly #request: IdleWatchRequest;
  #signAt = performance.now();
  #looked: { readonly signs: LifeSigns; readonly at: number } | null = null;
  #timer: NodeJS.Timeout | null = null;

  constructor(request: IdleWatchRequest) {
    this.#request = request;
    this.#wait(request.idleMs / 2);
  }

  /** It has shown that it lives. */
  sign(): void {
    this.#signAt = performance.now();
    this.#looked = null;
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #wait(ms: number): void {
    const timer = setTimeout(() => this.#look(), Math.min(Math.ceil(ms), WAIT_MAX_MS));
    this.#timer = this.#request.background ? timer.unref() : timer;
  }

  #look(): void {
    const { idleMs, signs: look, toolInFlight, idle } = this.#request;
    if (toolInFlight()) this.sign();
    const now = performance.now();
    const silentMs = now - this.#signAt;
    if (silentMs < idleMs / 2) {
      this.#wait(idleMs / 2 - silentMs);
      return;
    }
    const [before, signs] = [this.#looked, look()];
    this.#looked = signs === null ? null : { signs, at: now };
    if (signs !== null && before === null) {
      this.#wait(Math.max(idleMs - silentMs, idleMs / 2));
      return;
    }
    if (signs !== null && before !== null && showLife(before.signs, signs, now - before.at)) this.#signAt = now;
    else if (silentMs >= idleMs) {
      idle();
      return;
    }
    this.#wait(this.#signAt + idleMs - now);
  }
}

/** The longest that a timer can count. */
const WAIT_MAX_MS = 2 ** 31 - 1;
