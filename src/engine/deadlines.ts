// The run's deadlines, with one clock timer armed for the nearest. The state owns the active timers; stale ones are
// dropped when they come up, or when there are too many.

import { Heap } from '../kernel/collections.ts';
import type { Timer } from '../kernel/state.ts';
import type { Clock } from './ports.ts';

export class Deadlines {
  readonly #clock: Clock;
  readonly #active: ReadonlyMap<string, Timer>;
  readonly #onDeadline: (id: string) => void;
  readonly #heap = new Heap<Timer>(({ at }) => at);
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
      if (timer !== undefined) this.#heap.push(timer);
    }
    if (this.#heap.size > STALE_MAX && this.#heap.size > 2 * this.#active.size) {
      this.#heap.clear();
      for (const timer of this.#active.values()) this.#heap.push(timer);
    }
  }

  /** Arms the clock for the nearest active deadline. */
  arm(): void {
    while (this.#heap.first !== undefined && !this.#isActive(this.#heap.first)) this.#heap.pop();
    const nearest = this.#heap.first;
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
    for (let due = this.#heap.first; due !== undefined && due.at <= now; due = this.#heap.first) {
      this.#heap.pop();
      if (this.#isActive(due)) this.#onDeadline(due.id);
    }
    this.arm();
  }

  #isActive(timer: Timer): boolean {
    return this.#active.get(timer.id) === timer;
  }
}

/** Stale timers allowed before the heap is rebuilt. */
const STALE_MAX = 1_000;
