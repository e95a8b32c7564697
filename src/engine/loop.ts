// The engine: passes inputs to the kernel, makes its decisions durable, and only then asks drivers to act on them.
//
//   E1. One input at a time, in the order of arrival; inputs queued together become durable together.
//   E2. A record is durable before any effect that it causes is started.
//   E3. A driver is never awaited: its outcome is an input.
//   E4. One writer per run: this engine alone holds the journal.
//   E5. Recovery has no path of its own: fold the journal, then ask the drivers to find the pending effects.

import { assert } from '../base/assert.ts';
import { UsageError } from '../base/usage-error.ts';
import type { DriverKind, Effect, Outcome } from '../ir/effect.ts';
import type { Program } from '../ir/program.ts';
import { apply } from '../kernel/apply.ts';
import { decide } from '../kernel/decide.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { Input } from '../kernel/input.ts';
import { pendingEffects, requestsOf, pendingRequests, timersOf } from '../kernel/pending-effects.ts';
import type { DriverRequest } from '../kernel/pending-effects.ts';
import type { RunState } from '../kernel/state.ts';
import { initialState } from '../kernel/state.ts';
import { Deadlines } from './deadlines.ts';
import type { Clock, Driver, Drivers, Journal, Note } from './ports.ts';

/** Called with records once they are durable, and with the state after the last of them. */
export type Observer = (records: readonly JournalRecord[], state: RunState) => void;

export class Engine {
  readonly state: RunState;
  readonly #journal: Journal;
  readonly #drivers: Drivers;
  readonly #clock: Clock;
  readonly #observe: Observer;
  readonly #toFatalError: (outcome: Outcome) => Error | null;
  readonly #deadlines: Deadlines;
  readonly #queue: QueuedInput[] = [];
  #wake: () => void = () => {};
  #durable = true;
  #ended = false;
  #fatalError: Error | null = null;
  #seq: number;

