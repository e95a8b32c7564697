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

import { ok, present } from '../../../base/errors.ts';
import type { Json } from '../../../base/json.ts';
import type { Adapter, HeadlessProfile } from '../../../ir/adapter.ts';
import { type Outcome, success } from '../../../ir/effect.ts';
import type { Failure } from '../../../ir/failure.ts';
import type { Usage } from '../../../ir/output.ts';
import { type AgentMessage, answeredText, askAgain, type PromptMessage } from '../../../ir/prompt-text.ts';
import { timeLimit, within } from '../../../sys/clock.ts';
import { ABSENT, tolerate } from '../../../sys/errors.ts';
import { makeFolder, readRecord, writeJsonFile, writeJsonFileIfWanted } from '../../../sys/files.ts';
import { killProcessTree, type Termination } from '../../../sys/kill-process-tree.ts';
import { findProcess, type ProcessEntry } from '../../../sys/process.ts';
import { maskJson, revealJson, type Secrets } from '../../../sys/secrets.ts';
import { type DriverContext, type EnvVariables, markerOf } from '../../environment.ts';
import { failed } from '../../outputs.ts';
import { deferred, soon } from '../../pending-effect.ts';
import { fileName, folderOfEffect, hasBegun, partOf, unlessRefused } from '../../step-folder.ts';
import { type AgentStart, wasEndedByUs } from '../files.ts';
import { type AgentExit, type AgentHost, type Concluded, type FoundAgent, never, notTaken } from '../host.ts';
import type { HandRequest, Handover, HostedAgent, Readiness, StartRequest, WorkEnd } from '../host.ts';
import { holeValues, type HoleValues, layOut } from '../render-adapter.ts';
import { missingProgram } from '../spawn-request.ts';
import { limitOf, turnOutcome } from './outcome.ts';
import { commandFor, type SessionRegistry, type SessionWish, sumOf } from './sessions.ts';
import { type Overspends, stateOf, Turn, type TurnPlace } from './turn.ts';
import { fields, isBoolean, isText, mapOf, nullable } from '../../../base/shape.ts';

export interface HeadlessHostOptions extends DriverContext {
  /** Must have a headless profile. */
  readonly adapter: Adapter;
  /** The registry of the run. */
  readonly sessions: SessionRegistry;
  /** Resolves when all messages that agents have sent so far are processed. */
  readonly heard: () => Promise<void>;
  readonly overspends?: Overspends;
  /** Time between the stop signal and the kill; 10 seconds except in tests. */
  readonly graceMs?: number;
}

