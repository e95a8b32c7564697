// An agent in a terminal of tmux: H1–H6 of agent-host.ts. Beside what drivers/agent/files.ts has, there are in the folder of its
// start:
//
//   transcript    everything that its terminal has printed
//   hooks/        what its own hooks have told (hook-log.ts)
//   ready         made when it could first take a prompt: what was in the row of the cursor then
//   deliveries/   how far each message has come (delivery-record.ts)
//   prompts/      those that it was told to read from a file
//   left          which of them nobody waits for any more (abandoned-prompt.ts)

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { Adapter, Injection, TerminalWays } from '../../../ir/adapter.ts';
import { nudgeText } from '../../../ir/prompt-text.ts';
import type { AgentMessage, PromptMessage } from '../../../ir/prompt-text.ts';
import { wasEndedByUs } from '../files.ts';
import type { AgentStart } from '../files.ts';
import type { AgentExit, Concluded, HandRequest, Handover, HostedAgent, Readiness, WorkEnd } from '../host.ts';
import { crash } from '../../../sys/throw-uncaught.ts';
import { livingLeader, watchFolder, whenGone } from '../../session-leader.ts';
import { endProcesses } from '../../kill-process-tree.ts';
import { readExit, readProcess } from '../../step-folder.ts';
import type { Tmux } from '../tmux/tmux.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';
import type { SessionLedger } from '../headless/session-registry.ts';
import { AfterAnswer, afterAnswer, decidedBy, leftAlone } from './post-dialog.ts';
import type { Decided } from './post-dialog.ts';
import { Console, pause } from './screen-watcher.ts';
import { DeliveryRecords } from './delivery-record.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import { deliver } from './deliver-prompt.ts';
import type { DeliveryOutcome } from './delivery-machine.ts';
import { hasLostTerminal } from './tty-lost.ts';
import { HookLog } from './hook-log.ts';
import { deliverKey, rejects } from './key-press.ts';
import { rowAtCursor, wasGiven } from './input-text.ts';
import { isMisread, needsFile, putIntoFile } from './prompt-file.ts';
import { LeftPrompt } from './abandoned-prompt.ts';
import { Minding } from './dialog-handler.ts';
import type { Minder } from './dialog-handler.ts';
import { Opening } from './startup-wait.ts';
import { Rest } from './idle-detector.ts';
import { failuresOn, limitsOn, shownBy } from './screen.ts';
import type { Screen } from './screen.ts';
import { Transcript } from './transcript.ts';
import { watchWork } from './work-monitor.ts';

export interface TerminalAgentOptions {
  readonly tmux: Tmux;
  readonly adapter: Adapter;
  readonly ways: TerminalWays;
  readonly ledger: SessionLedger;
  /** Of its session in tmux. */
  readonly name: string;
  readonly failedMs: number;
}

