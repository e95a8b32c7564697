// Simulated agents inside the process of a test: the same script, rules and turns as those of the programs `meow sim-agent`
// and `meow sim-turn`, in virtual time. Agents outlive the engine, and remember which rules they followed.

import { resolve } from 'node:path';

import { formatDuration } from '../base/time.ts';
import type { StopHow } from '../engine/ports.ts';
import type { Effect, PromptSpec, SpawnSpec, TurnSpec } from '../ir/effect.ts';
import { type Outcome, success } from '../ir/effect.ts';
import { failure, type Failure, type FailureKind } from '../ir/failure.ts';
import type { Usage } from '../ir/output.ts';
import { answeredText, askAgain, isInterrupt, keyName, type PromptMessage, promptText } from '../ir/prompt-text.ts';
import type { FilledText } from '../ir/text.ts';
import { type HeadlessEnd, type HeadlessTurn, workHeadless } from '../sim/headless.ts';
import { type Memory, NOTHING_REMEMBERED, type SimScript, withPrompt } from '../sim/script.ts';
import { followScript, type SimWorld, Turn } from '../sim/turn.ts';
import type { SimulatedProcess } from './processes.ts';

export interface AgentWorld {
  readonly script: SimScript;
  /** Texts with all stored values put in. */
  text(text: FilledText): string;
  /** The default folder of agents. */
  readonly cwd: string;
  /** What an agent in a folder reaches. `crash`: ends that agent. */
  simWorld(agent: string, cwd: string, crash: SimWorld['crash']): SimWorld;
  /** The answer of a turn that no rule is for; null: any. */
  unscripted(effect: Effect, prompt: string): string | null;
  /** Calls after this many milliseconds; returns a function that cancels it. */
  after(ms: number, call: () => void): () => void;
  /** A prompt was given to the step. */
  prompted(step: string, prompt: string): void;
  /** A bug in a simulated agent. */
  failed(error: unknown): void;
}

interface SimulatedAgent {
  readonly name: string;
  readonly cwd: string;
  readonly session: string;
  /** Each prompt is a turn, whose answer finishes it. */
  readonly headless: boolean;
  readonly queue: SimulatedProcess[];
  /** `reported`: the step was reported; the turn goes on to its end. */
  current: { readonly process: SimulatedProcess; readonly interrupt: AbortController; reported: boolean } | null;
}

export class SimulatedAgents {
  readonly #world: AgentWorld;
  readonly #alive = new Map<string, SimulatedAgent>();
  readonly #attending = new Map<string, SimulatedProcess>();
  readonly #memory = new Map<string, Memory>();
  readonly #turns = new Map<SimulatedProcess, AbortController>();
  #sessions = 0;

  constructor(world: AgentWorld) {
    this.#world = world;
  }

