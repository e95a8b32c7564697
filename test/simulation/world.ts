// A world that outlives the engine: a disk whose appends take time and may be cut off by a crash before or after the
// durable point, and processes that continue while no engine lives, answer late, twice and out of order, and may be
// gone when the engine comes back. Time is counted, not waited for. It checks the engine:
//
//   G1  no effect of a finished step is started, and none twice;
//   G2  an attempt starts only when no other attempt of its step is alive;
//   G5  nothing is started that the durable journal does not request (E2).

import type { Clock, Driver, Drivers, Journal } from '../../src/engine/ports.ts';
import { type Effect, type Outcome, success } from '../../src/ir/effect.ts';
import { failure } from '../../src/ir/failure.ts';
import type { Outputs } from '../../src/ir/output.ts';
import type { Program } from '../../src/ir/program.ts';
import { apply } from '../../src/kernel/apply.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import { CLEANUP_STEP, effectId, initialState, type RunState } from '../../src/kernel/state.ts';
import { Processes } from './processes.ts';
import { below, hash, type Random } from './random.ts';

export class Crash extends Error {}

/** How rough the world is. All zero: calm. */
export interface Roughness {
  readonly crash: number;
  /** The share of running processes that die with the engine. */
  readonly reboot: number;
  readonly twice: number;
}

export class World {
  readonly problems: string[] = [];
  readonly records: JournalRecord[] = [];
  /** The fold of the records on disk. */
  readonly durable: RunState;
  now = 1_000;
  /** The number of the current engine; answers and timers for a dead one are dropped. */
  life = 0;

