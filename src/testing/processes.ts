// Simulated processes that outlive the engine: a driver that fulfils the contract of drivers (test/contracts). A process
// continues while no engine lives, and its result waits for the engine that asks next. What a process does is up to its
// `ProcessHost`.

import type { Answer, DialogVerdict, Driver, Note, StopHow } from '../engine/ports.ts';
import type { Effect, Outcome, Progress } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';

export interface ProcessHost {
  /** A process begins. The host ends it with `finish` or `lose`. */
  begin(process: SimulatedProcess): void;
  /** Somebody wants it to end. */
  stop(process: SimulatedProcess, how: StopHow): void;
  /** The purpose of its effect was reported in another way. */
  conclude?(process: SimulatedProcess): void;
  decide?(process: SimulatedProcess, verdict: DialogVerdict): void;
}

export class SimulatedProcess {
  readonly effect: Effect;
  #state: 'running' | 'finished' | 'gone' = 'running';
  #outcome: Outcome = LOST;
  #answer: Answer | null = null;
  #note: Note | null = null;

  constructor(effect: Effect) {
    this.effect = effect;
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** Ends it. Ignored if it has ended. */
  finish(outcome: Outcome): void {
    if (this.#state !== 'running') return;
    this.#state = 'finished';
    this.#outcome = outcome;
    this.#tell();
  }

  /** It vanishes and leaves nothing. */
  lose(): void {
    if (this.#state !== 'running') return;
    this.#state = 'gone';
    this.#tell();
  }

  /** Reports progress; nobody hears it if no engine lives. */
  note(progress: Progress): Promise<void> {
    return this.#note?.(progress) ?? Promise.resolve();
  }

  /** Gives the answer again, as a driver may. */
  repeat(): void {
    if (this.#state !== 'running') this.#answer?.(this.#outcome);
  }

  /** An engine asks for it: it is answered when it has ended. */
  attach(answer: Answer, note: Note | null): void {
    this.#answer = answer;
    this.#note = note;
    if (this.#state !== 'running') this.#tell();
  }

  /** The engine is dead. */
  detach(): void {
    this.#answer = null;
    this.#note = null;
  }

  #tell(): void {
    this.#answer?.(this.#outcome);
  }
}

const LOST: Outcome = { kind: 'failure', failure: failure('lost', 'gone without a result') };

export class Processes {
  readonly #host: ProcessHost;
  readonly #known = new Map<string, SimulatedProcess>();

  constructor(host: ProcessHost) {
    this.#host = host;
  }

  get running(): readonly SimulatedProcess[] {
    return [...this.#known.values()].filter(({ isRunning }) => isRunning);
  }

  get(effectId: string): SimulatedProcess | null {
    return this.#known.get(effectId) ?? null;
  }

  /** The driver of one engine. */
  driver(): Driver {
    const running = (effectId: string): SimulatedProcess | null => {
      const process = this.#known.get(effectId);
      return process?.isRunning === true ? process : null;
    };
    const begin = (effect: Effect, answer: Answer, note: Note | undefined): void => {
      const process = new SimulatedProcess(effect);
      this.#known.set(effect.id, process);
      process.attach(answer, note ?? null);
      this.#host.begin(process);
    };
    return {
      start: begin,
      find: (effect, answer, note) => {
        const process = this.#known.get(effect.id);
        if (process === undefined) begin(effect, answer, note);
        else process.attach(answer, note ?? null);
      },
      stop: (effectId, how) => {
        const process = running(effectId);
        if (process !== null) this.#host.stop(process, how);
      },
      conclude: (effectId) => {
        const process = running(effectId);
        if (process !== null) this.#host.conclude?.(process);
      },
      decide: (effectId, verdict) => {
        const process = running(effectId);
        if (process !== null) this.#host.decide?.(process, verdict);
      },
    };
  }

  /** The engine is dead: nobody receives the answers of processes until the next one asks. */
  detachAll(): void {
    for (const process of this.#known.values()) process.detach();
  }
}
