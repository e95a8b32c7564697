// The engine: passes inputs to the kernel, makes its decisions durable, and only then asks drivers to act on them.
//
//   E1. One input at a time, in the order of arrival; inputs queued together become durable together.
//   E2. A record is durable before any effect that it causes is started.
//   E3. A driver is never awaited: its outcome is an input.
//   E4. One writer per run: this engine alone holds the journal.
//   E5. Recovery has no path of its own: fold the journal, then ask the drivers to find the pending effects.

import { assert, present, UsageError } from '../base/errors.ts';
import type { DriverKind, Effect, Outcome } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { Program } from '../ir/program.ts';
import { getOrAdd } from '../kernel/collections.ts';
import { decide } from '../kernel/decide.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { fold } from '../kernel/apply.ts';
import type { Input } from '../kernel/input.ts';
import type { DriverRequest } from '../kernel/pending-effects.ts';
import { beganElsewhere, pendingEffects, pendingRequests, requestsOf, timersOf } from '../kernel/pending-effects.ts';
import type { RunState } from '../kernel/state.ts';
import { Deadlines } from './deadlines.ts';
import type { Clock, Driver, Drivers, Journal, Ledger, LedgerAdmission, Note } from './ports.ts';

/** Called with records once they are durable, and with the state after the last of them. */
export type Observer = (records: readonly JournalRecord[], state: RunState) => void;

/** A run whose engine is this process. */
export interface LiveRun {
  readonly id: string;
  /** One object for the whole life of the engine; it changes with every decision. */
  readonly state: RunState;
  /** Whether the journal contains everything in the state. False during an append, and after a failed one. */
  readonly durable: boolean;
  stop(by: string, force: boolean): void;
  pause(reason: string): void;
  /** Resolves once its decisions are durable. Rejects if the journal cannot be written or the run has ended. */
  submit(input: Input): Promise<void>;
}

/** What one run needs of the process that drives it. The engine calls the methods in this order. */
export interface RunSession {
  readonly drivers: Drivers;
  /** For runs whose budgets other runs count against. */
  readonly ledger?: Ledger;
  /** Called once, when the first record of this engine is durable and none of its effects has started. */
  open(): void;
  /** Called after every append, once its effects have started. */
  readonly observe: Observer;
  /** The error behind an outcome, if it would fail every effect; it interrupts the run. */
  fatalError?(outcome: Outcome): Error | null;
  /** Called once, before the journal is closed: what others look for from then on must be complete. */
  close(): Promise<void>;
  /** Called instead of the others for a run that is done: completes what a crash after its last record left undone. */
  catchUp(): Promise<void>;
}

export interface EngineOptions {
  readonly id: string;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly session: (run: LiveRun) => RunSession;
}

export class Engine implements LiveRun {
  readonly id: string;
  readonly state: RunState;
  readonly session: RunSession;
  durable = true;
  readonly #journal: Journal;
  readonly #clock: Clock;
  /** Drivers that have been asked for an effect. */
  readonly #drivers = new Map<DriverKind, Driver>();
  readonly #deadlines: Deadlines;
  readonly #queue: QueuedInput[] = [];
  /** The inputs of the latest batch. */
  #taken: readonly QueuedInput[] = [];
  #wake: () => void = () => {};
  /** Aborts when the run has ended. */
  readonly #over = new AbortController();
  /** Turns wait for admission: `asked` from the ledger, and received. */
  #admission: 'none' | 'asked' | LedgerAdmission = 'none';
  #ended = false;
  #fatalError: Error | null = null;
  #seq: number;

  constructor({ id, journal, clock, session }: EngineOptions) {
    this.id = id;
    this.#journal = journal;
    this.#clock = clock;
    this.state = fold(journal.program, journal.records);
    this.#seq = journal.records.length;
    this.#deadlines = new Deadlines(clock, this.state.timers, (timer) => this.post({ kind: 'deadline-passed', timer }));
    this.session = session(this);
  }

  stop(by: string, force: boolean): void {
    this.post({ kind: 'stop-requested', by, force });
  }

  pause(reason: string): void {
    this.post({ kind: 'pause-requested', reason });
  }

  /** Like `submit`, if nobody waits for the result. */
  post(input: Input): void {
    this.#enqueue({ input, resolve: () => {}, reject: () => {} });
  }

