// When to type at a program of which no pattern tells that it is ready: what it is given while it starts, it may throw away, and
// its terminal shows the text all the same. So it is given the time that the adapter names, and then until it has printed
// something and is quiet; but one that prints nothing, or all the time, is not waited for much longer. Pure.

export class Opening {
  readonly #startedBy: number;
  #printed = 0;
  #printedAt = 0;

  /** `startedBy`: by then it should be ready. */
  constructor(startedBy: number) {
    this.#startedBy = startedBy;
  }

  /** Milliseconds that are left, for all that is known. `printed`: how much, in all. */
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
