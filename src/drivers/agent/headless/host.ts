// Headless agents: each is a session, and every prompt is one turn in that session (turn.ts). Between prompts nothing
// runs. Rules host/1 to host/6.
//
// The folder of a start contains, in addition to agent/files.ts:
//
//   headless.json           how it was started; written when it can take prompts
//   headless-session.json   the session of its latest turn
//   headless-over.json      written when it is stopped, or found to be lost
//   turns/EFFECT.json       a prompt that it received; written before its turn begins
//
// The turn of a prompt uses the folder of its step's attempt; each repeated request for a report has a folder `ask-N`
// in it.

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import { present } from '../../../base/assert.ts';
import type { Adapter, HeadlessProfile } from '../../../ir/adapter.ts';
import { success } from '../../../ir/effect.ts';
import type { Outcome } from '../../../ir/effect.ts';
import { failure } from '../../../ir/failure.ts';
import type { Failure } from '../../../ir/failure.ts';
import { promptText } from '../../../ir/prompt-text.ts';
import { answeredText } from '../../../ir/prompt-text.ts';
import type { AgentMessage, PromptMessage } from '../../../ir/prompt-text.ts';
import type { Usage } from '../../../ir/usage.ts';
import { holeValues, layOut } from '../render-adapter.ts';
import { wasEndedByUs } from '../files.ts';
import type { AgentStart } from '../files.ts';
import type {
  AgentExit,
  AgentHost,
  Concluded,
  FoundAgent,
  HandRequest,
  Handover,
  HostedAgent,
  Readiness,
  StartRequest,
  WorkEnd,
} from '../host.ts';
import { missingProgram } from '../spawn-request.ts';
import { soon } from '../../pending-effect.ts';
import { markerOf } from '../../environment.ts';
import type { DriverContext } from '../../environment.ts';
import { findProcess } from '../../../sys/process-table.ts';
import type { ProcessEntry } from '../../../sys/process-table.ts';
import { killProcessTree } from '../../../sys/kill-process-tree.ts';
import type { Termination } from '../../../sys/kill-process-tree.ts';
import { fileName, hasBegun, stepFolder } from '../../step-folder.ts';
import { makeFolder } from '../../../sys/private-file.ts';
import { readJsonFile, writeJsonFile, writeJsonFileIfWanted } from '../../../sys/json-file.ts';
import { limitOf, turnOutcome } from './outcome.ts';
import type { SessionRegistry } from './session-registry.ts';
import { commandFor } from './session-plan.ts';
import type { SessionWish } from './session-plan.ts';
import { sumOf } from './spending.ts';
import { stateOf, Turn } from './turn.ts';
import type { TurnPlace } from './turn.ts';
import { within } from '../../../sys/with-timeout.ts';

export interface HeadlessHostOptions extends DriverContext {
  /** Must have a headless profile. */
  readonly adapter: Adapter;
  /** The registry of the run. */
  readonly sessions: SessionRegistry;
  /** Resolves when all messages that agents have sent so far are processed. */
  readonly heard: () => Promise<void>;
  /** Time between the stop signal and the kill; 10 seconds except in tests. */
  readonly graceMs?: number;
}

export function headlessHost(options: HeadlessHostOptions): AgentHost {
  const ways = present(options.adapter.headless, `the adapter ${options.adapter.name} has no turns`);
  const around: Surroundings = { ...options, ways };
  const met = new Map<string, HeadlessAgent>();
  const agentOf = (start: AgentStart): HeadlessAgent => {
    const known = met.get(start.folder.path) ?? new HeadlessAgent(start, around);
    met.set(start.folder.path, known);
    return known;
  };
  return {
    start: (request) => {
      const agent = agentOf(request.start);
      agent.begin(request);
      return agent;
    },
    find: (start) => agentOf(start).find(),
    clear: (start, graceMs) => agentOf(start).clear(graceMs),
  };
}

const GRACE_MS = 10_000;
/** How often an agent that stops without a report is asked again. */
const ASKS_MAX = 3;

interface Surroundings extends HeadlessHostOptions {
  readonly ways: HeadlessProfile;
}

