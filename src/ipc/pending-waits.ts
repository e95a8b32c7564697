// Those who wait for an event or for a decision about a gate. They are woken by what has become durable, by their own
// deadline, by the end of what they wait for, or by their own going away; whatever comes first, and once.

import { assert } from '../base/assert.ts';
import type { Clock } from '../engine/ports.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { GateVerdict } from '../kernel/input.ts';
import type { EventsState, RunState, StepState } from '../kernel/state.ts';
import { isFinished } from '../kernel/state.ts';

/** More than anyone waits for in earnest; each takes a few hundred bytes. */
const WAITERS_MAX = 4_096;

export type HeardEvent = EventsState['latest'][number];

type Unmet =
  | { readonly kind: 'timeout' }
  | { readonly kind: 'released'; readonly message: string }
  /** Who waited has gone. */
  | { readonly kind: 'gone' };

interface Wait {
  /** On behalf of this step; null for one who stands outside. */
  readonly step: StepState | null;
  /** Null is for ever. */
  readonly until: number | null;
  readonly gone: AbortSignal;
}

export interface EventWait extends Wait {
  readonly type: string;
  readonly asking: string | null;
  matches(event: HeardEvent): boolean;
}

export interface GateWait extends Wait {
  readonly gate: string;
}

interface Waiter {
  readonly attempt: number;
  readonly step: StepState | null;
  settle(found: Unmet): void;
}

export class Waiters {
  readonly #state: RunState;
  readonly #clock: Clock;
  readonly #all = new Set<Waiter>();
  readonly #bySteps = new Map<string, Set<Waiter>>();
  readonly #forEvents = new Map<string, Set<(event: HeardEvent) => void>>();
  readonly #forGates = new Map<string, Set<(verdict: GateVerdict) => void>>();
  /** The number of the last event that is durable. */
  #heard: number;

  constructor(state: RunState, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
    this.#heard = state.events.count;
  }

  get isFull(): boolean {
    return this.#all.size >= WAITERS_MAX;
  }

  /** A step gets the first that matches of those that it has not been handed; who stands outside, the first from now on. */
  event(wait: EventWait): Promise<{ readonly kind: 'event'; readonly event: HeardEvent } | Unmet> {
    const told = wait.step?.eventRequests.get(wait.asking ?? '');
    const [again] = told === undefined ? [] : this.#eventsAfter(told - 1);
    if (again !== undefined) return Promise.resolve({ kind: 'event', event: again });
    for (const event of wait.step === null ? [] : this.#eventsAfter(wait.step.eventsSeen)) {
      if (event.type === wait.type && wait.matches(event)) return Promise.resolve({ kind: 'event', event });
    }
    return this.#wait(wait, this.#forEvents, wait.type, (settle) => (event) => {
      if (wait.matches(event)) settle({ kind: 'event', event });
    });
  }

  gate(wait: GateWait): Promise<{ readonly kind: 'verdict'; readonly verdict: GateVerdict } | Unmet> {
    return this.#wait(wait, this.#forGates, wait.gate, (settle) => (verdict) => settle({ kind: 'verdict', verdict }));
  }

  seen(records: readonly JournalRecord[], state: RunState): void {
    assert(state === this.#state, 'the state is that of another run');
    const fresh = this.#freshEvents();
    if (this.#all.size === 0) return;
    for (const { decisions } of records) {
      for (const decision of decisions) {
        if (decision.kind === 'gate-decided') {
          for (const tell of this.#forGates.get(decision.gate) ?? []) tell(decision.verdict);
        } else if ('step' in decision) this.#releaseFrom(decision.step);
        else if (decision.kind === 'steps-skipped') for (const step of decision.steps) this.#releaseFrom(step);
      }
    }
    // Not to those who were released just now: what an attempt that is over is handed, the next one never sees.
    for (const event of fresh) for (const tell of this.#forEvents.get(event.type) ?? []) tell(event);
    if (state.end === null) return;
    const message = `the run is ending: it is ${state.end}`;
    for (const waiter of this.#all) waiter.settle({ kind: 'released', message });
  }

  #ending(): string {
    return `the run is ending: it is ${this.#state.end ?? 'over'}`;
  }

  /** Nobody will wake them. */
  dismissAll(): void {
    for (const waiter of this.#all) waiter.settle({ kind: 'gone' });
  }

  #releaseFrom(stepId: string): void {
    for (const waiter of this.#bySteps.get(stepId) ?? []) {
      const { step, attempt } = waiter;
      if (step === null || (step.attempt === attempt && !isFinished(step))) continue;
      waiter.settle({ kind: 'released', message: `step ${stepId} has gone on without it` });
    }
  }

  #freshEvents(): readonly HeardEvent[] {
    const before = this.#heard;
    this.#heard = this.#state.events.count;
    return this.#heard === before ? [] : this.#eventsAfter(before);
  }

  /** Those that are durable. They are numbered without a gap. */
  #eventsAfter(seq: number): readonly HeardEvent[] {
    const { latest } = this.#state.events;
    const first = latest[0]?.seq ?? 0;
    return latest.slice(Math.max(0, seq + 1 - first), Math.max(0, this.#heard + 1 - first));
  }

  #wait<Told, Found>(
    { step, until, gone }: Wait,
    places: Map<string, Set<(told: Told) => void>>,
    place: string,
    listen: (settle: (found: Found | Unmet) => void) => (told: Told) => void,
  ): Promise<Found | Unmet> {
    if (gone.aborted) return Promise.resolve({ kind: 'gone' });
    // Nobody would wake it: those who waited have been released.
    if (this.#state.end !== null) return Promise.resolve({ kind: 'released', message: this.#ending() });
    if (until !== null && until <= this.#clock.now()) return Promise.resolve({ kind: 'timeout' });
    return new Promise((resolve) => {
      const settle = (found: Found | Unmet): void => {
        this.#all.delete(waiter);
        withdraw(places, place, listener);
        if (step !== null) withdraw(this.#bySteps, step.id, waiter);
        gone.removeEventListener('abort', leave);
        disarm();
        resolve(found);
      };
      const leave = (): void => settle({ kind: 'gone' });
      const listener = listen(settle);
      const waiter: Waiter = { step, attempt: step?.attempt ?? 0, settle };
      const disarm = until === null ? (): void => {} : this.#clock.at(until, () => settle({ kind: 'timeout' }));
      this.#all.add(waiter);
      enlist(places, place, listener);
      if (step !== null) enlist(this.#bySteps, step.id, waiter);
      gone.addEventListener('abort', leave);
    });
  }
}

function enlist<T>(places: Map<string, Set<T>>, place: string, one: T): void {
  const there = places.get(place);
  if (there === undefined) places.set(place, new Set([one]));
  else there.add(one);
}

function withdraw<T>(places: Map<string, Set<T>>, place: string, one: T): void {
  const there = places.get(place);
  there?.delete(one);
  if (there?.size === 0) places.delete(place);
}