  submit(input: Input): Promise<void> {
    return new Promise((resolve, reject) => this.#enqueue({ input, resolve, reject }));
  }

  #enqueue(queued: QueuedInput): void {
    if (this.#ended) queued.reject(new UsageError('the run has ended'));
    else this.#queue.push(queued);
    this.#wake();
  }

  /** Runs to the end. Rejects if the journal cannot be written or a fatal error occurs; then nothing more starts. */
  async run(first: Input): Promise<RunState> {
    requireDrivers(this.state.program, this.session.drivers);
    const effects = pendingEffects(this.state);
    const requests = pendingRequests(this.state);
    this.#queue.unshift({ input: first, resolve: () => {}, reject: () => {} });
    try {
      const batch = await this.#commit();
      this.session.open();
      // First, so that the batch can stop them.
      for (const effect of effects) {
        if (beganElsewhere(this.state, effect.id)) this.#onOutcome(effect)(LOST_ELSEWHERE);
        else this.#perform(effect, 'find');
      }
      this.#carryOut(batch);
      for (const request of requests) this.#send(request);
      this.#deadlines.arm();
      while (this.state.phase !== 'ended') {
        this.#askLedger();
        if (this.#queue.length === 0 && this.#fatalError === null && typeof this.#admission === 'string') {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
        }
        if (this.#fatalError !== null) throw this.#fatalError;
        this.#carryOut(await this.#commit());
        this.#deadlines.arm();
      }
      return this.state;
    } catch (error) {
      for (const { reject } of this.#taken) reject(error);
      throw error;
    } finally {
      this.#deadlines.disarm();
      this.#ended = true;
      // Without a reason, an error with a stack trace would be made.
      this.#over.abort('the run has ended');
      await this.#closeAdmission();
      for (const { reject } of this.#queue.splice(0)) reject(new UsageError('the run has ended'));
    }
  }

  /** Decides all queued inputs, and makes the decisions durable with one append. */
  async #commit(): Promise<Batch> {
    this.#taken = this.#queue.splice(0);
    // Last: figures of this run must be complete when its turns are admitted.
    if (typeof this.#admission !== 'string') this.#taken = [...this.#taken, admitting(this.#admission)];
    // Stays false if a bug or a disk error interrupts the append.
    this.durable = false;
    const batch = this.#decide();
    if (batch.records.length > 0) await this.#journal.append(batch.records);
    this.durable = true;
    await this.#closeAdmission();
    return batch;
  }

  #askLedger(): void {
    if (this.#admission !== 'none' || this.state.agenda.askedTurns.size === 0) return;
    const ledger = present(this.session.ledger, 'no ledger for a run whose budgets are shared');
    this.#admission = 'asked';
    ledger.admit([...this.state.agenda.askedTurns], this.#over.signal).then(
      async (admission) => {
        if (this.#ended) await admission?.close();
        else this.#admission = admission ?? 'none';
        this.#wake();
      },
      (error: unknown) => {
        this.#fatalError ??= error instanceof Error ? error : new Error(String(error));
        this.#wake();
      },
    );
  }

  async #closeAdmission(): Promise<void> {
    if (typeof this.#admission === 'string') return;
    const admission = this.#admission;
    this.#admission = 'none';
    await admission.close();
  }

  #decide(): Batch {
    const records: JournalRecord[] = [];
    const timers: string[] = [];
    for (const { input } of this.#taken) {
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
    const requests = records.flatMap(({ decisions }) => decisions.flatMap((each) => requestsOf(this.state, each)));
    return { records, requests, timers };
  }

  /** Starts what a durable batch asks for. */
  #carryOut({ records, requests, timers }: Batch): void {
    if (this.#fatalError === null) for (const request of requests) this.#send(request);
    if (records.length > 0) this.session.observe(records, this.state);
    this.#deadlines.add(timers);
    for (const { resolve } of this.#taken) resolve();
  }

  #send(request: DriverRequest): void {
    switch (request.kind) {
      case 'start':
        return this.#perform(request.effect, 'start');
      case 'stop':
        for (const driver of this.#driversInUse()) driver.stop(request.effect, request.how);
        return;
      case 'conclude':
        for (const driver of this.#driversInUse()) driver.conclude?.(request.effect);
        return;
      case 'decide':
        for (const driver of this.#driversInUse()) driver.decide?.(request.effect, request.verdict);
        return;
    }
  }

  #perform(effect: Effect, how: 'start' | 'find'): void {
    this.#driverOf(effect)[how](effect, this.#onOutcome(effect), this.#onProgress(effect));
  }

  /** One driver may perform several kinds of effects. */
  #driversInUse(): Iterable<Driver> {
    return new Set(this.#drivers.values());
  }

  /** After a fatal error the effect stays pending, so that a resume starts it again. */
  #onOutcome(effect: Effect): (outcome: Outcome) => void {
    return (outcome) => {
      this.#fatalError ??= this.session.fatalError?.(outcome) ?? null;
      if (this.#fatalError === null) this.post({ kind: 'effect-finished', effect: effect.id, outcome });
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
    const { kind } = effect.spec;
    return getOrAdd(this.#drivers, kind, present(this.session.drivers[kind], `no driver for ${kind}`));
  }
}

/** Its leftovers are on the machine where it began: only a process there could find them. */
const LOST_ELSEWHERE: Outcome = {
  kind: 'failure',
  failure: failure('lost', 'it began on another machine, which no longer drives the run'),
};

function admitting({ others }: LedgerAdmission): QueuedInput {
  return { input: { kind: 'budgets-read', others }, resolve: () => {}, reject: () => {} };
}

/** What one append makes durable. */
interface Batch {
  readonly records: readonly JournalRecord[];
  readonly requests: readonly DriverRequest[];
  readonly timers: readonly string[];
}

type QueuedInput = Readonly<{ input: Input; resolve: () => void; reject: (error: unknown) => void }>;

function requireDrivers(program: Program, drivers: Drivers): void {
  const kinds = new Set<DriverKind>();
  for (const block of Object.values(program.blocks)) {
    for (const { act } of block.steps) {
      if (act.kind === 'effect' && act.effect.kind !== 'gate') kinds.add(act.effect.kind);
      if (act.kind === 'each' && act.items.kind === 'file') kinds.add('read');
    }
  }
  for (const kind of kinds) {
    if (drivers[kind] !== undefined) continue;
    throw new UsageError(
      `this run was started by another version of meow: this one cannot perform ${kind} effects`,
      'finish it with the version that started it, or start the workflow again; meow status still shows it',
    );
  }
}
