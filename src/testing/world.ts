// The world of a test: everything behind engine/ports.ts, in virtual time. Engines live in it one after the other; agents,
// commands and people continue while no engine runs.
//
//   world/1  The clock jumps to the next moment at which something happens, and only when nothing real is going on. What is to
//            happen at the present moment happens meanwhile: a real command may wait for it.
//   world/2  An engine dies before or after a record, as a killed process would: later records are not written, and nothing
//            that they ask for starts.
//   world/3  Messages for the run wait while no engine lives.
//   world/4  The same world with the same rules gives the same journal, as far as nothing real takes part.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

import { segmentMatcher } from '../base/names.ts';
import { ok, UsageError } from '../base/errors.ts';
import { resolveText } from '../drivers/outputs.ts';
import { steered, unscriptedAnswer } from '../drivers/transition-reader.ts';
import { Engine, type LiveRun, type RunSession } from '../engine/loop.ts';
import type { Clock, Driver, Drivers, Journal, RunFiles } from '../engine/ports.ts';
import { fileProblem } from '../ipc/run-endpoint.ts';
import { MessageHandler } from '../ipc/message-handler.ts';
import type { Answer, Message } from '../ipc/protocol.ts';
import type { Effect } from '../ir/effect.ts';
import type { Program, RunRequest } from '../ir/program.ts';
import { promptText } from '../ir/prompt-text.ts';
import type { FilledText } from '../ir/text.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { Input } from '../kernel/input.ts';
import { isOpenGate, type RunState } from '../kernel/state.ts';
import type { SimWorld } from '../sim/turn.ts';
import { endOfCall, messageOfCall } from './agent-calls.ts';
import { SimulatedAgents } from './agents.ts';
import { namesIn, type RefusedCommand, type StepNames, SimulatedCommands } from './commands.ts';
import { decisionMessage, GateRules, TRUSTING } from './gate-rules.ts';
import { Processes, type SimulatedProcess } from './processes.ts';
import type { Ruled, When, WorkflowTest } from './test-file.ts';
import { VirtualTime } from './virtual-time.ts';
import { intercepted, routed } from './wrapped-drivers.ts';

export interface WorldOptions {
  readonly program: Program;
  readonly request: RunRequest;
  /** Rules for agents are in the script. */
  readonly test: Pick<
    WorkflowTest,
    'on' | 'command' | 'gate' | 'event' | 'engine' | 'stop' | 'run' | 'now' | 'recordsMax'
  >;
  /** The folder in which commands and agents work. Absolute. */
  readonly cwd: string;
  readonly files: RunFiles;
  /** A folder that answers may name must be in this one; null allows any. */
  readonly within: string | null;
  /** An additional death, besides those of the test. */
  readonly death?: Death | null;
  /** What really acts, for one engine. */
  real(run: LiveRun): RealParts;
  /** Runs a shell command of an agent. */
  shell(command: string, by: ShellCaller, signal: AbortSignal): ReturnType<SimWorld['shell']>;
}

/** The agent that runs a shell command, in its folder, for a step. */
export interface ShellCaller {
  readonly agent: string;
  readonly step: string;
  readonly cwd: string;
}

export interface RealParts {
  /** Drivers of commands that `run` allows, of files and of git. */
  readonly drivers: Drivers;
  readonly observers: readonly RealObserver[];
}

interface RealObserver {
  open?(run: LiveRun, before: readonly JournalRecord[]): void;
  observe(records: readonly JournalRecord[], state: RunState): void;
  close?(): void | Promise<void>;
  /** The engine was killed: gives back what a dead process would not hold any more. */
  abandon?(): void | Promise<void>;
}

/** The engine dies at a record: `before` it is written, or `after`. */
export interface Death {
  readonly seq: number;
  readonly when: 'before' | 'after';
}

export interface WorldEnd {
  /** `waiting`: nothing more happens. `too-long`: more records than allowed. */
  readonly kind: 'ended' | 'waiting' | 'too-long';
  readonly state: RunState;
  readonly records: readonly JournalRecord[];
  readonly refused: readonly RefusedCommand[];
  readonly used: ReadonlySet<Ruled>;
  readonly prompts: readonly { readonly step: string; readonly prompt: string }[];
  /** How often an engine died. */
  readonly deaths: number;
  readonly virtualMs: number;
}

interface PlannedDeath {
  readonly seq: number | null;
  readonly step: string | null;
  readonly when: Death['when'];
  readonly awayMs: number;
  /** Null: the additional death. */
  readonly rule: Ruled | null;
}