  readonly #program: Program;
  readonly #random: Random;
  readonly #roughness: Roughness;
  readonly #queue: { readonly at: number; readonly order: number; readonly call: () => void }[] = [];
  readonly #processes: Processes;
  readonly #finishes = new Map<string, number>();
  /** Running agents, whether or not an engine lives. */
  readonly #there = new Set<string>();
  /** Prompts whose agent has finished the work. */
  readonly #worked = new Set<string>();
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
      // The engine does not know yet that the agent died with the previous engine.
      absent: ({ spec }) => OF_AGENTS.has(spec.kind) && !this.#there.has(agentOf(spec)),
      ends: (effect) => (this.#hangs(effect) ? null : () => this.#outcomeOf(effect)),
      twice: roughness.twice * 100,
    });
  }

  /** Performs the next event, or returns false if there is none. */
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

  /** The engine is dead: its effects continue without it, or not. */
  die(): void {
    this.life += 1;
    this.#processes.die();
    for (const { id, spec } of this.#processes.running) {
      // Effects of an agent are lost only with the agent; ending an agent is repeated after an interruption.
      if (OF_AGENTS.has(spec.kind) || spec.kind === 'kill' || this.#random() >= this.#roughness.reboot) continue;
      this.#processes.lose(id);
    }
    for (const agent of this.#there) if (this.#random() < this.#roughness.reboot) this.#lose(agent);
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
    const made = this.#processes.driver();
    const driver = (): Driver => made;
    const agents = { spawn: driver, attend: driver, prompt: driver, kill: driver };
    return { command: driver, turn: driver, read: driver, ...agents };
  }

  /** Pending reports of agents that have finished their work. */
  reports(): readonly { readonly step: string; readonly outputs: Outputs }[] {
    return this.#processes.running
      .filter(({ id, spec }) => spec.kind === 'prompt' && spec.mode !== 'fire-forget' && this.#worked.has(id))
      .map(({ step }) => ({ step, outputs: { said: step } }));
  }

  #crash({ id }: Effect, agent: string): void {
    if (!this.#there.has(agent) || !this.#processes.running.some((other) => other.id === id)) return;
    const crashed: Outcome = { kind: 'failure', failure: failure('agent-crashed', 'it died') };
    for (const other of this.#processes.running) {
      if (other.spec.kind === 'attend' && other.spec.agent === agent) this.#processes.finish(other.id, crashed);
    }
    this.#lose(agent);
  }

  #lose(agent: string): void {
    this.#there.delete(agent);
    for (const { id, spec } of this.#processes.running) {
      if (OF_AGENTS.has(spec.kind) && agentOf(spec) === agent) this.#processes.lose(id);
    }
  }

  #watchBeginning(effect: Effect): void {
    const { spec } = effect;
    const agent = agentOf(spec);
    const atWork = this.#processes.running.some((other) => isWork(other) && agentOf(other.spec) === agent);
    if (isWork(effect) && atWork) this.problems.push(`${effect.id} is given to an agent that is at work`);
    if (spec.kind === 'spawn' && this.#there.has(agent))
      this.problems.push(`${effect.id} starts an agent that is there`);
    if (spec.kind !== 'prompt') return;
    // Some tasks kill their agent.
    const deadly = effect.step.endsWith('deadly');
    this.after(1 + below(this.#random, 60), () => (deadly ? this.#crash(effect, agent) : this.#worked.add(effect.id)));
    if (this.#processes.knows(effect.id)) this.problems.push(`G1: ${effect.id} is started twice`);
    if (!this.#accounted(effect))
      this.problems.push(`G5: ${effect.id} is started, and the journal does not ask for it`);
    for (const other of this.#processes.running) {
      // Attending an agent has no attempts: it lasts until the agent is stopped.
      if (other.step === effect.step && other.spec.kind === spec.kind)
        this.problems.push(`G2: ${effect.id} is started while ${other.id} lives`);
    }
  }

  /** Depends on the step, and on how often it has ended by itself before: not on attempts, which crashes multiply. */
  #outcomeOf(effect: Effect): Outcome {
    const { spec } = effect;
    if (spec.kind === 'read') return success({ items: [0, 1] });
    if (spec.kind === 'kill') {
      const agent = agentOf(spec);
      this.#there.delete(agent);
      for (const other of this.#processes.running) {
        if (other.spec.kind === 'attend' && agentOf(other.spec) === agent) this.#processes.finish(other.id, success());
      }
      return success();
    }
    const outcome = this.#temperOf(effect);
    if (spec.kind === 'spawn' && outcome.kind === 'success') this.#there.add(agentOf(spec));
    return outcome;
  }

  #temperOf(effect: Effect): Outcome {
    // An agent that is started again was started before.
    if (effect.step.startsWith('@') && effect.step !== CLEANUP_STEP) return success({}, { session: 'S' });
    const times = this.#finishes.get(effect.step) ?? 0;
    this.#finishes.set(effect.step, times + 1);
    const temper = hash(effect.step) % 20;
    const failing = temper === 1 || ((temper === 2 || temper === 3) && times === 0);
    if (failing) return { kind: 'failure', failure: failure('exit-nonzero', 'exited with status 1', { code: 1 }) };
    if (temper === 4 && times === 0 && effect.step !== CLEANUP_STEP)
      return { kind: 'failure', failure: failure('limit-reached', 'no more today', { parks: true }) };
    const route =
      effect.spec.kind === 'command' && effect.spec.verdict === 'condition'
        ? temper % 2 === 0
          ? 'true'
          : 'false'
        : null;
    const session = effect.spec.kind === 'turn' ? `session of ${effect.step}` : null;
    return success({ said: effect.step }, { route, session });
  }

  /** Some hang until their timeout; the others end well before it. */
  #hangs(effect: Effect): boolean {
    const { spec } = effect;
    if (spec.kind === 'attend' || (spec.kind === 'prompt' && spec.mode !== 'fire-forget')) return true;
    if (spec.kind === 'read' || effect.step.startsWith('@') || hash(effect.step) % 20 !== 0) return false;
    return this.durable.steps.get(effect.step)?.definition.timeout !== null;
  }

  #accounted(effect: Effect): boolean {
    const step = this.durable.inFlight.get(effect.id);
    if (step !== undefined) return step.status === 'running';
    if (this.durable.agentEffects.has(effect.id)) return true;
    return this.durable.cleanup !== null && effect.id === effectId(CLEANUP_STEP, this.durable.cleanups);
  }
}

function isWork({ spec }: Effect): boolean {
  return spec.kind === 'prompt' && spec.mode !== 'fire-forget';
}

/** Effects that end with the agent they are for. */
const OF_AGENTS: ReadonlySet<Effect['spec']['kind']> = new Set(['attend', 'prompt']);

function agentOf(spec: Effect['spec']): string {
  return 'agent' in spec && typeof spec.agent === 'string' ? spec.agent : '';
}
