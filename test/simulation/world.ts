// A world that outlives the engine: a disk whose appends take time and may be cut off by a crash before or after the
// durable point, and processes that continue while no engine lives, answer late, twice and out of order, and may be
// gone when the engine comes back. Time is counted, not waited for. It checks the engine:
//
//   G1  no effect of a finished step is started, and none twice;
//   G2  an attempt starts only when no other attempt of its step is alive;
//   G5  nothing is started that the durable journal does not request (E2).

import type { Answer, Clock, Driver, Drivers, Journal } from '../../src/engine/ports.ts';
import { type Effect, type Outcome, type Progress, success } from '../../src/ir/effect.ts';
import { failure } from '../../src/ir/failure.ts';
import type { Outputs } from '../../src/ir/output.ts';
import type { Program } from '../../src/ir/program.ts';
import { apply } from '../../src/kernel/apply.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import { CLEANUP_STEP, effectId, initialState, type RunState } from '../../src/kernel/state.ts';
import { Processes, type ProcessHost, type SimulatedProcess } from '../../src/testing/processes.ts';
import { VirtualTime } from '../../src/testing/virtual-time.ts';
import { below, hash, type Random } from '../../src/base/random.ts';

export class Crash extends Error {}

/** How rough the world is. All zero: calm. */
export interface Roughness {
  readonly crash: number;
  /** The share of running processes that die with the engine. */
  readonly reboot: number;
  readonly twice: number;
}

export class World implements ProcessHost {
  readonly problems: string[] = [];
  readonly records: JournalRecord[] = [];
  /** The fold of the records on disk. */
  readonly durable: RunState;
  /** The number of the current engine; answers and timers for a dead one are dropped. */
  life = 0;

  readonly #program: Program;
  readonly #random: Random;
  readonly #roughness: Roughness;
  readonly #time = new VirtualTime(1_000);
  readonly #processes = new Processes(this);
  readonly #begun = new Set<string>();
  readonly #finishes = new Map<string, number>();
  /** Running agents, whether or not an engine lives. */
  readonly #there = new Set<string>();
  /** Prompts whose agent has finished the work. */
  readonly #worked = new Set<string>();

  constructor(program: Program, random: Random, roughness: Roughness) {
    this.#program = program;
    this.#random = random;
    this.#roughness = roughness;
    this.durable = initialState(program);
  }

  get now(): number {
    return this.#time.now;
  }

  /** Performs the next event, or returns false if there is none. */
  happen(): boolean {
    return this.#time.next();
  }

  after(ms: number, call: () => void): void {
    this.#time.after(ms, call);
  }

