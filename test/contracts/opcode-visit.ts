// A visit of one step of a Conductor workflow under test: its lowered blocks, the kernel and the engine, a journal in
// memory, and real drivers. An engine dies by never hearing from its journal again; the next one uses the same journal.

import { recordOf } from '../../src/app/conductor-run.ts';
import { Bug } from '../../src/base/errors.ts';
import type { ConductorContext } from '../../src/drivers/conductor/context.ts';
import { gitDriver, inspectDriver } from '../../src/drivers/conductor/drivers.ts';
import { Engine, type RunSession } from '../../src/engine/loop.ts';
import type { Clock, Driver, Drivers, Journal } from '../../src/engine/ports.ts';
import { checkProgram } from '../../src/ir/check.ts';
import { type Effect, type Outcome, type Progress, success } from '../../src/ir/effect.ts';
import { DEFAULT_LIMITS, type Program, UNLIMITED } from '../../src/ir/program.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import type { Input } from '../../src/kernel/input.ts';
import type { RunState } from '../../src/kernel/state.ts';
import { lowerVisit } from '../../src/languages/conductor/lower.ts';
import type { OpcodeSpec } from '../../src/languages/conductor/syntax.ts';

export interface VisitRequest {
  /** For example `check#2`. */
  readonly visit: string;
  readonly spec: OpcodeSpec;
  /** Timeout of its turn or command. */
  readonly timeoutMs?: number;
}

/** State that visits of one rig share. */
export interface VisitWorld {
  readonly context: Omit<ConductorContext, 'step'>;
  /** Drivers of the current engine. */
  readonly drivers: () => { readonly command: Driver; readonly turn: Driver };
  readonly noted?: (progress: Progress) => void;
}

export class Visits {
  readonly #world: VisitWorld;
  readonly #visits = new Map<string, VisitRun>();

  constructor(world: VisitWorld) {
    this.#world = world;
  }

