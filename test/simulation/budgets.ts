// One seed: ten runs of one user with a budget of the day, in a world in which engines die at any moment, also between a
// reservation and its turn, and come back late. The world counts what turns really cost.

import { Engine } from '../../src/engine/loop.ts';
import type { Answer, Driver, Journal, Ledger } from '../../src/engine/ports.ts';
import { type Effect, success } from '../../src/ir/effect.ts';
import { failure } from '../../src/ir/failure.ts';
import { type Program, type RunRequest, UNLIMITED } from '../../src/ir/program.ts';
import { type OtherRun, othersOf } from '../../src/app/budget-ledger.ts';
import { below, type Random, randomFrom } from '../../src/base/random.ts';
import { noteSpending } from '../../src/kernel/budget.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import type { Input } from '../../src/kernel/input.ts';
import { emptySpending, sumOf } from '../../src/kernel/spending.ts';
import { VirtualTime } from '../../src/testing/virtual-time.ts';
import { parseProgram } from '../kernel-rig/program-text.ts';
import { Crash } from './world.ts';

const RUNS = 10;
export const DAY_USD = 5;
export const TURN_USD = 0.4;
const RESERVE_USD = 0.5;
const HAPPENINGS_MAX = 100_000;
const REVIVALS_MAX = 100;
const PASSES_ALIKE = 3;

const PROGRAM: Program = parseProgram(['a turn x', 'b turn x needs a', 'c turn x needs a', 'd turn x needs b,c']);
const BUDGET = {
  scope: 'user',
  runUsd: null,
  dayUsd: DAY_USD,
  dayTokens: null,
  agentUsd: null,
  reserveUsd: RESERVE_USD,
  overrun: 0.5,
} as const;

export interface Spent {
  readonly problems: readonly string[];
  /** What all turns have cost. */
  readonly usd: number;
  readonly crashes: number;
}

export async function spend(seed: number): Promise<Spent> {
  const world = new World(randomFrom(seed));
  await world.live();
  return { problems: world.problems, usd: world.usd, crashes: world.crashes };
}

class World {
  readonly problems: string[] = [];
  usd = 0;
  crashes = 0;
  readonly random: Random;
  readonly time = new VirtualTime(1_000);
  readonly runs: readonly SimulatedRun[];
  readonly crash: number;
  #lockedBy: string | null = null;

  constructor(random: Random) {
    this.random = random;
    this.crash = 0.15 * random();
    this.runs = Array.from({ length: RUNS }, (_, index) => new SimulatedRun(this, `r${index}`));
  }

  /** Until nothing more is spent, however often all runs are resumed. */
  async live(): Promise<void> {
    for (const run of this.runs) this.time.after(below(this.random, 40), () => run.begin());
    let [before, passesAlike] = [-1, 0];
    for (let revivals = 0; revivals < REVIVALS_MAX; revivals += 1) {
      await this.#happen();
      const allOver = this.runs.every((run) => run.isOver);
      // A turn may be lost, and its reservation keep the others waiting, several times in a row.
      passesAlike = allOver && this.usd === before ? passesAlike + 1 : 0;
      if (passesAlike === PASSES_ALIKE) return this.#checkEnd();
      before = this.usd;
      for (const run of this.runs) this.time.after(below(this.random, 40), () => run.begin());
    }
    this.problems.push('the runs never come to rest');
  }

  async #happen(): Promise<void> {
    for (let count = 0; ; count += 1) {
      await quiet();
      if (count > HAPPENINGS_MAX) throw new Error('the runs go on for ever');
      if (!this.time.next()) return;
    }
  }

  /** A turn begins that will cost so much. */
  pay(usd: number): void {
    this.usd = sumOf(this.usd, usd);
    if (this.usd > DAY_USD) this.problems.push(`$${this.usd} are spent, of $${DAY_USD}`);
  }

  #checkEnd(): void {
    // Nothing is reserved for ever: what is left is too little for another turn.
    if (DAY_USD - this.usd >= TURN_USD + 1e-9 && this.runs.some((run) => run.end !== 'done'))
      this.problems.push(`only $${this.usd} of $${DAY_USD} are spent, and runs wait for more`);
  }

  /** Held by one engine, until it releases it or dies. */
  async lock(holder: string): Promise<void> {
    while (this.#lockedBy !== null) {
      await new Promise<void>((resolve) => {
        this.time.after(1 + below(this.random, 5), resolve);
      });
    }
    this.#lockedBy = holder;
  }

  release(holder: string): void {
    if (this.#lockedBy === holder) this.#lockedBy = null;
  }

  others(reader: SimulatedRun, turns: readonly string[]): ReturnType<typeof othersOf> {
    const ofDay = this.runs.filter((run) => run !== reader).map((run) => run.spent());
    return othersOf({ runs: 'runs', budgets: [BUDGET], since: 0, turns, ofDay, tree: [] });
  }
}

class SimulatedRun {
  readonly id: string;
  end: string | null = null;
  readonly #world: World;
  readonly #records: JournalRecord[] = [];
  /** Turns that have begun, with their outcomes; null while they work. */
  readonly #turns = new Map<string, { outcome: ReturnType<typeof success> | null; isLost: boolean }>();
  readonly #spending = emptySpending();
  /** Records that are in `#spending`. */
  #noted = 0;
  #life = 0;
  #isLive = false;

  constructor(world: World, id: string) {
    this.#world = world;
    this.id = id;
  }

  get isOver(): boolean {
    return !this.#isLive && this.end !== null;
  }