interface Beginning {
  readonly resumeSession: string | null;
  readonly forks: boolean;
  readonly args: string | null;
  /** Differences from the engine's environment; null: unset. */
  readonly environment: Readonly<Record<string, string | null>>;
}

/** A prompt that the agent received. */
interface Given {
  readonly id: string;
  readonly step: string;
}

class HeadlessAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal = null;
  readonly ended: Promise<AgentExit>;
  readonly #around: Surroundings;
  #tellEnd: (exit: AgentExit) => void = () => undefined;
  readonly #gone = new AbortController();
  readonly #sessionWatchers: ((session: string) => void)[] = [];
  /** Turns in progress known to this engine, by folder. */
  readonly #turns = new Map<string, Turn>();
  /** One at a time, since turns share a session. */
  #running: Turn | null = null;

  constructor(start: AgentStart, around: Surroundings) {
    this.start = start;
    this.#around = around;
    this.ended = new Promise((resolve) => {
      this.#tellEnd = resolve;
    });
  }

  get alive(): boolean {
    return !this.#gone.signal.aborted;
  }

  get session(): string | null {
    const told = readJsonFile(this.#file('headless-session.json')) as { readonly session: string } | null;
    return told?.session ?? this.start.session;
  }

  begin({ environment, resumeSession, forks, args }: StartRequest): void {
    const { adapter, ways, sessions } = this.#around;
    const kind = resumeSession === null ? 'fresh' : forks ? 'fork' : 'resume';
    if (commandFor({ kind }, ways) === null) {
      const what = kind === 'fork' ? 'fork a session' : 'resume a session';
      this.#refuse(`the adapter ${adapter.name} has no way to ${what} without a terminal`);
      return;
    }
    try {
      const laidOut = layOut(adapter, this.#holes(), this.#around.environment);
      if (!laidOut.ok) {
        this.#refuse(laidOut.error);
        return;
      }
      const { session } = this.start;
      if (session !== null && kind !== 'resume') sessions.choose(session, resumeSession);
      const beginning: Beginning = { resumeSession, forks, args, environment: this.#difference(environment) };
      writeJsonFile(this.#file('headless.json'), beginning);
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
      this.#refuse(error.message);
    }
  }

  find(): FoundAgent {
    if (readJsonFile(this.#file('headless.json')) === null) return { kind: 'never' };
    if (!this.alive || existsSync(this.#file('headless-over.json')) || wasEndedByUs(this.start)) return gone(0);
    for (const given of this.#given()) {
      const place = this.#place(given, this.#lastAsk(given));
      const known = this.#turns.has(place.folder.path) ? 'known' : stateOf(place);
      if (known === 'alive') this.#meet(place, true).adopt();
      if (known !== 'lost') continue;
      // It was lost together with its turn; leftovers of the turn are killed.
      new Turn(place).adopt();
      writeJsonFile(this.#file('headless-over.json'), {});
      return gone(null);
    }
    return { kind: 'alive', agent: this };
  }

  ready(): Promise<Readiness> {
    return Promise.resolve({ kind: this.alive ? 'ready' : 'gone' });
  }

  watchSession(told: (session: string) => void): void {
    this.#sessionWatchers.push(told);
    const { session } = this;
    if (session !== null) told(session);
  }

  async hand(message: AgentMessage, { note, givenUp }: HandRequest): Promise<Handover> {
    if (message.kind === 'key') return notTaken('it has no keys');
    if (!this.alive) return { kind: 'agent-gone' };
    const place = this.#place(message, 1);
    const isGiven = readJsonFile(this.#givenFile(message.id)) !== null;
    if (isGiven && (this.#turns.has(place.folder.path) || stateOf(place) !== 'never')) return { kind: 'taken' };
    if (this.#running !== null) void note({ delivery: 'queued' });
    if (!(await this.#free(givenUp))) return this.alive ? notTaken('it was given up') : { kind: 'agent-gone' };
    try {
      makeFolder(this.#file('turns'));
      const { id, step } = message;
      writeJsonFile(this.#givenFile(id), { id, step });
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
      return notTaken(error.message);
    }
    const turn = this.#begin(place, message, answeredText(message));
    // Nobody waits for the result.
    if (message.mode === 'fire-forget') void turn.ended.then(() => this.#forget(message));
    const begun = await turn.begun;
    return begun.ok ? { kind: 'taken' } : notTaken(begun.error);
  }

  hasBegun(id: string): boolean {
    return this.#begun(id) !== null;
  }

  async atWork(message: AgentMessage, over: AbortSignal): Promise<WorkEnd> {
    if (message.kind === 'key') return never();
    const stopped = new Promise<null>((resolve) => {
      over.addEventListener('abort', () => resolve(null), { once: true });
    });
    const end = await this.#workEnd(message, stopped);
    if (end === null) return never();
    this.#forget(message);
    return end;
  }

  /** Null if monitoring was stopped. */
  async #workEnd(message: PromptMessage, stopped: Promise<null>): Promise<WorkEnd | null> {
    const { files, adapter } = this.#around;
    for (;;) {
      const ask = this.#lastAsk(message);
      const { folder } = this.#place(message, ask);
      const end = await Promise.race([this.#known(message, ask).ended, stopped]);
      if (end === null) return null;
      const limit = end.kind === 'over' ? limitOf(end, adapter) : null;
      if (limit !== null) return { kind: 'limit', limit };
      const outcome = await turnOutcome(end, { files, folder, adapter, idleMs: null });
      const usage = await this.#usage(message);
      if (outcome.kind === 'failure') return { kind: 'over', outcome: failed(outcome.failure, this.#around, usage) };
      // The report may arrive after the turn in which it was made.
      await this.#around.heard();
      if (
        (await within(
          stopped.then(() => true),
          { timeoutMs: 0 },
        )) === true
      )
        return null;
      const missing = message.expects.filter(({ required }) => required).map(({ name }) => name);
      const { session } = outcome;
      if (missing.length === 0) {
        const result = { result: outcome.outputs['result'] ?? '' };
        const kept = outcome.kept.filter((name) => name === 'result');
        return { kind: 'over', outcome: success(result, { session, usage, kept }) };
      }
      if (ask > ASKS_MAX) {
        const told = `the agent has not reported ${missing.join(', ')}, though it was asked again ${ASKS_MAX} times`;
        const problem = failure('output-missing', told, { session, usage });
        return { kind: 'over', outcome: { kind: 'failure', failure: problem } };
      }
      if (!(await this.#free(stopped))) return null;
      this.#begin(this.#place(message, ask + 1), message, askAgain(message, missing));
    }
  }

  /** It has no dialogs. */
  decide(): void {}

  async conclude(id: string, timeoutMs: number): Promise<Concluded> {
    const given = this.#begun(id);
    if (given === null) return { session: this.session, usage: null };
    const turn = this.#known(given, this.#lastAsk(given));
    if ((await within(turn.ended, { timeoutMs })) === null) turn.stop('stopped');
    const usage = await this.#usage(given);
    this.#forget(given);
    return { usage, session: this.session };
  }

  async interrupt(id: string, timeoutMs: number): Promise<void> {
    const given = this.#begun(id);
    if (given === null) return;
    const turn = this.#known(given, this.#lastAsk(given));
    turn.stop('stopped', timeoutMs);
    await turn.ended;
    this.#forget(given);
  }

  /** The agent and its processes are gone. */
  clear(graceMs: number): Termination {
    writeJsonFile(this.#file('headless-over.json'), {});
    this.#gone.abort();
    const running = this.#running;
    running?.stop('stopped', graceMs);
    const rest = this.#given()
      .flatMap((given) => Array.from({ length: this.#lastAsk(given) }, (_, index) => this.#place(given, index + 1)))
      .filter(({ folder }) => running === null || this.#turns.get(folder.path) !== running)
      .map(({ marker }) => killProcessTree({ marker, leader: null }, { graceMs }));
    const done = async (): Promise<readonly ProcessEntry[]> => {
      const end = await running?.ended;
      const left = end?.kind === 'over' ? end.left.flatMap((pid) => findProcess(pid) ?? []) : [];
      const others = await Promise.all(rest.map((ending) => ending.done));
      this.#tellEnd({ status: 0, refusal: null, output: null });
      return [...left, ...others.flat()];
    };
    return {
      atOnce: () => {
        running?.stop('stopped', 0);
        for (const ending of rest) ending.atOnce();
      },
      look: () => {
        for (const ending of rest) ending.look();
      },
      done: done(),
    };
  }

  #refuse(refusal: string): void {
    this.#gone.abort();
    this.#tellEnd({ status: null, refusal, output: null });
  }

  /** Whether it became free before the sender gave up or the agent was stopped. */
  async #free(givenUp: Promise<unknown>): Promise<boolean> {
    let isGivenUp = false;
    void givenUp.then(() => {
      isGivenUp = true;
    });
    // A sender that gave up earlier has done so by then.
    await soon();
    for (;;) {
      if (!this.alive || isGivenUp) return false;
      if (this.#running === null) return true;
      await this.#unlessGone(Promise.race([this.#running.ended, givenUp]));
    }
  }

  async #unlessGone(promise: Promise<unknown>): Promise<void> {
    const { signal } = this.#gone;
    await new Promise<void>((resolve, reject) => {
      const end = (): void => {
        signal.removeEventListener('abort', end);
        resolve();
      };
      signal.addEventListener('abort', end);
      promise.then(end, reject);
    });
  }

  #begin(place: TurnPlace, { step, expects }: PromptMessage, prompt: string): Turn {
    const { environment, args } = this.#beginning();
    const base = Object.entries({ ...this.#around.environment, ...environment, MEOW_STEP: step });
    const turn = this.#meet(place, true);
    turn.begin({
      prompt,
      model: null,
      effort: null,
      args,
      session: this.#wish(),
      again: true,
      workdir: this.start.workdir,
      holes: this.#holes(),
      environment: Object.fromEntries(base.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))),
      hooked: expects.length > 0,
    });
    return turn;
  }

  #wish(): SessionWish {
    const { resumeSession, forks } = this.#beginning();
    if (this.#around.ways.sessionId === 'none') return { kind: 'fresh', id: null };
    const told = readJsonFile(this.#file('headless-session.json')) as { readonly session: string } | null;
    if (told !== null) return { kind: 'resume', id: told.session };
    const { session } = this.start;
    if (resumeSession === null) return { kind: 'fresh', id: session };
    return forks ? { kind: 'fork', id: resumeSession, newId: session } : { kind: 'resume', id: resumeSession };
  }

  /** A turn that has left files. */
  #known(given: Given, ask: number): Turn {
    const place = this.#place(given, ask);
    const known = this.#turns.get(place.folder.path);
    if (known !== undefined) return known;
    const turn = this.#meet(place, false);
    turn.adopt();
    return turn;
  }

  #meet(place: TurnPlace, runs: boolean): Turn {
    const turn = new Turn(place);
    this.#turns.set(place.folder.path, turn);
    turn.watchSession((session) => this.#inSession(session));
    if (!runs) return turn;
    this.#running = turn;
    void turn.ended.then(({ kind }) => {
      if (this.#running === turn) this.#running = null;
      // A turn that never began may begin again.
      if (kind === 'refused') this.#turns.delete(place.folder.path);
    });
    return turn;
  }

  #inSession(session: string): void {
    const told = readJsonFile(this.#file('headless-session.json')) as { readonly session: string } | null;
    if (told?.session === session) return;
    const before = this.session;
    writeJsonFileIfWanted(this.#file('headless-session.json'), { session });
    if (session !== before) for (const tell of this.#sessionWatchers) tell(session);
  }

  /** Sum over the finished turns of a prompt. */
  async #usage(given: Given): Promise<Usage | null> {
    const all: Usage[] = [];
    for (let ask = 1; ask <= this.#lastAsk(given); ask += 1) {
      const end = await this.#known(given, ask).ended;
      if (end.kind === 'over') all.push(end.usage);
    }
    return sumOf(all);
  }

  /** Its turns have ended and nobody waits for them; later requests find them in their folders. */
  #forget(given: Given): void {
    for (let ask = 1; ask <= this.#lastAsk(given); ask += 1) this.#turns.delete(this.#place(given, ask).folder.path);
  }

  #place({ id, step }: Given, ask: number): TurnPlace {
    const { adapter, sessions, graceMs = GRACE_MS } = this.#around;
    const attempt = Number(id.slice(id.lastIndexOf('#') + 1));
    const first = stepFolder(this.#around.files, step, attempt);
    const further = { path: join(first.path, `ask-${ask}`), inRun: join(first.inRun, `ask-${ask}`) };
    return {
      folder: ask === 1 ? first : further,
      marker: markerOf(this.#around, ask === 1 ? id : `${id}.${ask}`),
      adapter,
      sessions,
      idleMs: null,
      graceMs,
      background: true,
    };
  }

  /** Number of the prompt's last turn. A turn that was only planned does not count. */
  #lastAsk(given: Given): number {
    let ask = 1;
    while (this.#hasBegun(this.#place(given, ask + 1))) ask += 1;
    return ask;
  }

  #hasBegun({ folder }: TurnPlace): boolean {
    return this.#turns.has(folder.path) || hasBegun(folder.path);
  }

  #given(): readonly Given[] {
    try {
      const names = readdirSync(this.#file('turns')).filter((name) => name.endsWith('.json'));
      return names.flatMap((name) => (readJsonFile(join(this.#file('turns'), name)) as Given | null) ?? []);
    } catch (error) {
      if (isErrno(error, ...ABSENT)) return [];
      throw error;
    }
  }

  /** Null without such a prompt, or if no program started with it. */
  #begun(id: string): Given | null {
    const given = readJsonFile(this.#givenFile(id)) as Given | null;
    return given !== null && this.#hasBegun(this.#place(given, 1)) ? given : null;
  }

  #givenFile(id: string): string {
    return join(this.#file('turns'), `${fileName(id)}.json`);
  }

  #beginning(): Beginning {
    const kept = readJsonFile(this.#file('headless.json')) as Beginning | null;
    return present(kept, `agent ${this.start.agent} was not started here`);
  }

  #difference(environment: Readonly<Record<string, string>>): Beginning['environment'] {
    const base = this.#around.environment;
    const gone = Object.keys(base).filter((name) => !Object.hasOwn(environment, name));
    const other = Object.entries(environment).filter(([name, value]) => base[name] !== value);
    return Object.fromEntries([...gone.map((name) => [name, null] as const), ...other]);
  }

  #holes(): ReturnType<typeof holeValues> {
    const { agent, workdir, folder } = this.start;
    return holeValues(this.#around.adapter, this.#around, { agent, workdir, folder: folder.path });
  }

  #file(name: string): string {
    return join(this.start.folder.path, name);
  }
}

/** For callers that no longer listen. */
function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** In the same words as the first time, so that it is understood in the same way. */
function askAgain({ mode, expects }: PromptMessage, missing: readonly string[]): string {
  const text = [
    `Your last task is not finished: nothing has been reported for it, and ${missing.join(', ')} must be.`,
    'Finish what is left of the work, if anything, and report.',
  ].join(' ');
  return promptText(text, mode, expects);
}

/** A failed turn does not end its agent. */
function failed(problem: Failure, { adapter, environment }: Surroundings, usage: Usage | null): Outcome {
  const told = { status: problem.code, said: problem.output };
  const absent = problem.kind === 'exit-nonzero' ? missingProgram(adapter, told, environment) : null;
  if (absent !== null) {
    const message = `the agent could not be started: ${absent}`;
    return { kind: 'failure', failure: { ...problem, kind: 'not-started', message, usage } };
  }
  const kind = problem.kind === 'lost' || problem.kind === 'signal' ? 'agent-crashed' : problem.kind;
  return { kind: 'failure', failure: { ...problem, kind, usage } };
}

function gone(status: number | null): FoundAgent {
  return { kind: 'gone', wasReady: true, exit: { status, refusal: null, output: null } };
}

function notTaken(reason: string): Handover {
  return { kind: 'not-taken', delivery: 'not-ready', reason };
}