export class TerminalAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal: string;
  readonly ended: Promise<AgentExit>;
  readonly #options: TerminalAgentOptions;
  #tellEnd: (exit: AgentExit) => void = () => undefined;
  readonly #gone = new AbortController();
  readonly #console: Console;
  readonly #hooks: HookLog | null;
  readonly #minding: Minding;
  readonly #records: DeliveryRecords;
  readonly #left: LeftPrompt;
  readonly #transcript: Transcript;
  readonly #sessionWatchers: ((session: string) => void)[] = [];
  /** Messages are delivered one after the other. */
  #delivering: Promise<unknown> = Promise.resolve();
  #isLost = false;
  #wasFound = false;
  #idleRow: string | null = null;
  #session: string | null;

  constructor(start: AgentStart, options: TerminalAgentOptions) {
    const { path } = start.folder;
    this.start = start;
    this.terminal = options.name;
    this.#options = options;
    this.#session = start.session;
    this.ended = new Promise((resolve) => {
      this.#tellEnd = resolve;
    });
    this.#records = new DeliveryRecords(path);
    this.#left = new LeftPrompt(path);
    this.#transcript = new Transcript(join(path, TRANSCRIPT));
    this.#console = new Console({
      ways: options.ways,
      folder: path,
      pane: () => options.tmux.find(start.marker),
      past: () => ({ wasReady: this.#readyRow() !== null, idleRow: this.#readyRow() }),
      lost: () => this.#lost(),
    });
    const { hooks } = options.adapter;
    this.#hooks = hooks === null ? null : new HookLog(join(path, HOOKS), hooks, () => this.#hookTold());
    this.#hooks?.open();
    this.#minding = new Minding(this.#console, this.#hooks);
  }

  get alive(): boolean {
    return !this.#gone.signal.aborted;
  }

  get session(): string | null {
    return this.#session;
  }

  /** It never was. */
  refuse(reason: string): void {
    this.#end(null, reason);
  }

  /** It was begun in another life. */
  find(): void {
    this.#wasFound = true;
    this.adopt();
  }

  /** Its terminal has been opened, in this life or another: from now on its shell tells what becomes of it. */
  adopt(): void {
    const { folder, marker } = this.start;
    const deadline = performance.now() + BEGIN_MS;
    const look = (): boolean => {
      // Read once: it may be written between two looks at it.
      const record = readProcess(folder);
      const leader = livingLeader(record, marker);
      if (leader !== null) whenGone(leader, folder, (status) => this.#end(status, null));
      else if (record.kind === 'written') this.#end(readExit(folder), null);
      else if (performance.now() < deadline) return false;
      else this.#end(null, `its shell has not written ${join(folder.path, 'status')}`);
      return true;
    };
    if (look()) return;
    const end = (): void => {
      if (!look()) return;
      clearInterval(looks);
      watcher?.close();
    };
    const looks = setInterval(end, BEGIN_LOOK_MS).unref();
    const watcher = watchFolder(folder.path, end);
  }

  watchSession(told: (session: string) => void): void {
    this.#sessionWatchers.push(told);
    if (this.session !== null) told(this.session);
  }

  async ready(timeoutMs: number, note: Note): Promise<Readiness> {
    const { ready, startupMs } = this.#options.ways;
    const limitMs = ready?.deadlineMs ?? timeoutMs;
    using _watch = this.#console.watch();
    const minder: Minder = { note, decided: () => undefined };
    using _minding = this.#minding.join(minder);
    const begun = performance.now();
    const opening = ready === null ? new Opening(begun + startupMs) : null;
    let [spentMs, seenAt, steadySince]: [number, number, number | null] = [0, begun, null];
    while (this.#readyRow() === null) {
      const since = this.#console.changes;
      const screen = await this.#console.look();
      if (!this.alive) return { kind: 'gone' };
      const now = performance.now();
      if (screen === null || screen.dialog === null) spentMs += now - seenAt;
      seenAt = now;
      let pauseMs = LOOK_MS;
      if (screen !== null) {
        await this.#minding.mind(screen, minder);
        steadySince = screen.isReady && !screen.look.inMode ? (steadySince ?? now) : null;
        const leftMs = opening?.leftMs(this.#transcript.size(), now) ?? begun + startupMs - now;
        if (steadySince !== null) pauseMs = Math.max(leftMs, steadySince + STEADY_MS - now);
        if (pauseMs <= 0) this.#keepReady(screen);
      }
      if (spentMs >= limitMs + (ready === null ? startupMs : 0)) return unready(screen);
      await this.#console.changed(since, { ms: Math.min(pauseMs, LOOK_MS) });
    }
    return { kind: 'ready' };
  }

  async hand(message: AgentMessage, request: HandRequest): Promise<Handover> {
    const handover = await this.#handInTurn(message, request);
    const state = handover.kind === 'not-taken' ? this.#records.read(message.id)?.state.kind : undefined;
    if (message.kind === 'prompt' && (state === 'put' || state === 'submitted')) this.#left.leave(message);
    return handover;
  }

  #handInTurn(message: AgentMessage, request: HandRequest): Promise<Handover> {
    const handed = this.#delivering.then(() => this.#hand(message, request));
    this.#delivering = handed.catch(() => undefined);
    return handed;
  }

  couldHave(id: string): boolean {
    const state = this.#records.read(id)?.state.kind ?? 'begun';
    return state !== 'begun' && state !== 'put';
  }

  hasBegun(id: string): boolean {
    return this.#records.read(id)?.state.kind === 'accepted';
  }

  async atWork(message: AgentMessage, over: AbortSignal, note: Note): Promise<WorkEnd> {
    const { adapter, ways, failedMs } = this.#options;
    const record = this.#records.read(message.id);
    const after = new AfterAnswer(ways, this.#hooks);
    const isDecided = record?.decided?.isOver === false && after.canTell;
    if (record?.decided !== undefined) after.begin(record.decided, performance.now());
    if (this.#wasFound && !isDecided) this.#nudge(message, over, note);
    this.#wasFound = false;
    const minder: Minder = {
      note,
      decided: (verdict) => after.begin(this.#keepDecided(message.id, verdict), performance.now()),
    };
    const minding = this.#minding.join(minder);
    let isLeft = true;
    over.addEventListener('abort', () => {
      minding[Symbol.dispose]();
      if (isLeft && message.kind === 'prompt') this.#left.leave(message);
    });
    const end = await watchWork(this.#console, {
      adapter,
      ways,
      hooks: this.#hooks,
      transcript: this.#transcript,
      marker: this.start.marker,
      failedMs,
      over,
      note,
      isAlive: () => this.alive,
      said: message.kind === 'prompt' ? message.text : '',
      record,
      keep: (change) => this.#keep(message.id, change),
      mind: (screen) => this.#minding.mind(screen, minder),
      after,
      goOn: (decided) => this.#goOn(message, decided, over, note),
    });
    isLeft = false;
    return end;
  }

  /** What its stop hook would have said, had there been an engine to say it: one that rests now has not heard it. */
  #nudge(message: AgentMessage, over: AbortSignal, note: Note): void {
    if (message.kind === 'key' || message.mode !== 'autonomous') return;
    const nudge = async (): Promise<void> => {
      // A report may be on its way, and so may the work.
      await pause(FOUND_MS, true);
      if (this.#hooks?.isAtRest !== true) return;
      const again = { ...message, id: `${message.id} ${randomUUID()}`, text: nudgeText(message.text) };
      await this.#handFor(again, over, note);
    };
    nudge().catch(crash);
  }

  /** It was left at rest by what was decided about something that it asked. */
  #goOn(message: AgentMessage, decided: Decided, over: AbortSignal, note: Note): void {
    if (message.kind === 'key' || message.mode !== 'autonomous') return;
    const goOn = async (): Promise<void> => {
      await this.#handFor(afterAnswer(message, decided), over, note);
      const isLast = this.#records.read(message.id)?.decided?.number === decided.number;
      if (isLast) this.#keep(message.id, { decided: { ...decided, isOver: true } });
    };
    goOn().catch(crash);
  }

  async #handFor(message: PromptMessage, over: AbortSignal, note: Note): Promise<void> {
    if (over.aborted || !this.alive) return;
    const givenUp = new Promise((resolve) => {
      over.addEventListener('abort', resolve);
    });
    await this.#handInTurn(message, { timeoutMs: NUDGE_MS, note, givenUp });
  }

  decide(verdict: DialogVerdict): void {
    this.#minding.decide(verdict);
  }

  async conclude(id: string, timeoutMs: number): Promise<Concluded> {
    this.#left.forget(id);
    const rests = await this.#untilRest(timeoutMs);
    if (rests === false) await this.#pressInterrupt();
    // What it has cost is not told.
    return { session: this.session, usage: { usd: null, tokens: null } };
  }

  async interrupt(id: string, timeoutMs: number): Promise<void> {
    this.#left.forget(id);
    if ((await this.#untilRest(0)) === true) return;
    await this.#pressInterrupt();
    // Of whom nobody can tell whether it rests, it is given its time.
    if ((await this.#untilRest(timeoutMs)) === null) await Promise.race([pause(timeoutMs, true), this.ended]);
  }

  async #hand(message: AgentMessage, request: HandRequest): Promise<Handover> {
    if (!this.alive) return { kind: 'agent-gone' };
    try {
      const known = this.#records.read(message.id) ?? this.#takenUp(message);
      const outcome = (known === null ? null : outcomeOf(known)) ?? (await this.#deliver(message, request, known));
      if (outcome.kind === 'taken-for-done') void request.note({ doubt: doubtAbout(this.start.agent) });
      if (outcome.kind === 'queued') return { kind: 'taken', delivery: 'queued' };
      if (outcome.kind !== 'failed') return { kind: 'taken' };
      return outcome.delivery === 'dead' ? { kind: 'agent-gone' } : { ...outcome, kind: 'not-taken' };
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
      return { kind: 'not-taken', delivery: 'not-ready', reason: `it could not be kept: ${error.message}` };
    }
  }

  /** What is known of a prompt that it was left with, where this message says it again: from now on, that is this one's. */
  #takenUp(message: AgentMessage): DeliveryRecord | null {
    const left = message.kind === 'prompt' ? this.#left.of(message) : null;
    const record = left === null ? null : this.#records.read(left);
    if (left === null || record === null) return null;
    // If it rests, it has not been told what its stop hook would have said.
    const taken = { ...record, decided: leftAlone(record.decided ?? null) };
    this.#records.write(message.id, taken);
    this.#left.forget(left);
    return taken;
  }

  async #deliver(
    message: AgentMessage,
    { note, timeoutMs, givenUp }: HandRequest,
    known: DeliveryRecord | null,
  ): Promise<DeliveryOutcome> {
    const minder: Minder = { note, decided: (verdict) => void this.#keepDecided(message.id, verdict) };
    using _watch = this.#console.watch();
    using _minding = this.#minding.join(minder);
    let isGivenUp = false;
    void givenUp.then(() => {
      isGivenUp = true;
      this.#console.wake();
    });
    const record = known ?? (await this.#begin(message.id));
    const request = {
      timeoutMs,
      record,
      keep: (state: DeliveryRecord['state']) => this.#keep(message.id, { state }),
      note,
      isGivenUp: () => isGivenUp,
      isAlive: () => this.alive,
      transcript: this.#transcript,
      mind: (screen: Screen) => this.#minding.mind(screen, minder),
    };
    if (message.kind === 'key') return await deliverKey(this.#console, message.key, request);
    // Shells that are opened beside it are told what it works on.
    await (await this.#console.pane())?.setEnvironment('MEOW_STEP', message.step);
    const isBracketed = await this.#transcript.isBracketed();
    const ways = this.#waysFor(message);
    const text = this.#textFor(message, ways.injection, record, isBracketed);
    const isConfirmed = (): boolean => this.#hasAccepted(text, record);
    return await deliver(this.#console, ways, { ...request, text, isBracketed, isConfirmed });
  }

  async #begin(id: string): Promise<DeliveryRecord> {
    this.#hooks?.refresh();
    const { adapter, ways } = this.#options;
    const text = (await this.#console.look())?.text ?? '';
    const record: DeliveryRecord = {
      state: { kind: 'begun' },
      acceptedBefore: this.#hooks?.accepted.length ?? 0,
      limitsBefore: limitsOn(text, adapter.limits),
      failuresBefore: failuresOn(text, ways.liveness.failed ?? []).map(({ message }) => message),
      limit: null,
      isFile: null,
    };
    this.#records.write(id, record);
    return record;
  }

  /** What is meant as a command of the agent's own: no hook tells of it, and there may be no work to be seen. */
  #waysFor({ mode, text }: PromptMessage): TerminalWays {
    const { ways } = this.#options;
    if (mode !== 'fire-forget' || !isMisread(text, ways.injection)) return ways;
    const injection = { ...ways.injection, misread: [] };
    return { ...ways, injection, acknowledge: { ...ways.acknowledge, byHook: false, busy: [] } };
  }

  /** What is put in for it. How it was first chosen holds for every life. */
  #textFor(message: PromptMessage, injection: Injection, record: DeliveryRecord, isBracketed: boolean): string {
    const isFile = record.isFile ?? needsFile(message.text, injection, isBracketed);
    if (record.isFile === null) this.#keep(message.id, { isFile });
    return isFile ? putIntoFile(this.start.folder.path, message.id, message.text) : message.text;
  }

  #hasAccepted(text: string, { acceptedBefore }: DeliveryRecord): boolean {
    if (!this.#options.ways.acknowledge.byHook || this.#hooks === null) return false;
    this.#hooks.catchUp();
    return this.#hooks.accepted.slice(acceptedBefore).some(({ prompt }) => prompt === null || wasGiven(prompt, text));
  }

  #keep(id: string, change: Partial<DeliveryRecord>): void {
    const before = this.#records.read(id);
    if (before !== null) this.#records.write(id, { ...before, ...change });
    if (change.state?.kind === 'accepted' || change.state?.kind === 'queued') this.#keepUsed();
  }

  /** Before the keys for it are pressed. */
  #keepDecided(id: string, verdict: DialogVerdict): Decided {
    const decided = decidedBy(verdict, this.#records.read(id)?.decided ?? null);
    this.#keep(id, { decided });
    return decided;
  }

  /** Its program keeps a session from its first prompt on. */
  #keepUsed(): void {
    const { session } = this.start;
    if (session !== null) this.#options.ledger.saw(session);
  }

  /** Whether it has come to rest in time; null where that cannot be told. */
  async #untilRest(timeoutMs: number): Promise<boolean | null> {
    const rest = new Rest(this.#options.ways, this.#hooks);
    if (!rest.isTold) return null;
    using _ = this.#console.watch();
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const since = this.#console.changes;
      const screen = await this.#console.look();
      this.#hooks?.catchUp();
      const now = performance.now();
      if (!this.alive || (screen !== null && rest.see(screen, now))) return true;
      if (now >= deadline) return false;
      await this.#console.changed(since, { ms: Math.min(REST_LOOK_MS, deadline - now) });
    }
  }

  async #pressInterrupt(): Promise<void> {
    const { interruptKeys } = this.#options.ways.stop;
    for (let tries = 0; tries < PUTS_MAX && interruptKeys.length > 0 && this.alive; tries += 1) {
      const screen = await this.#console.look();
      if (screen === null) return;
      const asked = this.#minding.askedOn(screen);
      if (asked !== null && !rejects(asked.pattern.reject, ...interruptKeys)) return;
      if ((await this.#console.press(interruptKeys, screen)) !== 'changed') return;
    }
  }

  #hookTold(): void {
    const session = this.#hooks?.session ?? null;
    if (session !== null && session !== this.#session) {
      this.#session = session;
      for (const told of this.#sessionWatchers) told(session);
    }
    if ((this.#hooks?.accepted.length ?? 0) > 0) this.#keepUsed();
    this.#console.wake();
  }

  /** The row of the cursor when it was ready; null where it has not been. */
  #readyRow(): string | null {
    this.#idleRow ??= readJsonFile(join(this.start.folder.path, READY)) as string | null;
    return this.#idleRow;
  }

  #keepReady({ look }: Screen): void {
    writeJsonFile(join(this.start.folder.path, READY), rowAtCursor(look));
  }

  /** Its terminal is not to be found. One that lives on without any is of no use to anybody. */
  #lost(): void {
    if (this.#isLost || !this.alive) return;
    this.#isLost = true;
    const look = async (): Promise<void> => {
      await pause(LOST_MS, true);
      this.#isLost = false;
      const record = readProcess(this.start.folder);
      if (!this.alive || record.kind !== 'written' || !hasLostTerminal(record.pid)) return;
      await endProcesses({ marker: this.start.marker, leader: null }, { graceMs: 0 }).done;
    };
    look().catch(crash);
  }

  #end(status: number | null, refusal: string | null): void {
    const tell = async (): Promise<void> => {
      // A shell that could not record the end of its agent may have left it alive.
      const isRecorded = readExit(this.start.folder) !== null;
      if (!isRecorded && refusal === null && !wasEndedByUs(this.start)) {
        await endProcesses({ marker: this.start.marker, leader: null }, { graceMs: 0 }).done;
      }
      // What it printed last may be on its way to the transcript.
      if (refusal === null) await pause(LAST_WORDS_MS, true);
      this.#gone.abort();
      this.#hooks?.close();
      this.#console.wake();
      this.#tellEnd({ status, refusal, output: this.#transcript.tail() });
    };
    tell().catch(crash);
  }
}

/** In the folder of a start. */
export const TRANSCRIPT = 'transcript';
export const HOOKS = 'hooks';
export const READY = 'ready';

/** What a shell is given to write that it has begun. */
const BEGIN_MS = 10_000;
const BEGIN_LOOK_MS = 250;
/** Between two looks at something that does not change. */
const LOOK_MS = 1_000;
const REST_LOOK_MS = 250;
/** A screen that looks ready for a moment may be about to ask something. */
const STEADY_MS = 60;
/** A screen that changes all the time is not waited for. */
const PUTS_MAX = 20;
const LOST_MS = 500;
const LAST_WORDS_MS = 50;
/** What one that was found again is given to report, or to go on. */
const FOUND_MS = 3_000;
const NUDGE_MS = 30_000;

/** Null: it is still on its way. */
function outcomeOf({ state }: DeliveryRecord): DeliveryOutcome | null {
  switch (state.kind) {
    case 'begun':
    case 'put':
    case 'submitted':
      return null;
    case 'accepted':
    case 'queued':
    case 'failed':
      return state;
  }
}

function doubtAbout(agent: string): string {
  return (
    `the engine ended while agent ${agent} was given its prompt, and nothing tells whether it has it. It was not given ` +
    'again: look with meow attach, and where the agent has nothing to do, tell it there'
  );
}

function unready(screen: Screen | null): Readiness {
  return { kind: 'unready', reason: screen === null ? 'its terminal cannot be seen' : shownBy(screen) };
}