/** Senders that wait for a record that was not written get no answer, as from a process that was killed. */
class Killed extends UsageError {
  constructor() {
    super('the engine was killed');
  }
}

export class World {
  readonly time: VirtualTime;
  readonly #options: WorldOptions;
  readonly #namesOf: StepNames;
  readonly #records: JournalRecord[] = [];
  readonly #processes: Processes;
  readonly #agents: SimulatedAgents;
  readonly #commands: SimulatedCommands;
  readonly #used = new Set<Ruled>();
  readonly #refused: RefusedCommand[] = [];
  readonly #prompts: { step: string; prompt: string }[] = [];
  readonly #gateRules: GateRules;
  /** Askings of gates that a person has been told about: `GATE ASKING`. */
  readonly #noticed = new Set<string>();
  readonly #deathsLeft: PlannedDeath[];
  #engine: { readonly live: Engine; readonly handler: MessageHandler } | null = null;
  /** Observers of the living engine. */
  #observers: readonly RealObserver[] = [];
  #onEngine: (() => void)[] = [];
  #life = 0;
  #deaths = 0;
  /** Real happenings, and what to call when one ends or something is due. */
  #real = 0;
  #onReal: () => void = () => undefined;
  #stopping: WorkflowTest['stop'][number] | null = null;
  /** Since when something real goes on, by the real clock and by the virtual one. */
  #realSince: { readonly at: number; readonly now: number } | null = null;
  #end: WorldEnd['kind'] | null = null;
  #state: RunState | null = null;
  #error: { readonly error: unknown } | null = null;