  /** Starts the visit, or continues it if an engine has died. */
  perform(request: VisitRequest): Promise<Outcome> {
    const known = this.#visits.get(request.visit);
    const run = known ?? new VisitRun(request);
    this.#visits.set(request.visit, run);
    const context = { ...this.#world.context, step: (id: string) => this.#record(id) };
    const { command, turn } = this.#world.drivers();
    const drivers = { command, turn, git: gitDriver(context), inspect: inspectDriver(context) };
    return run.live(drivers, this.#world.noted ?? (() => undefined));
  }

  /** All engines die. */
  die(): void {
    for (const run of this.#visits.values()) run.die();
  }

  /** Everything in flight times out. */
  timeOut(): void {
    for (const run of this.#visits.values()) run.jump();
  }

  stop(): void {
    for (const run of this.#visits.values()) run.stop();
  }

  /** The record under the step's name in its own run, where each visit is the first. */
  #record(id: string) {
    const [, visit = ''] = /^(.*#\d+)(?:\..*)?$/.exec(id) ?? [];
    const run = this.#visits.get(visit);
    return run === undefined ? null : run.record(id);
  }
}

const HOUR_MS = 3_600_000;

class VisitRun {
  readonly #request: VisitRequest;
  readonly #program: Program;
  readonly #records: JournalRecord[] = [];
  #alive: { isDead: boolean; engine: Engine } | null = null;
  #ahead = 0;
  readonly #timers = new Set<() => void>();

  constructor(request: VisitRequest) {
    this.#request = request;
    this.#program = programOf(request);
  }

  async live(drivers: Readonly<Record<string, Driver>>, noted: (progress: Progress) => void): Promise<Outcome> {
    const alive = { isDead: false, engine: null as unknown as Engine };
    const records = this.#records;
    const journal: Journal = {
      program: this.#program,
      programHash: 'hash',
      records: [...records],
      append: (more) => {
        if (alive.isDead) return new Promise(() => undefined);
        records.push(...(JSON.parse(JSON.stringify(more)) as JournalRecord[]));
        return Promise.resolve();
      },
      close: () => Promise.resolve(),
    };
    const session: RunSession = {
      drivers: this.#renamed(drivers, noted),
      open: () => undefined,
      observe: () => undefined,
      close: () => Promise.resolve(),
      catchUp: () => Promise.resolve(),
    };
    alive.engine = new Engine({ id: 'r', journal, clock: this.#clock(), session: () => session });
    this.#alive = alive;
    const { state } = alive.engine;
    if (state.phase !== 'ended') await alive.engine.run(records.length === 0 ? START : RESUME);
    return outcomeOf(state);
  }

  die(): void {
    if (this.#alive !== null) this.#alive.isDead = true;
  }

  stop(): void {
    this.#alive?.engine.stop('a test', false);
  }

  jump(): void {
    this.#ahead += HOUR_MS;
    for (const due of this.#timers) due();
  }

  record(id: string) {
    const own = `${OWN}${id.slice(this.#request.visit.length)}`;
    const known = recordOf(this.#alive?.engine.state.steps.get(own));
    return known === null ? null : { ...known, id };
  }

  #clock(): Clock {
    const now = (): number => Date.now() + this.#ahead;
    return {
      now,
      at: (moment, call) => {
        const due = (): void => {
          this.#timers.delete(due);
          clearTimeout(timer);
          call();
        };
        const timer = setTimeout(due, Math.max(0, moment - now()));
        this.#timers.add(due);
        return () => {
          this.#timers.delete(due);
          clearTimeout(timer);
        };
      },
    };
  }

  /** The drivers know the visit by the test's name for it. */
  #renamed(drivers: Readonly<Record<string, Driver>>, noted: (progress: Progress) => void): Drivers {
    const named = (text: string): string => `${this.#request.visit}${text.slice(OWN.length)}`;
    const rename = (effect: Effect): Effect => ({ ...effect, id: named(effect.id), step: named(effect.step) });
    const wrap = (driver: Driver): Driver => ({
      start: (effect, answer) => driver.start(rename(effect), answer, note),
      find: (effect, answer) => driver.find(rename(effect), answer, note),
      stop: (id, how) => driver.stop(named(id), how),
    });
    const note = (progress: Progress): Promise<void> => {
      noted(progress);
      return Promise.resolve();
    };
    return Object.fromEntries(Object.entries(drivers).map(([kind, driver]) => [kind, () => wrap(driver)]));
  }
}

/** The name of the visit in its own run. */
const OWN = 'visit#1';

const START: Input = {
  kind: 'run-requested',
  request: { id: 'r', mark: 'm', variables: {}, meta: {}, cwd: '/', allowOutside: true, allowance: UNLIMITED },
  programHash: 'hash',
};
const RESUME: Input = { kind: 'run-resumed', retryFailed: false, allowance: null };

/** Every route is an end whose reason names the route. */
const ROUTES = ['done', 'completed', 'success', 'partial', 'blocked', 'unsafe', 'needs_human'];

function programOf({ spec, timeoutMs }: VisitRequest): Program {
  const [own, ...body] = lowerVisit('visit', spec, timeoutMs ?? null);
  const [step] = own.steps;
  if (step === undefined) throw new Bug('a visit without a step');
  const stops = ROUTES.map((key) => [key, { kind: 'stop', verdict: 'done', reason: key }] as const);
  const block = { ...own, steps: [{ ...step, routes: Object.fromEntries(stops), unrouted: 'fail' as const }] };
  const program: Program = {
    format: 2,
    source: { language: 'conductor', name: 'test' },
    entry: own.name,
    blocks: Object.fromEntries([block, ...body].map((each) => [each.name, each])),
    machines: {},
    steerings: {},
    cleanup: { success: null, failure: null, stop: null },
    limits: DEFAULT_LIMITS,
    drainMs: 0,
    onFailure: 'drain',
    attachments: {},
  };
  const problems = checkProgram(program);
  if (problems.length > 0) throw new Bug(problems.join('; '));
  return program;
}

/** Includes the total cost. */
function outcomeOf(state: RunState): Outcome {
  const step = state.steps.get(OWN);
  if (step === undefined) throw new Bug('the visit never began');
  const { usd, tokens } = state.cost;
  const usage = usd === 0 && tokens === 0 ? null : { usd, tokens };
  if (step.failure !== null) return { kind: 'failure', failure: { ...step.failure, usage } };
  const { outputs, kept, status } = step;
  return success(outputs, { kept, usage, route: status === 'done' && state.reason !== 'done' ? state.reason : null });
}
