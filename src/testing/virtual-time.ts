// The clock of a simulated world. Nothing waits: the world calls `next`, and the time jumps to the earliest moment at which
// something is to happen. Calls of one moment happen in the order in which they were asked for.

interface Call {
  readonly at: number;
  readonly order: number;
  readonly call: () => void;
  wanted: boolean;
}

export class VirtualTime {
  /** Milliseconds since 1970. */
  now: number;
  /** A binary heap: no call is earlier than the one above it. */
  readonly #calls: Call[] = [];
  readonly #scheduled: () => void;
  #order = 0;

  /** `scheduled` is called after each `after`. */
  constructor(now: number, scheduled: () => void = () => undefined) {
    this.now = now;
    this.#scheduled = scheduled;
  }

  /** Calls once, after this many milliseconds. Returns a function that cancels it. */
  after(ms: number, call: () => void): () => void {
    this.#order += 1;
    const entry: Call = { at: this.now + Math.max(0, ms), order: this.#order, call, wanted: true };
    this.#calls.push(entry);
    this.#rise(this.#calls.length - 1);
    this.#scheduled();
    return () => {
      entry.wanted = false;
    };
  }

  /** When something happens next; null if nothing does. */
  get nextAt(): number | null {
    this.#dropCancelled();
    return this.#calls[0]?.at ?? null;
  }

  /** Jumps to the next call and performs it. Returns false if there is none. */
  next(): boolean {
    this.#dropCancelled();
    const first = this.#calls[0];
    if (first === undefined) return false;
    this.#removeFirst();
    this.now = Math.max(this.now, first.at);
    first.call();
    return true;
  }

  #dropCancelled(): void {
    while (this.#calls[0]?.wanted === false) this.#removeFirst();
  }

  #removeFirst(): void {
    const last = this.#calls.pop();
    if (last === undefined || this.#calls.length === 0) return;
    this.#calls[0] = last;
    this.#sink(0);
  }

  #rise(from: number): void {
    for (let at = from; at > 0; ) {
      const above = (at - 1) >> 1;
      if (!this.#swapIfEarlier(at, above)) return;
      at = above;
    }
  }

  #sink(from: number): void {
    for (let at = from; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      const least = this.#isEarlier(right, left) ? right : left;
      if (!this.#swapIfEarlier(least, at)) return;
      at = least;
    }
  }

  #swapIfEarlier(one: number, other: number): boolean {
    if (!this.#isEarlier(one, other)) return false;
    const [first, second] = [this.#calls[one], this.#calls[other]];
    if (first === undefined || second === undefined) return false;
    this.#calls[one] = second;
    this.#calls[other] = first;
    return true;
  }

  #isEarlier(one: number, other: number): boolean {
    const [first, second] = [this.#calls[one], this.#calls[other]];
    if (first === undefined || second === undefined) return false;
    return first.at < second.at || (first.at === second.at && first.order < second.order);
  }
}
