// Where the pure meets the impure: takes inputs in, has the kernel decide, makes the decisions durable, and only then
// passes on what they ask of the world.
//
//   E1. One input at a time, in the order of arrival; inputs that wait together are made durable together.
//   E2. A record is durable before any effect that it causes is started.
//   E3. A driver is never awaited: its answer is an input.
//   E4. One writer per run: the journal handed in is held by this engine alone.
//   E5. Recovery is nothing special: fold the journal, then ask the drivers to find what is owed.

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

/** Told of every record once it is durable, with the state as it is after it and those made durable with it. */
export type Observer = (records: readonly JournalRecord[], state: RunState) => void;

export class Engine {
  readonly state: RunState;
  readonly #journal: Journal;
  readonly #drivers: Drivers;
  readonly #clock: Clock;
  readonly #observe: Observer;
  readonly #lacks: (outcome: Outcome) => Error | null;
  readonly #deadlines: Deadlines;
  readonly #inbox: Arrival[] = [];
  #wake: () => void = () => {};
  #durable = true;
  #over = false;
  #held: Error | null = null;
  #seq: number;

  constructor(
    journal: Journal,
    drivers: Drivers,
    clock: Clock,
    observe: Observer,
    lacks: (outcome: Outcome) => Error | null = () => null,
  ) {
    this.#lacks = lacks;
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

  /** Whether the state tells of nothing but what the journal holds: not while an append is under way, nor after it failed. */
  get durable(): boolean {
    return this.#durable;
  }

  submit(input: Input): void {
    this.#arrive({ input, heard: () => {}, refused: () => {} });
  }

  /** Resolves when what the input has led to is durable; rejects when the journal cannot be written, or it came too late. */
  tell(input: Input): Promise<void> {
    return new Promise((resolve, reject) => this.#arrive({ input, heard: resolve, refused: reject }));
  }

  #arrive(arrival: Arrival): void {
    if (this.#over) arrival.refused(new UsageError('the run has ended'));
    else this.#inbox.push(arrival);
    this.#wake();
  }

  /** Runs until the run has ended. Rejects when the journal cannot be written, or the world lacks something: then nothing more is started. */
  async run(first: Input): Promise<RunState> {
    requireDrivers(this.state.program, this.#drivers);
    const unanswered = pendingEffects(this.state);
    const untold = pendingRequests(this.state);
    this.#inbox.unshift({ input: first, heard: () => {}, refused: () => {} });
    try {
      await this.#takeAll();
      for (const effect of unanswered)
        this.#driverOf(effect).find(effect, this.#answerTo(effect), this.#noteOf(effect));
      for (const request of untold) this.#pass(request);
      this.#deadlines.arm();
      while (this.state.phase !== 'ended') {
        if (this.#inbox.length === 0 && this.#held === null) {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        if (this.#held !== null) throw this.#held;
        await this.#takeAll();
        this.#deadlines.arm();
      }
      return this.state;
    } finally {
      this.#deadlines.disarm();
      this.#over = true;
      for (const { refused } of this.#inbox.splice(0)) refused(new UsageError('the run has ended'));
    }
  }

  /** Everything that has arrived by now becomes durable with one append. */
  async #takeAll(): Promise<void> {
    const arrivals = this.#inbox.splice(0);
    // From the first decision on, and for ever if a bug or the disk cuts it short.
    this.#durable = false;
    try {
      await this.#decideAll(arrivals.map(({ input }) => input));
    } catch (error) {
      for (const { refused } of arrivals) refused(error);
      throw error;
    }
    for (const { heard } of arrivals) heard();
  }

  async #decideAll(inputs: readonly Input[]): Promise<void> {
    const records: JournalRecord[] = [];
    const timers: string[] = [];
    for (const input of inputs) {
      const at = this.#clock.now();
      const decisions = decide(this.state, input, at);
      // The clock was set back before the kernel heard of it: its time is still to come.
      if (input.kind === 'deadline-passed' && (this.state.timers.get(input.timer)?.at ?? 0) > at)
        timers.push(input.timer);
      if (decisions.length === 0) continue;
      this.#seq += 1;
      records.push({ seq: this.#seq, at, input, decisions });
      for (const decision of decisions) timers.push(...timersOf(this.state, decision));
    }
    if (records.length > 0) await this.#carryOut(records);
    else this.#durable = true;
    this.#deadlines.add(timers);
  }

  async #carryOut(records: readonly JournalRecord[]): Promise<void> {
    const requests: DriverRequest[] = [];
    for (const { decisions } of records) {
      for (const decision of decisions) requests.push(...requestsOf(this.state, decision));
    }
    const appended = this.#journal.append(records);
    // The journal is written first, and what can be prepared while the disk works. A run without a record leaves nothing
    // behind: for the first one nothing is prepared.
    if (records[0]?.seq !== 1) queueMicrotask(() => this.#prepare(requests));
    await appended;
    this.#durable = true;
    if (this.#held === null) for (const request of requests) this.#pass(request);
    this.#observe(records, this.state);
  }

  #prepare(requests: readonly DriverRequest[]): void {
    for (const request of requests) {
      if (request.kind === 'start') this.#driverOf(request.effect).prepare?.(request.effect);
    }
  }

  #pass(request: DriverRequest): void {
    switch (request.kind) {
      case 'start':
        return this.#driverOf(request.effect).start(
          request.effect,
          this.#answerTo(request.effect),
          this.#noteOf(request.effect),
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

  /** What could not be performed for want of something that all need stays asked for. */
  #answerTo(effect: Effect): (outcome: Outcome) => void {
    return (outcome) => {
      this.#held ??= this.#lacks(outcome);
      if (this.#held === null) this.submit({ kind: 'effect-finished', effect: effect.id, outcome });
      else this.#wake();
    };
  }

  #noteOf(effect: Effect): Note {
    return (progress) =>
      new Promise((resolve) => {
        const input = { kind: 'effect-progressed', effect: effect.id, progress } as const;
        this.#arrive({ input, heard: resolve, refused: () => {} });
      });
  }

  #driverOf(effect: Effect): Driver {
    assert(effect.spec.kind !== 'gate', 'a gate needs no driver');
    const driver = this.#drivers[effect.spec.kind];
    assert(driver !== undefined, `no driver for ${effect.spec.kind}`);
    return driver;
  }
}

interface Arrival {
  readonly input: Input;
  readonly heard: () => void;
  readonly refused: (error: unknown) => void;
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
  const wanted = new Set<DriverKind>();
  for (const block of Object.values(program.blocks)) {
    for (const { act } of block.steps) {
      if (act.kind === 'effect' && act.effect.kind !== 'gate') wanted.add(act.effect.kind);
      if (act.kind === 'each' && act.items.kind === 'file') wanted.add('read');
    }
  }
  for (const kind of wanted) {
    if (drivers[kind] === undefined) throw new UsageError(`this version of meow cannot perform ${kind} effects`);
  }
}
