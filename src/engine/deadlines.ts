// The run's deadlines, with one timer of the clock armed for the nearest. The state says which are still wanted; those
// that are not are dropped when they come up, or when there are too many of them.

import type { Timer } from '../kernel/state.ts';
import type { Clock } from './ports.ts';

export class Deadlines {
  readonly #clock: Clock;
  readonly #wanted: ReadonlyMap<string, Timer>;
  readonly #passed: (id: string) => void;
  /** A heap: each is due no later than the two below it. */
  #heap: Timer[] = [];
  #armed: { readonly at: number; readonly cancel: () => void } | null = null;

  constructor(clock: Clock, wanted: ReadonlyMap<string, Timer>, passed: (id: string) => void) {
    this.#clock = clock;
    this.#wanted = wanted;
    this.#passed = passed;
    this.add(wanted.keys());
  }

  /** Timers that the state has set, or that it still wants after all: a clock may have been set back meanwhile. */
  add(ids: Iterable<string>): void {
    for (const id of ids) {
      const timer = this.#wanted.get(id);
      if (timer !== undefined) this.#push(timer);
    }
    if (this.#heap.length > DEAD_MAX && this.#heap.length > 2 * this.#wanted.size) {
      this.#heap = [];
      for (const timer of this.#wanted.values()) this.#push(timer);
    }
  }

  /** Arms the clock for the nearest deadline that is still wanted. */
  arm(): void {
    let nearest = this.#heap[0];
    while (nearest !== undefined && !this.#isWanted(nearest)) {
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
      if (this.#isWanted(due)) this.#passed(due.id);
    }
    this.arm();
  }

  #isWanted(timer: Timer): boolean {
    return this.#wanted.get(timer.id) === timer;
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

/** So many that are not wanted any more may lie about before the heap is made anew. */
const DEAD_MAX = 1_000;