  get #holder(): string {
    return `${this.id} ${this.#life}`;
  }

  /** Starts an engine, unless there is one or the run is done. */
  begin(): void {
    if (this.#isLive || this.end === 'done') return;
    this.#isLive = true;
    this.#life += 1;
    const life = this.#life;
    const driver = this.#driver();
    const done = (): Promise<void> => Promise.resolve();
    const session = {
      drivers: { turn: () => driver },
      ledger: this.#ledger(),
      open() {},
      observe() {},
      close: done,
      catchUp: done,
    };
    const engine = new Engine({
      id: this.id,
      journal: this.#journal(life),
      clock: {
        now: () => this.#world.time.now,
        at: (moment, call) =>
          this.#world.time.after(Math.max(0, moment - this.#world.time.now), () => {
            if (life === this.#life) call();
          }),
      },
      session: () => session,
    });
    const first: Input =
      this.#records.length === 0 ? this.#request() : { kind: 'run-resumed', retryFailed: false, allowance: null };
    engine.run(first).then(
      (state) => {
        if (life !== this.#life) return;
        this.#isLive = false;
        this.end = state.end;
      },
      (error: unknown) => {
        if (!(error instanceof Crash)) throw error;
        if (life === this.#life) this.#die();
      },
    );
    // Like kill -9, at any moment.
    const { random, crash, time } = this.#world;
    if (random() < crash * 4)
      time.after(below(random, 300), () => {
        if (life === this.#life && this.#isLive) this.#die();
      });
  }

  #die(): void {
    const { random, time } = this.#world;
    this.#world.crashes += 1;
    this.#world.release(this.#holder);
    this.#isLive = false;
    this.#life += 1;
    this.end = null;
    for (const turn of this.#turns.values()) if (turn.outcome === null && random() < 0.3) turn.isLost = true;
    // Some come back at once, others long after.
    time.after(below(random, random() < 0.5 ? 20 : 2_000), () => this.begin());
  }

  #request(): Input {
    const request: RunRequest = {
      id: this.id,
      mark: this.id,
      variables: {},
      meta: {},
      cwd: '.',
      allowOutside: false,
      allowance: UNLIMITED,
      budgets: { runUsd: null, agentUsd: null, days: true, relatives: false, reserveUsd: RESERVE_USD },
    };
    return { kind: 'run-requested', request, programHash: 'hash' };
  }

  #journal(life: number): Journal {
    const { random, crash, time } = this.#world;
    return {
      program: PROGRAM,
      programHash: 'hash',
      records: [...this.#records],
      append: (records) =>
        new Promise((resolve, reject) => {
          time.after(below(random, 4), () => {
            if (life !== this.#life) return;
            if (random() < crash / 4) return reject(new Crash('before the write'));
            this.#records.push(...records);
            if (random() < crash / 4) return reject(new Crash('after the write'));
            resolve();
          });
        }),
      close: async () => {},
    };
  }

  #ledger(): Ledger {
    const holder = this.#holder;
    return {
      admit: async (turns) => {
        await this.#world.lock(holder);
        if (holder !== this.#holder) {
          this.#world.release(holder);
          // A dead engine gets no answer.
          return new Promise<null>(() => {});
        }
        const others = this.#world.others(this, turns);
        return { others, close: () => Promise.resolve(this.#world.release(holder)) };
      },
    };
  }

  /** As the real ledger reads it from the journal. */
  spent(): OtherRun {
    for (const { at, decisions } of this.#records.slice(this.#noted))
      for (const decision of decisions) noteSpending(this.#spending, decision, at);
    this.#noted = this.#records.length;
    const spending = this.#spending;
    const counted = [...spending.reservations.values()].filter(
      ({ step, attempt }) => this.#isLive || this.#turns.has(`${step}#${attempt}`),
    );
    const reserved = counted.reduce(
      (sum, { usd, tokens }) => ({ usd: sumOf(sum.usd, usd), tokens: sum.tokens + tokens }),
      {
        usd: 0,
        tokens: 0,
      },
    );
    return { folder: `runs/${this.id}`, spending, reserved };
  }

  #driver(): Driver {
    const life = this.#life;
    const perform = (effect: Effect, answer: Answer): void => {
      const { random, time } = this.#world;
      if (!this.#turns.has(effect.id)) this.#begin(effect);
      const look = (): void => {
        if (life !== this.#life) return;
        const turn = this.#turns.get(effect.id);
        if (turn?.isLost === true) return answer({ kind: 'failure', failure: failure('lost', 'it is gone') });
        if (turn?.outcome === null || turn === undefined) return void time.after(1 + below(random, 20), look);
        answer(turn.outcome);
      };
      time.after(1, look);
    };
    // admit/1
    const find = (effect: Effect, answer: Answer): void => {
      if (this.#turns.has(effect.id)) return perform(effect, answer);
      this.#world.time.after(1, () => {
        if (life === this.#life) answer({ kind: 'failure', failure: failure('lost', 'it was never started') });
      });
    };
    return { start: perform, find, stop: () => {} };
  }

  #begin(effect: Effect): void {
    const { random, time } = this.#world;
    const turn: { outcome: ReturnType<typeof success> | null; isLost: boolean } = { outcome: null, isLost: false };
    this.#turns.set(effect.id, turn);
    time.after(1 + below(random, 200), () => {
      if (turn.isLost) return;
      this.#world.pay(TURN_USD);
      turn.outcome = success({}, { usage: { usd: TURN_USD, tokens: 10 } });
    });
  }
}

/** Lets every promise settle that can: no timer, so that a seed replays exactly. */
async function quiet(): Promise<void> {
  for (let hops = 0; hops < 20; hops += 1) await Promise.resolve();
}