export function headlessHost(options: HeadlessHostOptions): AgentHost {
  const ways = present(options.adapter.headless, `the adapter ${options.adapter.name} has no headless turns`);
  const known = new Map<string, HeadlessAgent>();
  const agentOf = (start: AgentStart): HeadlessAgent => {
    const agent = known.get(start.folder.path) ?? new HeadlessAgent(start, options, ways);
    known.set(start.folder.path, agent);
    return agent;
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

interface Beginning extends Pick<StartRequest, 'resumeSession' | 'forks' | 'args'> {
  /** Differences from the engine's environment; null: unset. */
  readonly environment: Readonly<Record<string, string | null>>;
}

function masked(beginning: Beginning, secrets: Secrets): Json {
  return maskJson(beginning as unknown as Json, secrets);
}

/** A prompt that the agent received. */
type PromptRecord = Pick<PromptMessage, 'id' | 'step'>;

const isBeginning = fields<Beginning>({
  resumeSession: nullable(isText),
  forks: isBoolean,
  args: nullable(isText),
  environment: mapOf(nullable(isText)),
});
const isPromptRecord = fields<PromptRecord>({ id: isText, step: isText });
const isLatestSession = fields<{ readonly session: string }>({ session: isText });

class HeadlessAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal = null;
  readonly #end = deferred<AgentExit>();
  readonly ended = this.#end.promise;
  readonly #options: HeadlessHostOptions;
  readonly #ways: HeadlessProfile;
  readonly #gone = new AbortController();
  readonly #sessionWatchers: ((session: string) => void)[] = [];
  /** Turns in progress known to this engine, by folder. */
  readonly #turns = new Map<string, Turn>();
  /** One at a time, since turns share a session. */
  #running: Turn | null = null;
  /** Null before it is started or found. The file of it is for the next engine. */
  #beginning: Beginning | null = null;

  constructor(start: AgentStart, options: HeadlessHostOptions, ways: HeadlessProfile) {
    this.start = start;
    this.#options = options;
    this.#ways = ways;
  }

  get alive(): boolean {
    return !this.#gone.signal.aborted;
  }

  get session(): string | null {
    return this.#latestSession ?? this.start.session;
  }

  begin({ environment, resumeSession, forks, args }: StartRequest): void {
    const { adapter, sessions } = this.#options;
    const kind = resumeSession === null ? 'fresh' : forks ? 'fork' : 'resume';
    const begun = unlessRefused(() => {
      const command = commandFor(kind, adapter.name, this.#ways);
      if (!command.ok) return command;
      const laidOut = layOut(adapter, this.#holes, this.#options.environment);
      if (!laidOut.ok) return laidOut;
      const { session } = this.start;
      if (session !== null && kind !== 'resume') sessions.choose(session, resumeSession);
      const beginning: Beginning = { resumeSession, forks, args, environment: this.#difference(environment) };
      const { secrets } = this.#options;
      writeJsonFile(this.#file('headless.json'), secrets === undefined ? beginning : masked(beginning, secrets));
      this.#beginning = beginning;
      return ok(null);
    });
    if (begun.ok) return;
    this.#gone.abort();
    this.#end.resolve({ status: null, refusal: begun.error, output: null });
  }

  find(): FoundAgent {
    this.#beginning ??= this.#readBeginning();
    if (this.#beginning === null) return { kind: 'never' };
    if (!this.alive || existsSync(this.#file('headless-over.json')) || wasEndedByUs(this.start)) return gone(0);
    for (const record of this.#prompts()) {
      const place = this.#place(record, this.#lastAsk(record));
      const known = this.#turns.has(place.folder.prefix) ? 'known' : stateOf(place);
      if (known === 'alive') this.#track(place, true).adopt();
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

  watchSession(onSession: (session: string) => void): void {
    this.#sessionWatchers.push(onSession);
    const { session } = this;
    if (session !== null) onSession(session);
  }

  async hand(message: AgentMessage, { note, givenUp }: HandRequest): Promise<Handover> {
    if (message.kind === 'key') return notTaken('it has no keys');
    if (!this.alive) return { kind: 'agent-gone' };
    const place = this.#place(message, 1);
    const isRecorded = readRecord(this.#promptFile(message.id), isPromptRecord) !== null;
    if (isRecorded && (this.#turns.has(place.folder.prefix) || stateOf(place) !== 'never')) return { kind: 'taken' };
    if (this.#running !== null) void note({ delivery: 'queued' });
    if (!(await this.#becomesFree(givenUp))) return this.alive ? notTaken('it was given up') : { kind: 'agent-gone' };
    const recorded = unlessRefused(() => {
      makeFolder(this.#file('turns'));
      const { id, step } = message;
      writeJsonFile(this.#promptFile(id), { id, step });
      return ok(null);
    });
    if (!recorded.ok) return notTaken(recorded.error);
    const turn = this.#begin(place, message, answeredText(message));
    // Nobody waits for the result.
    if (message.mode === 'fire-forget') void turn.ended.then(() => this.#forget(message));
    const begun = await turn.begun;
    return begun.ok ? { kind: 'taken' } : notTaken(begun.error);
  }

  hasBegun(id: string): boolean {
    return this.#startedPrompt(id) !== null;
  }

  async atWork(message: AgentMessage, over: AbortSignal): Promise<WorkEnd> {
    if (message.kind === 'key') return never();
    const end = await this.#workEnd(message, timeLimit({ signal: over }).ended);
    if (end === null) return never();
    this.#forget(message);
    return end;
  }

  /** Null if monitoring was stopped. */
  async #workEnd(message: PromptMessage, stopped: Promise<null>): Promise<WorkEnd | null> {
    const { files, secrets, adapter, heard } = this.#options;
    const isStopped = stopped.then(() => true);
    for (;;) {
      const ask = this.#lastAsk(message);
      const place = this.#place(message, ask);
      const end = await Promise.race([this.#known(place).ended, stopped]);
      if (end === null) return null;
      const limit = end.kind === 'over' ? limitOf(end, adapter) : null;
      if (limit !== null) return { kind: 'limit', limit };
      const outcome = await turnOutcome(end, { files, secrets, folder: place.folder, adapter, idleMs: null });
      const usage = await this.#usage(message);
      if (outcome.kind === 'failure') return { kind: 'over', outcome: this.#failed(outcome.failure, usage) };
      // The report may arrive after the turn in which it was made.
      await heard();
      if ((await within(isStopped, { timeoutMs: 0 })) === true) return null;
      const missing = message.expects.filter(({ required }) => required).map(({ name }) => name);
      const { session } = outcome;
      if (missing.length === 0) {
        const result = { result: outcome.outputs['result'] ?? '' };
        const kept = outcome.kept.filter((name) => name === 'result');
        return { kind: 'over', outcome: success(result, { session, usage, kept }) };
      }
      if (ask > ASKS_MAX) {
        const reason = `the agent has not reported ${missing.join(', ')}, though it was asked again ${ASKS_MAX} times`;
        return { kind: 'over', outcome: failed('output-missing', reason, { session, usage }) };
      }
      if (!(await this.#becomesFree(stopped))) return null;
      this.#begin(this.#place(message, ask + 1), message, askAgain(message, missing));
    }
  }

  /** It has no dialogs. */
  decide(): void {}

  async conclude(id: string, timeoutMs: number): Promise<Concluded> {
    const record = this.#startedPrompt(id);
    if (record === null) return { session: this.session, usage: null };
    const turn = this.#lastTurn(record);
    if ((await within(turn.ended, { timeoutMs })) === null) turn.stop('stopped');
    const usage = await this.#usage(record);
    this.#forget(record);
    return { usage, session: this.session };
  }

  async interrupt(id: string, timeoutMs: number): Promise<void> {
    const record = this.#startedPrompt(id);
    if (record === null) return;
    const turn = this.#lastTurn(record);
    turn.stop('stopped', timeoutMs);
    await turn.ended;
    this.#forget(record);
  }

  /** The agent and its processes are gone. */
  clear(graceMs: number): Termination {
    writeJsonFile(this.#file('headless-over.json'), {});
    this.#gone.abort();
    const running = this.#running;
    running?.stop('stopped', graceMs);
    const rest = this.#prompts()
      .flatMap((record) => this.#places(record))
      .filter(({ folder }) => running === null || this.#turns.get(folder.prefix) !== running)
      .map(({ marker }) => killProcessTree({ marker, leader: null }, { graceMs }));
    const done = async (): Promise<readonly ProcessEntry[]> => {
      const end = await running?.ended;
      const left = end?.kind === 'over' ? end.left.flatMap((pid) => findProcess(pid) ?? []) : [];
      const others = await Promise.all(rest.map((ending) => ending.done));
      this.#end.resolve({ status: 0, refusal: null, output: null });
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

  /** Whether it became free before the sender gave up or the agent was stopped. */
  async #becomesFree(givenUp: Promise<unknown>): Promise<boolean> {
    let hasGivenUp = false;
    void givenUp.then(() => {
      hasGivenUp = true;
    });
    // A sender that gave up earlier has done so by then.
    await soon();
    for (;;) {
      if (!this.alive || hasGivenUp) return false;
      if (this.#running === null) return true;
      await within(Promise.race([this.#running.ended, givenUp]), { signal: this.#gone.signal });
    }
  }

  #begin(place: TurnPlace, { step, expects }: PromptMessage, prompt: string): Turn {
    const beginning = present(this.#beginning, `agent ${this.start.agent} was not started here`);
    const base = Object.entries({ ...this.#options.environment, ...beginning.environment, MEOW_STEP: step });
    const turn = this.#track(place, true);
    turn.begin({
      prompt,
      model: null,
      effort: null,
      args: beginning.args,
      session: this.#wish(beginning),
      workdir: this.start.workdir,
      holes: this.#holes,
      environment: {
        base: Object.fromEntries(base.flatMap(([name, value]) => (value === null ? [] : [[name, value]]))),
        own: {},
      },
      hooked: expects.length > 0,
    });
    return turn;
  }

  #wish({ resumeSession, forks }: Beginning): SessionWish {
    if (this.#ways.sessionId === 'none') return { kind: 'fresh', id: null };
    const latest = this.#latestSession;
    if (latest !== null) return { kind: 'resume', id: latest };
    const { session } = this.start;
    if (resumeSession === null) return { kind: 'fresh', id: session };
    return forks ? { kind: 'fork', id: resumeSession, newId: session } : { kind: 'resume', id: resumeSession };
  }

  /** A turn that has left files. */
  #known(place: TurnPlace): Turn {
    const known = this.#turns.get(place.folder.prefix);
    if (known !== undefined) return known;
    const turn = this.#track(place, false);
    turn.adopt();
    return turn;
  }

  #track(place: TurnPlace, runs: boolean): Turn {
    const turn = new Turn(place, { session: (session) => this.#inSession(session) });
    this.#turns.set(place.folder.prefix, turn);
    if (!runs) return turn;
    this.#running = turn;
    void turn.ended.then(({ kind }) => {
      if (this.#running === turn) this.#running = null;
      // A turn that never began may begin again.
      if (kind === 'refused') this.#turns.delete(place.folder.prefix);
    });
    return turn;
  }

  #inSession(session: string): void {
    if (this.#latestSession === session) return;
    const before = this.session;
    writeJsonFileIfWanted(this.#file('headless-session.json'), { session });
    if (session !== before) for (const onSession of this.#sessionWatchers) onSession(session);
  }

  /** Sum over the finished turns of a prompt. */
  async #usage(record: PromptRecord): Promise<Usage | null> {
    const all: Usage[] = [];
    for (const place of this.#places(record)) {
      const end = await this.#known(place).ended;
      if (end.kind === 'over') all.push(end.usage);
    }
    return sumOf(all);
  }

  /** Its turns have ended and nobody waits for them; later requests find them in their folders. */
  #forget(record: PromptRecord): void {
    for (const { folder } of this.#places(record)) this.#turns.delete(folder.prefix);
  }

  #place(record: PromptRecord, ask: number): TurnPlace {
    const { adapter, sessions, files, overspends, graceMs = GRACE_MS } = this.#options;
    const paid = { step: record.step, adapter: adapter.name, model: null };
    const first = folderOfEffect(files, record);
    return {
      folder: ask === 1 ? first : partOf(first, `ask-${ask}`),
      marker: markerOf(this.#options, ask === 1 ? record.id : `${record.id}.${ask}`),
      adapter,
      sessions,
      idleMs: null,
      overspends: (usage) => overspends?.(paid, usage) ?? false,
      graceMs,
      background: true,
    };
  }

  #places(record: PromptRecord): readonly TurnPlace[] {
    return Array.from({ length: this.#lastAsk(record) }, (_, index) => this.#place(record, index + 1));
  }

  #lastTurn(record: PromptRecord): Turn {
    return this.#known(this.#place(record, this.#lastAsk(record)));
  }

  /** Number of the prompt's last turn. A turn that was only planned does not count. */
  #lastAsk(record: PromptRecord): number {
    let ask = 1;
    while (this.#hasBegun(this.#place(record, ask + 1))) ask += 1;
    return ask;
  }

  #hasBegun({ folder }: TurnPlace): boolean {
    return this.#turns.has(folder.prefix) || hasBegun(folder);
  }

  #prompts(): readonly PromptRecord[] {
    const folder = this.#file('turns');
    const names = tolerate(ABSENT, [], () => readdirSync(folder)).filter((name) => name.endsWith('.json'));
    return names.flatMap((name) => readRecord(join(folder, name), isPromptRecord) ?? []);
  }

  /** Null without such a prompt, or if no program started with it. */
  #startedPrompt(id: string): PromptRecord | null {
    const record = readRecord(this.#promptFile(id), isPromptRecord);
    return record !== null && this.#hasBegun(this.#place(record, 1)) ? record : null;
  }

  #promptFile(id: string): string {
    return join(this.#file('turns'), `${fileName(id)}.json`);
  }

  #readBeginning(): Beginning | null {
    const kept = readRecord(this.#file('headless.json'), isBeginning);
    const { secrets } = this.#options;
    if (kept === null || secrets === undefined) return kept;
    return revealJson(kept as unknown as Json, secrets) as unknown as Beginning;
  }

  #difference(environment: EnvVariables): Beginning['environment'] {
    const base = this.#options.environment;
    const gone = Object.keys(base).filter((name) => !Object.hasOwn(environment, name));
    const other = Object.entries(environment).filter(([name, value]) => base[name] !== value);
    return Object.fromEntries([...gone.map((name) => [name, null] as const), ...other]);
  }

  get #holes(): HoleValues {
    return holeValues(this.#options.adapter, this.#options, this.start);
  }

  /** Session of the latest turn. */
  get #latestSession(): string | null {
    return readRecord(this.#file('headless-session.json'), isLatestSession)?.session ?? null;
  }

  #file(name: string): string {
    return join(this.start.folder.path, name);
  }

  /** A failed turn does not end its agent. */
  #failed(problem: Failure, usage: Usage | null): Outcome {
    const { adapter, environment } = this.#options;
    const exit = { status: problem.code, output: problem.output };
    const absent = problem.kind === 'exit-nonzero' ? missingProgram(adapter, exit, environment) : null;
    if (absent !== null) {
      const message = `the agent could not be started: ${absent}`;
      return { kind: 'failure', failure: { ...problem, kind: 'not-started', message, usage } };
    }
    const kind = problem.kind === 'lost' || problem.kind === 'signal' ? 'agent-crashed' : problem.kind;
    return { kind: 'failure', failure: { ...problem, kind, usage } };
  }
}

function gone(status: number | null): FoundAgent {
  return { kind: 'gone', wasReady: true, exit: { status, refusal: null, output: null } };
}