  /** Positions of the rules of the script that some agent has followed. */
  get followed(): ReadonlySet<number> {
    return new Set([...this.#memory.values()].flatMap((memory) => Object.keys(memory.followed).map(Number)));
  }

  /** Whether the agent has the prompt of this effect. */
  hasTaken(agent: string, effectId: string): boolean {
    return this.#alive.get(agent)?.current?.process.effect.id === effectId;
  }

  begin(process: SimulatedProcess): void {
    const { spec } = process.effect;
    switch (spec.kind) {
      case 'spawn':
        return this.#spawn(process, spec);
      case 'attend':
        if (this.#alive.has(spec.agent)) this.#attending.set(spec.agent, process);
        else process.lose();
        return;
      case 'prompt':
        return this.#prompt(process, spec);
      case 'kill':
        this.#end(this.#world.text(spec.agent), success());
        return process.finish(success());
      case 'turn':
        return this.#turn(process, spec);
      default:
        return this.#world.failed(new Error(`${process.effect.id} is not about an agent`));
    }
  }

  stop(process: SimulatedProcess, { why }: StopHow): void {
    const { spec } = process.effect;
    const turn = this.#turns.get(process);
    if (turn !== undefined) turn.abort();
    else if (spec.kind === 'prompt' && why === 'timeout') this.#working(process)?.interrupt.abort();
    const queue = spec.kind === 'prompt' ? this.#alive.get(this.#world.text(spec.agent))?.queue : undefined;
    if (queue?.includes(process)) queue.splice(queue.indexOf(process), 1);
    process.finish(failed('stopped', 'the agent was stopped'));
  }

  conclude(process: SimulatedProcess): void {
    const { spec } = process.effect;
    const agent = spec.kind === 'prompt' ? this.#alive.get(this.#world.text(spec.agent)) : undefined;
    if (agent?.headless === true && agent.current?.process === process) agent.current.reported = true;
    else process.finish(success({}, { session: agent?.session ?? null }));
  }

  /** The agent's program ends by itself. */
  crash(name: string, how: number | NodeJS.Signals): void {
    const status = typeof how === 'number' ? `exited with status ${how}` : `was killed by ${how}`;
    this.#end(name, failed('agent-crashed', `agent ${name} ${status}`, typeof how === 'number' ? { code: how } : {}));
  }

  #end(name: string, outcome: Outcome): void {
    const agent = this.#alive.get(name);
    if (agent === undefined) return;
    this.#alive.delete(name);
    agent.current?.interrupt.abort();
    this.#attending.get(name)?.finish(outcome);
    this.#attending.delete(name);
  }

  #spawn(process: SimulatedProcess, spec: SpawnSpec<FilledText>): void {
    const name = this.#world.text(spec.agent);
    if (this.#alive.has(name)) return process.finish(failed('spawn-failed', `${name} exists already`));
    const cwd = resolve(this.#world.cwd, spec.cwd === null ? '' : this.#world.text(spec.cwd));
    const resumed = spec.resumeSession === null || spec.forks ? null : this.#world.text(spec.resumeSession);
    const session = resumed ?? this.#newSession();
    this.#alive.set(name, { name, cwd, session, headless: spec.channel === 'headless', queue: [], current: null });
    const adapter = this.#world.text(spec.adapter);
    const outputs = { agent: name, adapter, workdir: cwd, session_id: session, terminal: null };
    process.finish(success(outputs, { session }));
  }

  #newSession(): string {
    this.#sessions += 1;
    return `session-${this.#sessions}`;
  }

  #prompt(process: SimulatedProcess, spec: PromptSpec<FilledText>): void {
    const name = this.#world.text(spec.agent);
    const agent = this.#alive.get(name);
    if (agent === undefined)
      return process.finish(failed('agent-not-found', `there is no agent ${name} that could be prompted`));
    const prompt = this.#world.text(spec.prompt);
    const key = spec.mode === 'fire-forget' ? keyName(prompt) : null;
    if (key !== null) {
      if (isInterrupt(key)) agent.current?.interrupt.abort();
      return process.finish(success());
    }
    this.#world.prompted(process.effect.step, prompt);
    agent.queue.push(process);
    void process.note({ delivery: agent.current === null ? 'accepted' : 'queued' });
    if (spec.mode === 'fire-forget') process.finish(success());
    this.#next(agent);
  }

  #next(agent: SimulatedAgent): void {
    const process = agent.current === null ? agent.queue.shift() : undefined;
    if (process === undefined) return;
    const interrupt = new AbortController();
    agent.current = { process, interrupt, reported: false };
    const work = agent.headless
      ? this.#workHeadless(agent, process, interrupt.signal)
      : this.#work(agent, process, interrupt.signal);
    work
      .then(() => {
        agent.current = null;
        if (this.#alive.get(agent.name) === agent) this.#next(agent);
      })
      .catch((error: unknown) => this.#world.failed(error));
  }

  async #work(agent: SimulatedAgent, { effect }: SimulatedProcess, interrupt: AbortSignal): Promise<void> {
    const message = messageOf(effect, (text) => this.#world.text(text));
    if (message === null) return;
    const { name, cwd } = agent;
    const { script } = this.#world;
    this.#memory.set(name, withPrompt(this.#remembered(name)));
    const turn = new Turn({
      world: this.#world.simWorld(name, cwd, async (how) => {
        this.crash(name, how);
        return new Promise<never>(() => undefined);
      }),
      agent: name,
      message,
      number: this.#remembered(name).prompts,
      interrupt,
      ...SILENT,
      tellLimit: (text, until) => this.#limit(effect, name, text, until),
    });
    const situation = { agent: name, step: message.step, prompt: message.prompt };
    await followScript(turn, script, situation, {
      memory: () => this.#remembered(name),
      remember: (memory) => void this.#memory.set(name, memory),
    });
  }

  /** Turns until the step is reported, or has an answer and needs no report. */
  async #workHeadless(agent: SimulatedAgent, process: SimulatedProcess, interrupt: AbortSignal): Promise<void> {
    const { effect } = process;
    const message = messageOf(effect, (text) => this.#world.text(text));
    if (message === null) return;
    const { name, cwd, session, current } = agent;
    const missing = message.expects.filter(({ required }) => required).map(({ name: output }) => output);
    const usage = { usd: 0, tokens: 0 };
    for (let ask = 0; ; ask += 1) {
      const text = ask === 0 ? answeredText(message) : askAgain(message, missing);
      const turn = { agent: name, step: message.step, cwd, text, answer: null, session, interrupt };
      const outcome = await this.#oneTurn(turn, () => undefined);
      const cost = outcome.kind === 'success' ? outcome.usage : outcome.failure.usage;
      usage.usd += cost?.usd ?? 0;
      usage.tokens += cost?.tokens ?? 0;
      if (current?.reported === true) return process.finish(success({}, { session, usage }));
      if (!process.isRunning || interrupt.aborted) return;
      if (outcome.kind === 'failure') return process.finish({ ...outcome, failure: { ...outcome.failure, usage } });
      if (missing.length === 0)
        return process.finish(success({ result: outcome.outputs['result'] ?? '' }, { session, usage }));
      if (ask === ASKS_MAX)
        return process.finish(failed('output-missing', `the agent has not reported ${missing.join(', ')}`, { usage }));
    }
  }

