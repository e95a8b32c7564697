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