  constructor(options: WorldOptions) {
    const { test, files, cwd } = options;
    this.#options = options;
    this.#namesOf = namesIn(options.program);
    this.#gateRules = new GateRules(test.gate);
    this.time = new VirtualTime(test.now, () => this.#onReal());
    const shared = {
      cwd,
      files,
      text: (text: FilledText) => this.#text(text),
      after: (ms: number, call: () => void) => this.time.after(ms, call),
      failed: (error: unknown) => this.#fail(error),
    };
    this.#agents = new SimulatedAgents({
      ...shared,
      script: { rules: test.on },
      simWorld: (agent, folder, crash) => this.#simWorld(agent, folder, crash),
      unscripted: (effect, prompt) => this.#unscripted(effect, prompt),
      prompted: (step, prompt) => this.#prompts.push({ step, prompt }),
    });
    this.#commands = new SimulatedCommands({
      ...shared,
      rules: test.command,
      namesOf: this.#namesOf,
      now: () => this.time.now,
      during: (happening) => this.#during(happening),
      send: (message, gone) => this.#send(message, gone),
      used: (rule) => this.#used.add(rule),
      refused: (refusal) => this.#refused.push(refusal),
    });
    this.#processes = new Processes({
      begin: (process) => this.#begin(process),
      stop: (process, how) =>
        process.effect.spec.kind === 'command' ? this.#commands.stop(process) : this.#agents.stop(process, how),
      conclude: (process) => this.#agents.conclude(process),
    });
    this.#deathsLeft = [
      ...(options.death ? [{ ...options.death, step: null, awayMs: 0, rule: null }] : []),
      ...test.engine.map((rule) => ({
        seq: rule.dies.kind === 'record' ? rule.dies.seq : null,
        step: rule.dies.kind === 'step' ? rule.dies.step : null,
        when: 'after' as const,
        awayMs: rule.awayMs,
        rule,
      })),
    ];
  }

  /** Runs the workflow until it has ended, or nothing more happens. Throws what is a bug. */
  async run(): Promise<WorldEnd> {
    const { test } = this.#options;
    for (const rule of test.event) if (rule.when.kind === 'time') this.time.after(rule.when.ms, () => this.#emit(rule));
    for (const rule of test.stop) if (rule.when.kind === 'time') this.time.after(rule.when.ms, () => this.#stop(rule));
    this.#start();
    for (;;) {
      await settled();
      if (this.#error !== null) {
        await abandonAll(this.#observers);
        throw this.#error.error;
      }
      if (this.#end !== null) break;
      const isDue = this.time.nextAt !== null && this.time.nextAt <= this.time.now;
      if (this.#real > 0 && !isDue) await this.#passRealTime();
      else if (!this.time.next()) this.#end = 'waiting';
    }
    const state = this.#engine?.live.state ?? this.#state;
    this.#closeEngine();
    for (const observer of this.#observers.toReversed()) await observer.close?.();
    for (const number of this.#agents.followed) {
      const rule = test.on[number];
      if (rule !== undefined) this.#used.add(rule);
    }
    if (state === null) throw new Error('the run never began');
    return {
      kind: this.#end,
      state,
      records: this.#records,
      refused: this.#refused,
      used: this.#used,
      prompts: this.#prompts,
      deaths: this.#deaths,
      virtualMs: this.#elapsed(state),
    };
  }

  /** While something real runs, virtual time passes as real time does. */
  async #passRealTime(): Promise<void> {
    const { nextAt, now } = this.time;
    if (this.#realSince?.now !== now) this.#realSince = { at: performance.now(), now };
    const passed = performance.now() - this.#realSince.at;
    const left = nextAt === null ? null : Math.min(Math.max(0, nextAt - now - passed), TIMER_MAX_MS);
    await new Promise<void>((wake) => {
      const timer = left === null ? undefined : setTimeout(() => this.#onReal(), left);
      this.#onReal = () => {
        clearTimeout(timer);
        this.#onReal = () => undefined;
        wake();
      };
    });
    if (this.#real === 0) this.#realSince = null;
    else if (nextAt !== null && nextAt === this.time.nextAt && performance.now() - this.#realSince.at >= nextAt - now)
      this.time.next();
  }

  #elapsed(state: RunState): number {
    const end = this.#end === 'ended' ? (state.endedAt ?? this.time.now) : this.time.now;
    return end - (state.startedAt ?? this.#options.test.now);
  }

  /** A new engine starts the run, or resumes it if it has a record. */
  #start(): void {
    this.#life += 1;
    const life = this.#life;
    const engine = new Engine({
      id: this.#options.request.id,
      journal: this.#journal(),
      clock: this.#clock(),
      session: (run) => this.#session(run),
    });
    this.#engine = { live: engine, handler: this.#handlerOf(engine) };
    engine.run(this.#firstInput()).then(
      (state) => {
        if (life !== this.#life) return;
        this.#state = state;
        this.#end = 'ended';
        this.#onReal();
      },
      (error: unknown) => {
        if (!(error instanceof Killed)) this.#fail(error);
      },
    );
  }

  /** The person who has stopped the run stops it again if the engine died. */
  #firstInput(): Input {
    if (this.#records.length === 0) return { kind: 'run-requested', request: this.#options.request, programHash: HASH };
    if (this.#stopping === null) return { kind: 'run-resumed', retryFailed: false, allowance: null };
    return { kind: 'stop-requested', by: TESTER, force: this.#stopping.force, replaces: true };
  }

  #session(run: LiveRun): RunSession {
    const { drivers, observers } = this.#options.real(run);
    this.#observers = observers;
    const before = [...this.#records];
    return {
      drivers: this.#drivers(drivers),
      open: () => {
        for (const observer of observers) observer.open?.(run, before);
        for (const wake of this.#onEngine.splice(0)) wake();
      },
      observe: (records, state) => {
        for (const observer of observers) observer.observe(records, state);
        this.#observe(records, state);
      },
      close: () => Promise.resolve(),
      catchUp: () => Promise.resolve(),
    };
  }

  #handlerOf(run: LiveRun): MessageHandler {
    let ids = 0;
    return new MessageHandler({
      run,
      clock: this.#clock(),
      proofs: TRUSTING,
      promptText: ({ prompt, expects }) => {
        const text = resolveText(prompt, this.#options.files);
        return text.ok ? ok(promptText(text.value, 'autonomous', expects)) : text;
      },
      hasAccepted: (agent, effect) => this.#agents.hasTaken(agent, effect),
      fileProblem,
      newId: () => `test-${this.#life}-${(ids += 1)}`,
    });
  }

  #closeEngine(): void {
    this.#engine?.handler.close();
    this.#engine = null;
    this.#life += 1;
  }

  /** Kills the engine; the next one resumes the run after a while. */
  #kill(awayMs: number): void {
    this.#deaths += 1;
    this.#state = this.#engine?.live.state ?? null;
    this.#closeEngine();
    const observers = this.#observers;
    this.#observers = [];
    this.#during(abandonAll(observers)).catch((error: unknown) => this.#fail(error));
    this.#processes.detachAll();
    this.time.after(awayMs, () => this.#start());
  }

  #journal(): Journal {
    const life = this.#life;
    return {
      program: this.#options.program,
      programHash: HASH,
      records: [...this.#records],
      append: async (records) => {
        if (life !== this.#life) throw new Killed();
        for (const record of records) {
          const before = this.#deathAt(record, 'before');
          if (before !== null) this.#die(before);
          this.#records.push(record);
          const after = this.#deathAt(record, 'after');
          if (after !== null) this.#die(after);
        }
        if (this.#records.length > this.#options.test.recordsMax) this.#end = 'too-long';
      },
      close: () => Promise.resolve(),
    };
  }

  /** How long the engine that dies at this record is away; null if it does not die. */
  #deathAt({ seq, decisions }: JournalRecord, when: Death['when']): number | null {
    if (this.#deathsLeft.length === 0) return null;
    const ended = endedSteps({ decisions });
    const isNow = (death: PlannedDeath): boolean => {
      if (death.when !== when) return false;
      if (death.seq !== null) return death.seq === seq;
      return death.step !== null && ended.some((step) => this.#namesOf(step).some(segmentMatcher(death.step ?? '')));
    };
    // The additional death and one of the test may be at the same record.
    const additional = this.#deathsLeft.find((death) => death.rule === null && isNow(death));
    const ruled = this.#deathsLeft.find((death) => death.rule !== null && isNow(death));
    for (const death of [additional, ruled])
      if (death !== undefined) this.#deathsLeft.splice(this.#deathsLeft.indexOf(death), 1);
    if (ruled?.rule) this.#used.add(ruled.rule);
    return (ruled ?? additional)?.awayMs ?? null;
  }

  #die(awayMs: number): never {
    this.#kill(awayMs);
    throw new Killed();
  }

  #clock(): Clock {
    const life = this.#life;
    return {
      now: () => this.time.now,
      at: (moment, call) => this.time.after(moment - this.time.now, () => (life === this.#life ? call() : undefined)),
    };
  }

  #drivers(real: Drivers): Drivers {
    const life = this.#life;
    const { program, files, cwd, within } = this.#options;
    const isMachine = Object.keys(program.machines).length > 0;
    const steer = (driver: Driver): Driver => (isMachine ? steered(driver, { program, files, cwd, within }) : driver);
    const answered = this.#settling(this.#processes.driver(), steer, life);
    const really = Object.fromEntries(
      Object.entries(real).map(([kind, make]) => [kind, () => this.#tracked(make(), life)]),
    ) as Drivers;
    const { command: realCommand } = really;
    const command = (): Driver =>
      realCommand === undefined ? answered : routed((effect) => this.#isReal(effect), steer(realCommand()), answered);
    const agents = { spawn: () => answered, attend: () => answered, prompt: () => answered, kill: () => answered };
    return { ...really, ...agents, turn: () => answered, command };
  }

  #isReal(effect: Effect): boolean {
    const { spec, step } = effect;
    if (spec.kind !== 'command' || this.#commands.isOwn(spec)) return false;
    if (this.#commands.ruleFor(effect, spec) !== null) return false;
    return this.#options.test.run.some((pattern) => this.#namesOf(step).some(segmentMatcher(pattern)));
  }

  /** Simulated processes: from their end to the answer that the engine gets, the clock stands still. */
  #settling(inner: Driver, wrap: (driver: Driver) => Driver, life: number): Driver {
    const settling = new Set<string>();
    const outer = wrap(
      intercepted(inner, (effect, answer) => (outcome) => {
        settling.add(effect.id);
        this.#real += 1;
        answer(outcome);
      }),
    );
    return intercepted(outer, (effect, answer) => (outcome) => {
      if (settling.delete(effect.id)) this.#ended();
      if (life === this.#life) answer(outcome);
    });
  }

  /** A driver that really acts: the clock stands still until it answers. */
  #tracked(driver: Driver, life: number): Driver {
    const counted = intercepted(driver, (_effect, answer) => (outcome) => {
      this.#ended();
      if (life === this.#life) answer(outcome);
    });
    const count =
      (how: 'start' | 'find'): Driver['start'] =>
      (...request) => {
        this.#real += 1;
        counted[how](...request);
      };
    return { ...counted, start: count('start'), find: count('find') };
  }

  async #during<T>(happening: Promise<T>): Promise<T> {
    this.#real += 1;
    try {
      return await happening;
    } finally {
      this.#ended();
    }
  }

  #ended(): void {
    this.#real -= 1;
    this.#onReal();
  }

  #begin(process: SimulatedProcess): void {
    const { spec } = process.effect;
    if (spec.kind === 'command') this.#commands.begin(process, spec);
    else this.#agents.begin(process);
  }

  #observe(records: readonly JournalRecord[], state: RunState): void {
    this.#engine?.handler.observe(records, state);
    const { test } = this.#options;
    const ended = test.event.length + test.stop.length === 0 ? [] : records.flatMap(endedSteps);
    const isNow = (when: When): boolean =>
      when.kind === 'step' && ended.some((step) => this.#namesOf(step).some(segmentMatcher(when.step)));
    for (const rule of test.event) if (!this.#used.has(rule) && isNow(rule.when)) this.#emit(rule);
    for (const rule of test.stop) if (!this.#used.has(rule) && isNow(rule.when)) this.#stop(rule);
    for (const gate of state.gates.values()) {
      const asking = `${gate.name} ${gate.asked}`;
      if (this.#noticed.has(asking) || !isOpenGate(state, gate)) continue;
      this.#noticed.add(asking);
      const rule = this.#gateRules.next(gate.name);
      if (rule === undefined) continue;
      this.#used.add(rule);
      const { name, asked } = gate;
      this.time.after(rule.afterMs, () => this.#post(decisionMessage(name, asked, rule, this.time.now)));
    }
  }

  #emit(rule: WorkflowTest['event'][number]): void {
    this.#used.add(rule);
    const { type, agent, data } = rule;
    this.#post({ kind: 'event', id: null, eventType: type, agent, data });
  }

  #stop(rule: WorkflowTest['stop'][number]): void {
    this.#used.add(rule);
    this.#stopping = rule;
    this.#engine?.live.stop(TESTER, rule.force);
  }

  #post(message: Message): void {
    this.#send(message, new AbortController().signal).catch((error: unknown) => this.#fail(error));
  }

  /** Waits for an engine if there is none. Null if the sender goes away. */
  async #send(message: Message, gone: AbortSignal): Promise<Answer | null> {
    for (;;) {
      if (gone.aborted) return null;
      const answer = await this.#ask(message, gone);
      if (answer !== null || gone.aborted) return answer;
      await new Promise<void>((wake) => this.#onEngine.push(wake));
    }
  }

  /** Null if no engine lives, or it dies before it answers. */
  async #ask(message: Message, gone: AbortSignal): Promise<Answer | null> {
    try {
      return (await this.#engine?.handler.answer(message, gone)) ?? null;
    } catch (error) {
      if (error instanceof Killed) return null;
      throw error;
    }
  }

  #simWorld(agent: string, cwd: string, crash: SimWorld['crash']): SimWorld {
    const options = this.#options;
    return {
      now: () => this.time.now,
      wait: (ms, signal) => this.#wait(ms, signal),
      write: (path, text) => {
        const target = resolve(cwd, path);
        mkdirSync(dirname(target), { recursive: true });
        writeFileSync(target, text);
      },
      meow: async (call, step, signal) => {
        const told = await this.#send(messageOfCall(call, agent, step), signal);
        return endOfCall(told, signal);
      },
      shell: (command, step, signal) => this.#during(options.shell(command, { agent, step, cwd }, signal)),
      crash,
    };
  }

  #wait(ms: number | null, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const cancel = ms === null ? (): void => undefined : this.time.after(ms, resolve);
      signal.addEventListener(
        'abort',
        () => {
          cancel();
          resolve();
        },
        { once: true },
      );
    });
  }

  #unscripted(effect: Effect, prompt: string): string | null {
    const state = this.#engine?.live.state;
    const step = state?.steps.get(effect.step);
    const visit = step === undefined ? undefined : state?.lanes.get(effect.lane)?.visitsOf.get(step.definition);
    return unscriptedAnswer(effect, { prompt, visit: visit ?? 1 }, this.#options.program);
  }

  #text(text: FilledText): string {
    const whole = resolveText(text, this.#options.files);
    if (!whole.ok) throw new Error(whole.error);
    return whole.value;
  }

  #fail(error: unknown): void {
    this.#error ??= { error };
    this.#onReal();
  }
}

async function abandonAll(observers: readonly RealObserver[]): Promise<void> {
  for (const observer of observers) await observer.abandon?.();
}

const HASH = 'test';

/** The longest time that a timer of Node can wait. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Who stops the run. */
const TESTER = 'tester';

/** Lets everything happen that needs no time. */
async function settled(): Promise<void> {
  for (let ticks = 0; ticks < 2; ticks += 1) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** Steps that ended with the record. */
export function endedSteps({ decisions }: Pick<JournalRecord, 'decisions'>): readonly string[] {
  return decisions.flatMap((each) => {
    const isEnd = each.kind === 'step-done' || each.kind === 'step-failed' || each.kind === 'step-recovered';
    return isEnd ? [each.step] : [];
  });
}
