// Reports an agent that was silent for too long. Signs of life are output and a tool call in flight. Without both, its
// processes are checked (process-activity.ts) twice: at half of the time and at its end. A program that works silently
// is not idle.

import { showLife } from './process-activity.ts';
import type { LifeSigns } from './process-activity.ts';

export interface IdleWatchRequest {
  /** Limit of silence. */
  readonly idleMs: number;
  /** Activity of its processes; null if unavailable. */
  readonly signs: () => LifeSigns | null;
  readonly toolInFlight: () => boolean;
  /** Called once. */
  readonly idle: () => void;
  /** Does not keep the process alive. */
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

  /** A sign of life. */
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

/** Longest timer of the system. */
const WAIT_MAX_MS = 2 ** 31 - 1;