  /** The engine is dead: its effects continue without it, or not. */
  die(): void {
    this.life += 1;
    this.#processes.detachAll();
    for (const process of this.#processes.running) {
      const { spec } = process.effect;
      // Effects of an agent are lost only with the agent; ending an agent is repeated after an interruption.
      if (OF_AGENTS.has(spec.kind) || spec.kind === 'kill' || this.#random() >= this.#roughness.reboot) continue;
      process.lose();
    }
    for (const agent of this.#there) if (this.#random() < this.#roughness.reboot) this.#lose(agent);
    this.#time.now += below(this.#random, 50);
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
    const made = this.#driver();
    const driver = (): Driver => made;
    const agents = { spawn: driver, attend: driver, prompt: driver, kill: driver };
    return { command: driver, turn: driver, read: driver, ...agents };
  }

  /** The driver of one engine. Results that are found, and losses, arrive late; progress arrives late and in any order. */
  #driver(): Driver {
    const { life } = this;
    const inner = this.#processes.driver();
    const late =
      (answer: Answer): Answer =>
      (outcome) =>
        this.after(below(this.#random, 10), () => {
          if (life === this.life) answer(outcome);
        });
    const lossesLate =
      (answer: Answer): Answer =>
      (outcome) =>
        (outcome.kind === 'failure' && outcome.failure.kind === 'lost' ? late(answer) : answer)(outcome);
    return {
      ...inner,
      start: (effect, answer, note) => {
        inner.start(effect, lossesLate(answer), note);
        this.#progress(effect);
      },
      find: (effect, answer, note) => {
        const isOver = this.#processes.get(effect.id)?.isRunning === false;
        inner.find(effect, (isOver ? late : lossesLate)(answer), note);
        this.#progress(effect);
      },
    };
  }

  #progress({ id, spec }: Effect): void {
    if (!TELLING.has(spec.kind)) return;
    const { life } = this;
    for (let times = below(this.#random, 4); times > 0; times -= 1) {
      const progress = PROGRESS[below(this.#random, PROGRESS.length)] ?? {};
      this.after(below(this.#random, 80), () => {
        if (life === this.life) void this.#processes.get(id)?.note(progress);
      });
    }
  }

  begin(process: SimulatedProcess): void {
    const { effect } = process;
    this.#watchBeginning(effect);
    // The engine does not know yet that the agent died with the previous engine.
    if (OF_AGENTS.has(effect.spec.kind) && !this.#there.has(agentOf(effect.spec))) return process.lose();
    if (this.#hangs(effect)) return;
    this.after(1 + below(this.#random, 60), () => {
      if (process.isRunning) this.#finish(process, this.#outcomeOf(effect));
    });
  }

  stop(process: SimulatedProcess): void {
    const { effect } = process;
    this.after(below(this.#random, 20), () => {
      if (!process.isRunning) return;
      // Ending an agent is not stopped, but made more urgent.
      this.#finish(process, effect.spec.kind === 'kill' ? this.#outcomeOf(effect) : STOPPED);
    });
  }

  conclude(process: SimulatedProcess): void {
    this.#finish(process, success());
  }

  /** Some answers are given twice. */
  #finish(process: SimulatedProcess, outcome: Outcome): void {
    process.finish(outcome);
    if (this.#random() < this.#roughness.twice) this.after(below(this.#random, 40), () => process.repeat());
  }

  /** Pending reports of agents that have finished their work. */
  reports(): readonly { readonly step: string; readonly outputs: Outputs }[] {
    return this.#running
      .filter(({ id, spec }) => spec.kind === 'prompt' && spec.mode !== 'fire-forget' && this.#worked.has(id))
      .map(({ step }) => ({ step, outputs: { said: step } }));
  }

  get #running(): readonly Effect[] {
    return this.#processes.running.map(({ effect }) => effect);
  }

  #crash({ id }: Effect, agent: string): void {
    if (!this.#there.has(agent) || this.#processes.get(id)?.isRunning !== true) return;
    this.#endAttending(agent, { kind: 'failure', failure: failure('agent-crashed', 'it died') });
    this.#lose(agent);
  }

  #endAttending(agent: string, outcome: Outcome): void {
    for (const process of this.#processes.running) {
      const { spec } = process.effect;
      if (spec.kind === 'attend' && agentOf(spec) === agent) this.#finish(process, outcome);
    }
  }

  #lose(agent: string): void {
    this.#there.delete(agent);
    for (const process of this.#processes.running) {
      const { spec } = process.effect;
      if (OF_AGENTS.has(spec.kind) && agentOf(spec) === agent) process.lose();
    }
  }

  #watchBeginning(effect: Effect): void {
    const { spec } = effect;
    const agent = agentOf(spec);
    const others = this.#running.filter((other) => other !== effect);
    const atWork = others.some((other) => isWork(other) && agentOf(other.spec) === agent);
    if (isWork(effect) && atWork) this.problems.push(`${effect.id} is given to an agent that is at work`);
    if (spec.kind === 'spawn' && this.#there.has(agent))
      this.problems.push(`${effect.id} starts an agent that is there`);
    if (this.#begun.has(effect.id)) this.problems.push(`G1: ${effect.id} is started twice`);
    this.#begun.add(effect.id);
    if (!this.#accounted(effect))
      this.problems.push(`G5: ${effect.id} is started, and the journal does not ask for it`);
    // Attending an agent has no attempts: it lasts until the agent is stopped.
    for (const other of others) {
      if (other.step === effect.step && other.spec.kind === spec.kind && spec.kind !== 'attend')
        this.problems.push(`G2: ${effect.id} is started while ${other.id} lives`);
    }
    if (spec.kind !== 'prompt') return;
    // Some tasks kill their agent.
    const deadly = effect.step.endsWith('deadly');
    this.after(1 + below(this.#random, 60), () => (deadly ? this.#crash(effect, agent) : this.#worked.add(effect.id)));
  }

  /** Depends on the step, and on how often it has ended by itself before: not on attempts, which crashes multiply. */
  #outcomeOf(effect: Effect): Outcome {
    const { spec } = effect;
    if (spec.kind === 'read') return success({ items: [0, 1] });
    if (spec.kind === 'kill') {
      const agent = agentOf(spec);
      this.#there.delete(agent);
      this.#endAttending(agent, success());
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
    if (effect.spec.kind !== 'turn') return success({ said: effect.step }, { route });
    const usage = { usd: temper % 3 === 0 ? null : temper / 100, tokens: 100 * temper };
    return success({ said: effect.step }, { route, session: `session of ${effect.step}`, usage });
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

const STOPPED: Outcome = { kind: 'failure', failure: failure('stopped', 'stopped') };

/** Effects whose drivers report progress. */
const TELLING: ReadonlySet<Effect['spec']['kind']> = new Set(['turn', 'spawn', 'prompt', 'attend']);
const PROGRESS: readonly Progress[] = [
  { delivery: 'sending' },
  { delivery: 'accepted', session: 's1' },
  { session: 's2' },
  { dialog: { name: 'trust', text: 'May I?' } },
  { dialog: { name: 'permission', text: 'May I?' } },
  { dialog: null },
];