  constructor(
    journal: Journal,
    drivers: Drivers,
    clock: Clock,
    observe: Observer,
    toFatalError: (outcome: Outcome) => Error | null = () => null,
  ) {
    this.#toFatalError = toFatalError;
    this.#journal = journal;
    this.#drivers = drivers;
    this.#clock = clock;
    this.#observe = observe;
    this.state = fold(journal.program, journal.records);
    this.#seq = journal.records.length;
    this.#deadlines = new Deadlines(clock, this.state.timers, (timer) =>
      this.submit({ kind: 'deadline-passed', timer }),
    );
  }

  /** Whether the journal contains everything in the state. False during an append, and after a failed one. */
  get durable(): boolean {
    return this.#durable;
  }

  submit(input: Input): void {
    this.#enqueue({ input, resolve: () => {}, reject: () => {} });
  }

  /**
   * Resolves once the resulting decisions are durable. Rejects if the journal cannot be written or the run has ended.
   */
  submitDurably(input: Input): Promise<void> {
    return new Promise((resolve, reject) => this.#enqueue({ input, resolve, reject }));
  }

  #enqueue(queued: QueuedInput): void {
    if (this.#ended) queued.reject(new UsageError('the run has ended'));
    else this.#queue.push(queued);
    this.#wake();
  }

  /**
   * Runs to the end. Rejects if the journal cannot be written or a fatal error occurs; then nothing more is started.
   */
  async run(first: Input): Promise<RunState> {
    requireDrivers(this.state.program, this.#drivers);
    const effects = pendingEffects(this.state);
    const requests = pendingRequests(this.state);
    this.#queue.unshift({ input: first, resolve: () => {}, reject: () => {} });
    try {
      await this.#processQueue();
      for (const effect of effects)
        this.#driverOf(effect).find(effect, this.#onOutcome(effect), this.#onProgress(effect));
      for (const request of requests) this.#send(request);
      this.#deadlines.arm();
      while (this.state.phase !== 'ended') {
        if (this.#queue.length === 0 && this.#fatalError === null) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        if (this.#fatalError !== null) throw this.#fatalError;
        await this.#processQueue();
        this.#deadlines.arm();
      }
      return this.state;
    } finally {
      this.#deadlines.disarm();
      this.#ended = true;
      for (const { reject } of this.#queue.splice(0)) reject(new UsageError('the run has ended'));
    }
  }

  /** Makes all queued inputs durable with one append. */
  async #processQueue(): Promise<void> {
    const queued = this.#queue.splice(0);
    // Stays false if a bug or a disk error interrupts the append.
    this.#durable = false;
    try {
      await this.#decideAll(queued.map(({ input }) => input));
    } catch (error) {
      for (const { reject } of queued) reject(error);
      throw error;
    }
    for (const { resolve } of queued) resolve();
  }

  async #decideAll(inputs: readonly Input[]): Promise<void> {
    const records: JournalRecord[] = [];
    const timers: string[] = [];
    for (const input of inputs) {
      const at = this.#clock.now();
      const decisions = decide(this.state, input, at);
      // The clock was set back, so the deadline has not passed yet.
      if (input.kind === 'deadline-passed' && (this.state.timers.get(input.timer)?.at ?? 0) > at)
        timers.push(input.timer);
      if (decisions.length === 0) continue;
      this.#seq += 1;
      records.push({ seq: this.#seq, at, input, decisions });
      for (const decision of decisions) timers.push(...timersOf(this.state, decision));
    }
    if (records.length > 0) await this.#commit(records);
    else this.#durable = true;
    this.#deadlines.add(timers);
  }

  async #commit(records: readonly JournalRecord[]): Promise<void> {
    const requests: DriverRequest[] = [];
    for (const { decisions } of records) {
      for (const decision of decisions) requests.push(...requestsOf(this.state, decision));
    }
    const appended = this.#journal.append(records);
    // Drivers prepare effects while the disk writes. Not for the first record: a run without a record must leave
    // nothing behind.
    if (records[0]?.seq !== 1) queueMicrotask(() => this.#prepare(requests));
    await appended;
    this.#durable = true;
    if (this.#fatalError === null) for (const request of requests) this.#send(request);
    this.#observe(records, this.state);
  }

  #prepare(requests: readonly DriverRequest[]): void {
    for (const request of requests) {
      if (request.kind === 'start') this.#driverOf(request.effect).prepare?.(request.effect);
    }
  }

  #send(request: DriverRequest): void {
    switch (request.kind) {
      case 'start':
        return this.#driverOf(request.effect).start(
          request.effect,
          this.#onOutcome(request.effect),
          this.#onProgress(request.effect),
        );
      case 'stop':
        for (const driver of this.#everyDriver()) driver.stop(request.effect, request.how);
        return;
      case 'conclude':
        for (const driver of this.#everyDriver()) driver.conclude?.(request.effect);
        return;
      case 'decide':
        for (const driver of this.#everyDriver()) driver.decide?.(request.effect, request.verdict);
        return;
    }
  }

  /** One driver may perform several kinds of effects. */
  #everyDriver(): Iterable<Driver> {
    return new Set(Object.values(this.#drivers));
  }

  /** After a fatal error the effect stays pending, so that a resume starts it again. */
  #onOutcome(effect: Effect): (outcome: Outcome) => void {
    return (outcome) => {
      this.#fatalError ??= this.#toFatalError(outcome);
      if (this.#fatalError === null) this.submit({ kind: 'effect-finished', effect: effect.id, outcome });
      else this.#wake();
    };
  }

  #onProgress(effect: Effect): Note {
    return (progress) =>
      new Promise((resolve) => {
        const input = { kind: 'effect-progressed', effect: effect.id, progress } as const;
        this.#enqueue({ input, resolve, reject: () => {} });
      });
  }

  #driverOf(effect: Effect): Driver {
    assert(effect.spec.kind !== 'gate', 'a gate needs no driver');
    const driver = this.#drivers[effect.spec.kind];
    assert(driver !== undefined, `no driver for ${effect.spec.kind}`);
    return driver;
  }
}

interface QueuedInput {
  readonly input: Input;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export function fold(program: Program, records: readonly JournalRecord[]): RunState {
  const state = initialState(program);
  for (const record of records) applyRecord(state, record);
  return state;
}

/** Changes the state as the record says. */
export function applyRecord(state: RunState, { decisions, at }: JournalRecord): void {
  for (const decision of decisions) apply(state, decision, at);
}

function requireDrivers(program: Program, drivers: Drivers): void {
  const kinds = new Set<DriverKind>();
  for (const block of Object.values(program.blocks)) {
    for (const { act } of block.steps) {
      if (act.kind === 'effect' && act.effect.kind !== 'gate') kinds.add(act.effect.kind);
      if (act.kind === 'each' && act.items.kind === 'file') kinds.add('read');
    }
  }
  for (const kind of kinds) {
    if (drivers[kind] === undefined) throw new UsageError(`this version of meow cannot perform ${kind} effects`);
  }
}
