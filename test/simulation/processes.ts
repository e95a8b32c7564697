// Simulated processes that outlive the engine: the simulator's driver. They answer late, twice and out of order,
// continue while no engine lives, and may be gone when the next one searches for them. Fulfils the contract of drivers
// (test/contracts), like the driver that it replaces.

import type { Answer, Driver, Note } from '../../src/engine/ports.ts';
import { type Effect, type Outcome, type Progress, success } from '../../src/ir/effect.ts';
import { failure } from '../../src/ir/failure.ts';

export interface ProcessWorld {
  /** Calls after this many milliseconds of simulated time. */
  after(ms: number, call: () => void): void;
  /** From 0 up to, not including, the limit. */
  chance(limit: number): number;
  /** The outcome of the effect if it ends by itself; null if it hangs until it is stopped. */
  ends(effect: Effect): (() => Outcome) | null;
  /** Called before every start. */
  begins(effect: Effect): void;
  /** Whether the agent that it is for is gone. */
  absent(effect: Effect): boolean;
  /** Percentage of answers that are given twice. */
  readonly twice: number;
}

interface Process {
  readonly effect: Effect;
  state: 'running' | 'finished' | 'gone';
  outcome: Outcome | null;
  answer: Answer | null;
}

const TELLING: ReadonlySet<Effect['spec']['kind']> = new Set(['turn', 'spawn', 'prompt', 'attend']);
const PROGRESS: readonly Progress[] = [
  { delivery: 'sending' },
  { delivery: 'accepted', session: 's1' },
  { session: 's2' },
  { dialog: { name: 'trust', text: 'May I?' } },
  { dialog: { name: 'permission', text: 'May I?' } },
  { dialog: null },
];

const LOST: Outcome = { kind: 'failure', failure: failure('lost', 'gone without a result') };

export class Processes {
  readonly #world: ProcessWorld;
  readonly #known = new Map<string, Process>();
  #life = 0;

  constructor(world: ProcessWorld) {
    this.#world = world;
  }

  get running(): readonly Effect[] {
    return [...this.#known.values()].filter(({ state }) => state === 'running').map(({ effect }) => effect);
  }

  knows(effectId: string): boolean {
    return this.#known.has(effectId);
  }

  /** A driver for one engine. */
  driver(): Driver {
    return {
      start: (effect, answer, note) => {
        this.#begin(effect, this.#living(answer));
        this.#progress(effect, note);
      },
      find: (effect, answer, note) => {
        this.#find(effect, this.#living(answer));
        this.#progress(effect, note);
      },
      stop: (effectId) => this.#stop(effectId),
      conclude: (effectId) => this.finish(effectId, success()),
    };
  }

  /** The engine is dead: nobody receives the answers of processes until the next one asks. */
  die(): void {
    this.#life += 1;
    for (const process of this.#known.values()) process.answer = null;
  }

  /** A process vanishes and leaves nothing. */
  lose(effectId: string): void {
    const process = this.#known.get(effectId);
    if (process?.state !== 'running') return;
    process.state = 'gone';
    this.#world.after(this.#world.chance(10), () => process.answer?.(LOST));
  }

  finish(effectId: string, outcome: Outcome): void {
    const process = this.#known.get(effectId);
    if (process?.state !== 'running') return;
    process.state = 'finished';
    process.outcome = outcome;
    process.answer?.(outcome);
    if (this.#world.chance(100) < this.#world.twice) {
      this.#world.after(this.#world.chance(40), () => process.answer?.(outcome));
    }
  }

  #begin(effect: Effect, answer: Answer): void {
    this.#world.begins(effect);
    this.#known.set(effect.id, { effect, state: 'running', outcome: null, answer });
    if (this.#world.absent(effect)) return this.lose(effect.id);
    const ends = this.#world.ends(effect);
    if (ends === null) return;
    this.#world.after(1 + this.#world.chance(60), () => {
      if (this.#known.get(effect.id)?.state === 'running') this.finish(effect.id, ends());
    });
  }

  #find(effect: Effect, answer: Answer): void {
    const process = this.#known.get(effect.id);
    if (process === undefined) return this.#begin(effect, answer);
    process.answer = answer;
    if (process.state === 'running') return;
    const outcome = process.outcome ?? LOST;
    this.#world.after(this.#world.chance(10), () => process.answer?.(outcome));
  }

  #stop(effectId: string): void {
    const process = this.#known.get(effectId);
    if (process?.state !== 'running') return;
    const stopped: Outcome = { kind: 'failure', failure: failure('stopped', 'stopped') };
    // Ending an agent is not stopped, but made more urgent.
    const ends = process.effect.spec.kind === 'kill' ? this.#world.ends(process.effect) : null;
    this.#world.after(this.#world.chance(20), () => {
      if (process.state === 'running') this.finish(effectId, ends === null ? stopped : ends());
    });
  }

  /** Reports progress and dialogs: also too late, and in any order. */
  #progress({ spec }: Effect, note: Note | undefined): void {
    if (note === undefined || !TELLING.has(spec.kind)) return;
    const life = this.#life;
    for (let times = this.#world.chance(4); times > 0; times -= 1) {
      const progress = PROGRESS[this.#world.chance(PROGRESS.length)] ?? {};
      this.#world.after(this.#world.chance(80), () => {
        if (life === this.#life) void note(progress);
      });
    }
  }

  #living(answer: Answer): Answer {
    const life = this.#life;
    return (outcome) => {
      if (life === this.#life) answer(outcome);
    };
  }
}
