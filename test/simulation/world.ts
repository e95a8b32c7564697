// A world that outlives the engine: a disk whose appends take time and may be cut off by a crash on either side of the
// durable point, and processes that go on while no engine lives, answer late, twice and out of order, and sometimes are
// gone when the engine comes back. Time is counted, not waited for. It watches over what the engine does:
//
//   G1  no effect of a finished step is started, and none twice;
//   G2  an attempt begins only when no other attempt of its step is alive;
//   G5  nothing is started that the durable journal does not ask for (E2).

import type { Clock, Drivers, Journal } from '../../src/engine/ports.ts';
import type { Effect, Outcome } from '../../src/ir/effect.ts';
import { success } from '../../src/ir/effect.ts';
import { failure } from '../../src/ir/failure.ts';
import type { Program } from '../../src/ir/program.ts';
import { apply } from '../../src/kernel/apply.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import type { RunState } from '../../src/kernel/state.ts';
import { CLEANUP_STEP, effectId, initialState } from '../../src/kernel/state.ts';
import { Processes } from './processes.ts';
import type { Random } from './random.ts';
import { below, hash } from './random.ts';

export class Crash extends Error {}

/** How rough the world is. All zero: calm. */
export interface Roughness {
  readonly crash: number;
  /** Of the processes that run when the engine dies, how many die with it. */
  readonly reboot: number;
  readonly twice: number;
}

export class World {
  readonly problems: string[] = [];
  readonly records: JournalRecord[] = [];
  /** The fold of what is on disk. */
  readonly durable: RunState;
  now = 1_000;
  /** Every engine lives in one of these; answers and timers of a dead one go nowhere. */
  life = 0;

  readonly #program: Program;
  readonly #random: Random;
  readonly #roughness: Roughness;
  readonly #queue: { readonly at: number; readonly order: number; readonly call: () => void }[] = [];
  readonly #processes: Processes;
  readonly #finishes = new Map<string, number>();
  #order = 0;

  constructor(program: Program, random: Random, roughness: Roughness) {
    this.#program = program;
    this.#random = random;
    this.#roughness = roughness;
    this.durable = initialState(program);
    this.#processes = new Processes({
      after: (ms, call) => this.after(ms, call),
      chance: (limit) => below(random, limit),
      begins: (effect) => this.#watchBeginning(effect),
      ends: (effect) => (this.#hangs(effect) ? null : () => this.#outcomeOf(effect)),
      twice: roughness.twice * 100,
    });
  }

  /** The next thing that happens, or false where nothing will. */
  happen(): boolean {
    let least = 0;
    for (const [index, { at, order }] of this.#queue.entries()) {
      const best = this.#queue[least];
      if (best !== undefined && (at < best.at || (at === best.at && order < best.order))) least = index;
    }
    const [next] = this.#queue.splice(least, 1);
    if (next === undefined) return false;
    this.now = Math.max(this.now, next.at);
    next.call();
    return true;
  }

  after(ms: number, call: () => void): void {
    this.#order += 1;
    this.#queue.push({ at: this.now + ms, order: this.#order, call });
  }

  /** The engine is dead: what it had asked for goes on without it, or not. */
  die(): void {
    this.life += 1;
    this.#processes.die();
    for (const { id } of this.#processes.running) if (this.#random() < this.#roughness.reboot) this.#processes.lose(id);
    this.now += below(this.#random, 50);
  }

  journal(): Journal {
    const { life } = this;
    const appending = (records: readonly JournalRecord[]): Promise<void> =>
      new Promise((resolve, reject) => {
        const write = (): void => {
          for (const record of records) {
            if (record.seq !== this.records.length + 1)
              this.problems.push(`record ${record.seq} after ${this.records.length}`);
            this.records.push(record);
            for (const decision of record.decisions) apply(this.durable, decision, record.at);
          }
        };
        this.after(below(this.#random, 3), () => {
          if (life !== this.life) return;
          if (this.#random() < this.#roughness.crash) return reject(new Crash('before the write'));
          write();
          if (this.#random() < this.#roughness.crash) return reject(new Crash('after the write'));
          resolve();
        });
      });
    return {
      program: this.#program,
      programHash: 'hash',
      records: [...this.records],
      append: appending,
      close: async () => {},
    };
  }

  clock(): Clock {
    const { life } = this;
    return {
      now: () => this.now,
      at: (moment, call) => {
        let wanted = true;
        this.after(Math.max(0, moment - this.now), () => {
          if (wanted && life === this.life) call();
        });
        return () => {
          wanted = false;
        };
      },
    };
  }

  drivers(): Drivers {
    const driver = this.#processes.driver();
    return { command: driver, turn: driver };
  }

  #watchBeginning(effect: Effect): void {
    if (this.#processes.knows(effect.id)) this.problems.push(`G1: ${effect.id} is started twice`);
    if (!this.#accounted(effect))
      this.problems.push(`G5: ${effect.id} is started, and the journal does not ask for it`);
    for (const other of this.#processes.running) {
      if (other.step === effect.step) this.problems.push(`G2: ${effect.id} is started while ${other.id} lives`);
    }
  }

  /** Depends on the step, and on how often it has ended by itself before: not on attempts, which crashes multiply. */
  #outcomeOf(effect: Effect): Outcome {
    const times = this.#finishes.get(effect.step) ?? 0;
    this.#finishes.set(effect.step, times + 1);
    const temper = hash(effect.step) % 20;
    const failing = temper === 1 || ((temper === 2 || temper === 3) && times === 0);
    if (failing) return { kind: 'failure', failure: failure('exit-nonzero', 'exited with status 1', { code: 1 }) };
    const route =
      effect.spec.kind === 'command' && effect.spec.verdict === 'condition'
        ? temper % 2 === 0
          ? 'true'
          : 'false'
        : null;
    const session = effect.spec.kind === 'turn' ? `session of ${effect.step}` : null;
    return success({ said: effect.step }, { route, session });
  }

  /** Some hang until they are stopped by their time limit; the others end well before it. */
  #hangs(effect: Effect): boolean {
    if (effect.step === CLEANUP_STEP || hash(effect.step) % 20 !== 0) return false;
    return this.durable.steps.get(effect.step)?.definition.timeout !== null;
  }

  #accounted(effect: Effect): boolean {
    const step = this.durable.asked.get(effect.id);
    if (step !== undefined) return step.status === 'running';
    return this.durable.cleanup !== null && effect.id === effectId(CLEANUP_STEP, this.durable.cleanups);
  }
}