  /** One headless turn, however it ends. */
  #oneTurn(
    turn: Pick<HeadlessTurn, 'agent' | 'step' | 'text' | 'answer' | 'interrupt'> & { cwd: string; session: string },
    alive: () => void,
  ): Promise<Outcome> {
    const { agent, session } = turn;
    return new Promise((resolve) => {
      const world = this.#world.simWorld(agent, turn.cwd, async (how) => {
        const code = typeof how === 'number' ? how : null;
        const message = `the agent ${code === null ? `was killed by ${how}` : `exited with status ${code}`}`;
        const kind = code === null ? 'signal' : code === 0 ? 'output-missing' : 'exit-nonzero';
        resolve(failed(kind, message, { code, session }));
        return new Promise<never>(() => undefined);
      });
      workHeadless({
        ...turn,
        world,
        script: this.#world.script,
        memory: this.#remembered(agent),
        remember: (memory) => void this.#memory.set(agent, memory),
        say: alive,
        tool: alive,
        goDeaf: () => undefined,
      })
        .then((end) => resolve(turnOutcome(end, session)))
        .catch((error: unknown) => this.#world.failed(error));
    });
  }

  #limit({ id }: Effect, agent: string, text: string, until: number | null): void {
    const process = this.#alive.get(agent)?.current?.process;
    if (process?.effect.id !== id) return;
    const again = until === null ? { parks: true } : { retryAt: until };
    process.finish(failed('limit-reached', `agent ${agent} has reached a usage limit: ${text}`, again));
  }

  #turn(process: SimulatedProcess, spec: TurnSpec<FilledText>): void {
    const { effect } = process;
    const interrupt = new AbortController();
    this.#turns.set(process, interrupt);
    const text = this.#world.text(spec.prompt);
    const session = effect.session.kind === 'resume' ? effect.session.id : this.#newSession();
    const cwd = resolve(this.#world.cwd, spec.cwd === null ? '' : this.#world.text(spec.cwd));
    this.#world.prompted(effect.step, text);
    void process.note({ session });
    let cancelIdle = (): void => undefined;
    const end = (outcome: Outcome): void => {
      cancelIdle();
      this.#turns.delete(process);
      process.finish(outcome);
    };
    const watchIdle = (): void => {
      const { idleMs } = spec;
      cancelIdle();
      if (idleMs === null || !process.isRunning) return;
      cancelIdle = this.#world.after(idleMs, () => {
        interrupt.abort();
        end(failed('idle', `the agent gave no sign of life for ${formatDuration(idleMs)}`, { session }));
      });
    };
    watchIdle();
    const answer = this.#world.unscripted(effect, text);
    const turn = { agent: effect.lane, step: effect.step, cwd, text, answer, session, interrupt: interrupt.signal };
    this.#oneTurn(turn, watchIdle)
      .then(end)
      .catch((error: unknown) => this.#world.failed(error));
  }

  #working(process: SimulatedProcess): SimulatedAgent['current'] {
    return [...this.#alive.values()].find(({ current }) => current?.process === process)?.current ?? null;
  }

  #remembered(agent: string): Memory {
    return this.#memory.get(agent) ?? NOTHING_REMEMBERED;
  }
}

/** How often an agent that ends a turn without a report is asked again. */
const ASKS_MAX = 3;

function turnOutcome({ ok, text, limit, ...cost }: HeadlessEnd, session: string): Outcome {
  const { usd, tokens, input, cached, output } = cost;
  const parts = input === undefined || cached === undefined || output === undefined ? null : { input, cached, output };
  const usage: Usage = { usd, tokens, ...(parts === null ? {} : { parts }) };
  if (ok) return success({ result: text, session_id: session, denied: [] }, { session, usage });
  if (limit === undefined) return failed('exit-nonzero', `the agent failed: ${text}`, { session, usage, code: 1 });
  const again = limit.until === null ? { parks: true } : { retryAt: limit.until };
  return failed('limit-reached', `the agent has reached a usage limit: ${text}`, { session, usage, ...again });
}

const SILENT = {
  say: () => undefined,
  toolBegun: () => undefined,
  toolEnded: () => undefined,
  spend: () => undefined,
  fail: () => undefined,
  goDeaf: () => undefined,
};

function messageOf({ id, step, spec }: Effect, textOf: (text: FilledText) => string): PromptMessage | null {
  if (spec.kind !== 'prompt') return null;
  const { mode, expects } = spec;
  const prompt = textOf(spec.prompt);
  return { kind: 'prompt', id, step, prompt, text: promptText(prompt, mode, expects), mode, expects };
}

export function failed(kind: FailureKind, message: string, more: Partial<Failure> = {}): Outcome {
  return { kind: 'failure', failure: failure(kind, message, more) };
}
