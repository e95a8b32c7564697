// Calls that wait for an event or for the decision of a gate. A wait ends once: by a durable record, by its deadline, at the
// end of the attempt or the run, or when its caller goes away.

import { assert } from '../base/errors.ts';
import type { Clock } from '../engine/ports.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { GateVerdict } from '../kernel/input.ts';
import { type EventsState, isFinished, type RunState, type StepState } from '../kernel/state.ts';

/** More than any workflow needs. Each takes a few hundred bytes. */
const WAITS_MAX = 4_096;

export type EmittedEvent = EventsState['latest'][number];

export type Unmatched =
  | { readonly kind: 'timeout' }
  | { readonly kind: 'released'; readonly message: string }
  /** The caller has gone away. */
  | { readonly kind: 'gone' };

interface Wait {
  /** The step that waits; null if the caller is outside of any step. */
  readonly step: StepState | null;
  /** Null waits without limit. */
  readonly until: number | null;
  readonly gone: AbortSignal;
}

export interface EventWait extends Wait {
  readonly type: string;
  readonly asking: string | null;
  matches(event: EmittedEvent): boolean;
}

interface PendingWait {
  readonly attempt: number;
  readonly step: StepState | null;
  settle(found: Unmatched): void;
}

export class PendingWaits {
  readonly #state: RunState;
  readonly #clock: Clock;
  readonly #all = new Set<PendingWait>();
  readonly #bySteps = new Map<string, Set<PendingWait>>();
  readonly #forEvents = new Map<string, Set<(event: EmittedEvent) => void>>();
  readonly #forGates = new Map<string, Set<(verdict: GateVerdict) => void>>();
  #lastDurable: number;
  #cancelled = false;

  constructor(state: RunState, clock: Clock) {
    this.#state = state;
    this.#clock = clock;
    this.#lastDurable = state.events.count;
  }

  get isFull(): boolean {
    return this.#all.size >= WAITS_MAX;
  }

  /** A step receives the first matching event that it has not received yet; an outside caller the first one from now on. */
  event(wait: EventWait): Promise<{ readonly kind: 'event'; readonly event: EmittedEvent } | Unmatched> {
    const received = wait.step?.eventRequests.get(wait.asking ?? '');
    const [again] = received === undefined ? [] : this.#eventsAfter(received - 1);
    const missed = wait.step === null ? [] : this.#eventsAfter(wait.step.eventsSeen);
    const event = again ?? missed.find((each) => each.type === wait.type && wait.matches(each));
    if (event !== undefined) return Promise.resolve({ kind: 'event', event });
    return this.#wait(wait, this.#forEvents, wait.type, (settle) => (event) => {
      if (wait.matches(event)) settle({ kind: 'event', event });
    });
  }

  gate(gate: string, wait: Wait): Promise<{ readonly kind: 'verdict'; readonly verdict: GateVerdict } | Unmatched> {
    return this.#wait(wait, this.#forGates, gate, (settle) => (verdict) => settle({ kind: 'verdict', verdict }));
  }

  observe(records: readonly JournalRecord[], state: RunState): void {
    assert(state === this.#state, 'the state is that of another run');
    const before = this.#lastDurable;
    this.#lastDurable = state.events.count;
    if (this.#all.size === 0) return;
    for (const { decisions } of records) {
      for (const decision of decisions) {
        if (decision.kind === 'gate-decided') {
          for (const notify of this.#forGates.get(decision.gate) ?? []) notify(decision.verdict);
        } else if ('step' in decision) this.#releaseFrom(decision.step);
        else if (decision.kind === 'steps-skipped') for (const step of decision.steps) this.#releaseFrom(step);
      }
    }
    // After the releases: an event that a finished attempt received would never reach the next one.
    for (const event of this.#eventsAfter(before)) {
      for (const notify of this.#forEvents.get(event.type) ?? []) notify(event);
    }
    const message = endingMessage(state);
    if (message !== null) for (const wait of this.#all) wait.settle({ kind: 'released', message });
  }

  /** Also ends each later wait: nothing would observe records for it. */
  cancelAll(): void {
    this.#cancelled = true;
    for (const wait of this.#all) wait.settle({ kind: 'gone' });
  }

  #releaseFrom(stepId: string): void {
    for (const wait of this.#bySteps.get(stepId) ?? []) {
      const { step, attempt } = wait;
      if (step === null || (step.attempt === attempt && !isFinished(step))) continue;
      wait.settle({ kind: 'released', message: `step ${stepId} no longer waits for this` });
    }
  }

  /** Durable events after this number. Numbers have no gaps. */
  #eventsAfter(seq: number): readonly EmittedEvent[] {
    const { latest } = this.#state.events;
    const first = latest[0]?.seq ?? 0;
    return latest.slice(Math.max(0, seq + 1 - first), Math.max(0, this.#lastDurable + 1 - first));
  }

  #wait<Value, Found>(
    { step, until, gone }: Wait,
    listeners: Map<string, Set<(value: Value) => void>>,
    key: string,
    listen: (settle: (found: Found | Unmatched) => void) => (value: Value) => void,
  ): Promise<Found | Unmatched> {
    if (gone.aborted || this.#cancelled) return Promise.resolve({ kind: 'gone' });
    // Nothing would end this wait: all others have been released.
    const message = endingMessage(this.#state);
    if (message !== null) return Promise.resolve({ kind: 'released', message });
    if (until !== null && until <= this.#clock.now()) return Promise.resolve({ kind: 'timeout' });
    return new Promise((resolve) => {
      const settle = (found: Found | Unmatched): void => {
        this.#all.delete(wait);
        removeFrom(listeners, key, listener);
        if (step !== null) removeFrom(this.#bySteps, step.id, wait);
        gone.removeEventListener('abort', onGone);
        cancelTimer();
        resolve(found);
      };
      const onGone = (): void => settle({ kind: 'gone' });
      const listener = listen(settle);
      const wait: PendingWait = { step, attempt: step?.attempt ?? 0, settle };
      const cancelTimer = until === null ? (): void => {} : this.#clock.at(until, () => settle({ kind: 'timeout' }));
      this.#all.add(wait);
      addTo(listeners, key, listener);
      if (step !== null) addTo(this.#bySteps, step.id, wait);
      gone.addEventListener('abort', onGone);
    });
  }
}

/** Null if the run is not ending. */
export function endingMessage({ end }: RunState): string | null {
  return end === null ? null : `the run is ending: it is ${end}`;
}

function addTo<T>(listeners: Map<string, Set<T>>, key: string, one: T): void {
  const found = listeners.get(key);
  if (found === undefined) listeners.set(key, new Set([one]));
  else found.add(one);
}

function removeFrom<T>(listeners: Map<string, Set<T>>, key: string, one: T): void {
  const found = listeners.get(key);
  found?.delete(one);
  if (found?.size === 0) listeners.delete(key);
}
