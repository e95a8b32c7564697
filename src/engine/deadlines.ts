// The run's deadlines, with one clock timer armed for the nearest. The state owns the active timers; stale ones are
// dropped when they come up, or when there are too many.

import type { Timer } from '../kernel/state.ts';
import type { Clock } from './ports.ts';

export class Deadlines {
  readonly #clock: Clock;
  readonly #active: ReadonlyMap<string, Timer>;
  readonly #onDeadline: (id: string) => void;
  /** A binary heap by `at`. */
  #heap: Timer[] = [];
  #armed: { readonly at: number; readonly cancel: () => void } | null = null;

  constructor(clock: Clock, active: ReadonlyMap<string, Timer>, onDeadline: (id: string) => void) {
    this.#clock = clock;
    this.#active = active;
    this.#onDeadline = onDeadline;
    this.add(active.keys());
  }

  /** Adds timers by id. A timer that fired too early, because the clock was set back, may be added again. */
  add(ids: Iterable<string>): void {
    for (const id of ids) {
      const timer = this.#active.get(id);
      if (timer !== undefined) this.#push(timer);
    }
    if (this.#heap.length > STALE_MAX && this.#heap.length > 2 * this.#active.size) {
      this.#heap = [];
      for (const timer of this.#active.values()) this.#push(timer);
    }
  }

  /** Arms the clock for the nearest active deadline. */
  arm(): void {
    let nearest = this.#heap[0];
    while (nearest !== undefined && !this.#isActive(nearest)) {
      this.#pop();
      nearest = this.#heap[0];
    }
    if (nearest === undefined) return this.disarm();
    if (this.#armed?.at === nearest.at) return;
    this.disarm();
    this.#armed = { at: nearest.at, cancel: this.#clock.at(nearest.at, () => this.#fire()) };
  }

  disarm(): void {
    this.#armed?.cancel();
    this.#armed = null;
  }

  #fire(): void {
    this.#armed = null;
    const now = this.#clock.now();
    for (let due = this.#heap[0]; due !== undefined && due.at <= now; due = this.#heap[0]) {
      this.#pop();
      if (this.#isActive(due)) this.#onDeadline(due.id);
    }
    this.arm();
  }

  #isActive(timer: Timer): boolean {
    return this.#active.get(timer.id) === timer;
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.push(timer) - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#at(above) <= timer.at) break;
      this.#swap(at, above);
      at = above;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    heap[0] = last;
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      const least = this.#at(left + 1) < this.#at(left) ? left + 1 : left;
      if (this.#at(least) >= this.#at(at)) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #at(index: number): number {
    return this.#heap[index]?.at ?? Infinity;
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (one === undefined || other === undefined) return;
    this.#heap[a] = other;
    this.#heap[b] = one;
  }
}

/** Stale timers allowed before the heap is rebuilt. */
const STALE_MAX = 1_000;
