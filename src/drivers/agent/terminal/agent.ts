// An agent in a tmux terminal: rules host/1 to host/6. In addition to agent/files.ts, the folder of its start contains:
//
//   transcript    everything the terminal printed
//   hooks/        payloads of the agent's own hooks (hook-log.ts)
//   ready         written when the agent could first take a prompt: the cursor row at that moment
//   deliveries/   the delivery state of each message (delivery-record.ts)
//   prompts/      prompts that the agent was told to read from a file
//   left          the abandoned prompt (delivery-record.ts)

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { Adapter, Injection, TerminalProfile } from '../../../ir/adapter.ts';
import { nudgeText } from '../../../ir/prompt-text.ts';
import type { AgentMessage, PromptMessage } from '../../../ir/prompt-text.ts';
import { wasEndedByUs } from '../files.ts';
import type { AgentStart } from '../files.ts';
import type { AgentExit, Concluded, HandRequest, Handover, HostedAgent, Readiness, WorkEnd } from '../host.ts';
import { crash } from '../../../sys/throw-uncaught.ts';
import { livingLeader, whenGone } from '../../session-leader.ts';
import { watchPath } from '../../../sys/watch.ts';
import { killProcessTree } from '../../../sys/kill-process-tree.ts';
import { readExit, readProcess } from '../../step-folder.ts';
import type { Tmux } from '../tmux/tmux.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';
import type { SessionRegistry } from '../headless/session-registry.ts';
import { PostDialog, postDialogMessage, decisionFrom, unwatchedDecision } from './post-dialog.ts';
import type { DialogDecision } from './post-dialog.ts';
import { ScreenWatcher, pause } from './screen-watcher.ts';
import { AbandonedPrompt, DeliveryRecords } from './delivery-record.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import { deliver, deliverKey, rejects } from './deliver-prompt.ts';
import type { DeliveryOutcome } from './delivery-machine.ts';
import { hasLostTerminal } from '../../../sys/process-table.ts';
import { HookLog } from './hook-log.ts';
import { rowAtCursor, containsPrompt } from './input-text.ts';
import { isMisread, needsFile, putIntoFile } from './prompt-file.ts';
import { DialogHandler } from './dialog-handler.ts';
import type { DialogWaiter } from './dialog-handler.ts';
import { IdleDetector, StartupWait } from './idle-detector.ts';
import { errorsOn, limitsOn, describeScreen } from './screen.ts';
import type { Screen } from './screen.ts';
import { Transcript } from './transcript.ts';
import { monitorWork } from './work-monitor.ts';

export interface TerminalAgentOptions {
  readonly tmux: Tmux;
  readonly adapter: Adapter;
  readonly ways: TerminalProfile;
  readonly sessions: SessionRegistry;
  /** Name of the tmux session. */
  readonly name: string;
  readonly failedMs: number;
}

export class TerminalAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal: string;
  readonly ended: Promise<AgentExit>;
  readonly #options: TerminalAgentOptions;
  #resolveEnded: (exit: AgentExit) => void = () => undefined;
  readonly #gone = new AbortController();
  readonly #screen: ScreenWatcher;
  readonly #hooks: HookLog | null;
  readonly #dialogs: DialogHandler;
  readonly #records: DeliveryRecords;
  readonly #abandoned: AbandonedPrompt;
  readonly #transcript: Transcript;
  readonly #sessionWatchers: ((session: string) => void)[] = [];
  /** Serializes deliveries. */
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
      this.#resolveEnded = resolve;
    });
    this.#records = new DeliveryRecords(path);
    this.#abandoned = new AbandonedPrompt(path);
    this.#transcript = new Transcript(join(path, TRANSCRIPT));
    this.#screen = new ScreenWatcher({
      ways: options.ways,
      folder: path,
      pane: () => options.tmux.find(start.marker),
      history: () => ({ wasReady: this.#readyRow() !== null, idleRow: this.#readyRow() }),
      lost: () => this.#onTerminalLost(),
    });
    const { hooks } = options.adapter;
    this.#hooks = hooks === null ? null : new HookLog(join(path, HOOKS), hooks, () => this.#onHook());
    this.#hooks?.open();
    this.#dialogs = new DialogHandler(this.#screen, this.#hooks);
  }

  get alive(): boolean {
    return !this.#gone.signal.aborted;
  }

  get session(): string | null {
    return this.#session;
  }

  /** The agent could not be started. */
  refuse(reason: string): void {
    this.#end(null, reason);
  }

  /** The agent was started by an earlier engine. */
  find(): void {
    this.#wasFound = true;
    this.adopt();
  }

  /** The terminal is open; from now on the recording shell reports the agent's exit. */
  adopt(): void {
    const { folder, marker } = this.start;
    const deadline = performance.now() + BEGIN_MS;
    const check = (): boolean => {
      // Read once: the file may be written between two reads.
      const record = readProcess(folder);
      const leader = livingLeader(record, marker);
      if (leader !== null) whenGone(leader, folder, (status) => this.#end(status, null));
      else if (record.kind === 'written') this.#end(readExit(folder), null);
      else if (performance.now() < deadline) return false;
      else this.#end(null, `its shell has not written ${join(folder.path, 'status')}`);
      return true;
    };
    if (check()) return;
    const end = (): void => {
      if (!check()) return;
      clearInterval(polls);
      watcher?.close();
    };
    const polls = setInterval(end, BEGIN_POLL_MS).unref();
    const watcher = watchPath(folder.path, end, { background: true });
  }

  watchSession(told: (session: string) => void): void {
    this.#sessionWatchers.push(told);
    if (this.session !== null) told(this.session);
  }

  async ready(timeoutMs: number, note: Note): Promise<Readiness> {
    const { ready, startupMs } = this.#options.ways;
    const limitMs = ready?.deadlineMs ?? timeoutMs;
    using _watch = this.#screen.watch();
    const waiter: DialogWaiter = { note, decided: () => undefined };
    using _line = this.#dialogs.join(waiter);
    const begun = performance.now();
    const opening = ready === null ? new StartupWait(begun + startupMs) : null;
    let [spentMs, seenAt, steadySince]: [number, number, number | null] = [0, begun, null];
    while (this.#readyRow() === null) {
      const since = this.#screen.changes;
      const screen = await this.#screen.observe();
      if (!this.alive) return { kind: 'gone' };
      const now = performance.now();
      if (screen === null || screen.dialog === null) spentMs += now - seenAt;
      seenAt = now;
      let pauseMs = POLL_MS;
      if (screen !== null) {
        await this.#dialogs.handle(screen, waiter);
        steadySince = screen.isReady && !screen.capture.inMode ? (steadySince ?? now) : null;
        const leftMs = opening?.leftMs(this.#transcript.size(), now) ?? begun + startupMs - now;
        if (steadySince !== null) pauseMs = Math.max(leftMs, steadySince + STEADY_MS - now);
        if (pauseMs <= 0) this.#saveReady(screen);
      }
      if (spentMs >= limitMs + (ready === null ? startupMs : 0)) return unready(screen);
      await this.#screen.untilChanged(since, { ms: Math.min(pauseMs, POLL_MS) });
    }
    return { kind: 'ready' };
  }

  async hand(message: AgentMessage, request: HandRequest): Promise<Handover> {
    const handover = await this.#handInTurn(message, request);
    const state = handover.kind === 'not-taken' ? this.#records.read(message.id)?.state.kind : undefined;
    if (message.kind === 'prompt' && (state === 'put' || state === 'submitted')) this.#abandoned.abandon(message);
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
    const after = new PostDialog(ways, this.#hooks);
    const isDecided = record?.decided?.isOver === false && after.canDetect;
    if (record?.decided !== undefined) after.begin(record.decided, performance.now());
    if (this.#wasFound && !isDecided) this.#nudge(message, over, note);
    this.#wasFound = false;
    const waiter: DialogWaiter = {
      note,
      decided: (verdict) => after.begin(this.#saveDecision(message.id, verdict), performance.now()),
    };
    const minding = this.#dialogs.join(waiter);
    let isLeft = true;
    over.addEventListener('abort', () => {
      minding[Symbol.dispose]();
      if (isLeft && message.kind === 'prompt') this.#abandoned.abandon(message);
    });
    const end = await monitorWork(this.#screen, {
      adapter,
      ways,
      hooks: this.#hooks,
      transcript: this.#transcript,
      marker: this.start.marker,
      failedMs,
      over,
      note,
      isAlive: () => this.alive,
      prompt: message.kind === 'prompt' ? message.text : '',
      record,
      save: (change) => this.#save(message.id, change),
      handleDialog: (screen) => this.#dialogs.handle(screen, waiter),
      postDialog: after,
      resume: (decided) => this.#continueAfterDialog(message, decided, over, note),
    });
    isLeft = false;
    return end;
  }

  /** Repeats the stop hook's reminder, which an idle agent missed while no engine was running. */
  #nudge(message: AgentMessage, over: AbortSignal, note: Note): void {
    if (message.kind === 'key' || message.mode !== 'autonomous') return;
    const nudge = async (): Promise<void> => {
      // A report or the work itself may still be on its way.
      await pause(FOUND_MS, true);
      if (this.#hooks?.isIdle !== true) return;
      const again = { ...message, id: `${message.id} ${randomUUID()}`, text: nudgeText(message.text) };
      await this.#handFor(again, over, note);
    };
    nudge().catch(crash);
  }

  /** The agent is idle after a dialog was decided: tell it to continue. */
  #continueAfterDialog(message: AgentMessage, decided: DialogDecision, over: AbortSignal, note: Note): void {
    if (message.kind === 'key' || message.mode !== 'autonomous') return;
    const goOn = async (): Promise<void> => {
      await this.#handFor(postDialogMessage(message, decided), over, note);
      const isLast = this.#records.read(message.id)?.decided?.number === decided.number;
      if (isLast) this.#save(message.id, { decided: { ...decided, isOver: true } });
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
    this.#dialogs.decide(verdict);
  }

  async conclude(id: string, timeoutMs: number): Promise<Concluded> {
    this.#abandoned.forget(id);
    const rests = await this.#untilIdle(timeoutMs);
    if (rests === false) await this.#pressInterrupt();
    // Terminals do not report costs.
    return { session: this.session, usage: { usd: null, tokens: null } };
  }

  async interrupt(id: string, timeoutMs: number): Promise<void> {
    this.#abandoned.forget(id);
    if ((await this.#untilIdle(0)) === true) return;
    await this.#pressInterrupt();
    // If idleness cannot be detected, wait the whole time.
    if ((await this.#untilIdle(timeoutMs)) === null) await Promise.race([pause(timeoutMs, true), this.ended]);
  }

  async #hand(message: AgentMessage, request: HandRequest): Promise<Handover> {
    if (!this.alive) return { kind: 'agent-gone' };
    try {
      const known = this.#records.read(message.id) ?? this.#resumeAbandoned(message);
      const outcome = (known === null ? null : outcomeOf(known)) ?? (await this.#deliver(message, request, known));
      if (outcome.kind === 'assumed-delivered') void request.note({ doubt: doubtAbout(this.start.agent) });
      if (outcome.kind === 'queued') return { kind: 'taken', delivery: 'queued' };
      if (outcome.kind !== 'failed') return { kind: 'taken' };
      return outcome.delivery === 'dead' ? { kind: 'agent-gone' } : { ...outcome, kind: 'not-taken' };
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
      return { kind: 'not-taken', delivery: 'not-ready', reason: `it could not be kept: ${error.message}` };
    }
  }

  /** If this message repeats an abandoned prompt, continues with the delivery state of that prompt. */
  #resumeAbandoned(message: AgentMessage): DeliveryRecord | null {
    const left = message.kind === 'prompt' ? this.#abandoned.matching(message) : null;
    const record = left === null ? null : this.#records.read(left);
    if (left === null || record === null) return null;
    // If the agent is idle, it missed the stop hook's reminder.
    const taken = { ...record, decided: unwatchedDecision(record.decided ?? null) };
    this.#records.write(message.id, taken);
    this.#abandoned.forget(left);
    return taken;
  }

  async #deliver(
    message: AgentMessage,
    { note, timeoutMs, givenUp }: HandRequest,
    known: DeliveryRecord | null,
  ): Promise<DeliveryOutcome> {
    const waiter: DialogWaiter = { note, decided: (verdict) => void this.#saveDecision(message.id, verdict) };
    using _watch = this.#screen.watch();
    using _line = this.#dialogs.join(waiter);
    let isGivenUp = false;
    void givenUp.then(() => {
      isGivenUp = true;
      this.#screen.wake();
    });
    const record = known ?? (await this.#begin(message.id));
    const request = {
      timeoutMs,
      record,
      save: (state: DeliveryRecord['state']) => this.#save(message.id, { state }),
      note,
      isGivenUp: () => isGivenUp,
      isAlive: () => this.alive,
      transcript: this.#transcript,
      handleDialog: (screen: Screen) => this.#dialogs.handle(screen, waiter),
    };
    if (message.kind === 'key') return await deliverKey(this.#screen, message.key, request);
    // Shells opened beside the agent see the current step.
    await (await this.#screen.pane())?.setEnvironment('MEOW_STEP', message.step);
    const isBracketed = await this.#transcript.isBracketed();
    const ways = this.#profileFor(message);
    const text = this.#textFor(message, ways.injection, record, isBracketed);
    const isConfirmed = (): boolean => this.#hasAccepted(text, record);
    return await deliver(this.#screen, ways, { ...request, text, isBracketed, isConfirmed });
  }

  async #begin(id: string): Promise<DeliveryRecord> {
    this.#hooks?.refresh();
    const { adapter, ways } = this.#options;
    const text = (await this.#screen.observe())?.text ?? '';
    const record: DeliveryRecord = {
      state: { kind: 'begun' },
      acceptedBefore: this.#hooks?.accepted.length ?? 0,
      limitsBefore: limitsOn(text, adapter.limits),
      failuresBefore: errorsOn(text, ways.liveness.failed ?? []).map(({ message }) => message),
      limit: null,
      isFile: null,
    };
    this.#records.write(id, record);
    return record;
  }

  /** Adjusts the profile for one of the agent's own commands: no hook reports it, and it may show no work. */
  #profileFor({ mode, text }: PromptMessage): TerminalProfile {
    const { ways } = this.#options;
    if (mode !== 'fire-forget' || !isMisread(text, ways.injection)) return ways;
    const injection = { ...ways.injection, misread: [] };
    return { ...ways, injection, acknowledge: { ...ways.acknowledge, byHook: false, busy: [] } };
  }

  /** The text to put into the input. The first choice between text and file holds for every later engine. */
  #textFor(message: PromptMessage, injection: Injection, record: DeliveryRecord, isBracketed: boolean): string {
    const isFile = record.isFile ?? needsFile(message.text, injection, isBracketed);
    if (record.isFile === null) this.#save(message.id, { isFile });
    return isFile ? putIntoFile(this.start.folder.path, message.id, message.text) : message.text;
  }

  #hasAccepted(text: string, { acceptedBefore }: DeliveryRecord): boolean {
    if (!this.#options.ways.acknowledge.byHook || this.#hooks === null) return false;
    this.#hooks.catchUp();
    return this.#hooks.accepted
      .slice(acceptedBefore)
      .some(({ prompt }) => prompt === null || containsPrompt(prompt, text));
  }

  #save(id: string, change: Partial<DeliveryRecord>): void {
    const before = this.#records.read(id);
    if (before !== null) this.#records.write(id, { ...before, ...change });
    if (change.state?.kind === 'accepted' || change.state?.kind === 'queued') this.#saveUsed();
  }

  /** Called before the keys are pressed. */
  #saveDecision(id: string, verdict: DialogVerdict): DialogDecision {
    const decided = decisionFrom(verdict, this.#records.read(id)?.decided ?? null);
    this.#save(id, { decided });
    return decided;
  }

  /** The agent's program stores a session from its first prompt on. */
  #saveUsed(): void {
    const { session } = this.start;
    if (session !== null) this.#options.sessions.saw(session);
  }

  /** Whether the agent became idle in time; null if that cannot be detected. */
  async #untilIdle(timeoutMs: number): Promise<boolean | null> {
    const rest = new IdleDetector(this.#options.ways, this.#hooks);
    if (!rest.canDetect) return null;
    using _ = this.#screen.watch();
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const since = this.#screen.changes;
      const screen = await this.#screen.observe();
      this.#hooks?.catchUp();
      const now = performance.now();
      if (!this.alive || (screen !== null && rest.observe(screen, now))) return true;
      if (now >= deadline) return false;
      await this.#screen.untilChanged(since, { ms: Math.min(IDLE_POLL_MS, deadline - now) });
    }
  }

  async #pressInterrupt(): Promise<void> {
    const { interruptKeys } = this.#options.ways.stop;
    for (let tries = 0; tries < PUTS_MAX && interruptKeys.length > 0 && this.alive; tries += 1) {
      const screen = await this.#screen.observe();
      if (screen === null) return;
      const asked = this.#dialogs.dialogOn(screen);
      if (asked !== null && !rejects(asked.pattern.reject, ...interruptKeys)) return;
      if ((await this.#screen.press(interruptKeys, screen)) !== 'changed') return;
    }
  }

  #onHook(): void {
    const session = this.#hooks?.session ?? null;
    if (session !== null && session !== this.#session) {
      this.#session = session;
      for (const told of this.#sessionWatchers) told(session);
    }
    if ((this.#hooks?.accepted.length ?? 0) > 0) this.#saveUsed();
    this.#screen.wake();
  }

  /** The cursor row when the agent was first ready; null if it never was. */
  #readyRow(): string | null {
    this.#idleRow ??= readJsonFile(join(this.start.folder.path, READY)) as string | null;
    return this.#idleRow;
  }

  #saveReady({ capture }: Screen): void {
    writeJsonFile(join(this.start.folder.path, READY), rowAtCursor(capture));
  }

  /** The terminal is gone. An agent that survives without a terminal is useless and is killed. */
  #onTerminalLost(): void {
    if (this.#isLost || !this.alive) return;
    this.#isLost = true;
    const check = async (): Promise<void> => {
      await pause(LOST_MS, true);
      this.#isLost = false;
      const record = readProcess(this.start.folder);
      if (!this.alive || record.kind !== 'written' || !hasLostTerminal(record.pid)) return;
      await killProcessTree({ marker: this.start.marker, leader: null }, { graceMs: 0 }).done;
    };
    check().catch(crash);
  }

  #end(status: number | null, refusal: string | null): void {
    const tell = async (): Promise<void> => {
      // A shell that could not record the exit may have left the agent alive.
      const isRecorded = readExit(this.start.folder) !== null;
      if (!isRecorded && refusal === null && !wasEndedByUs(this.start)) {
        await killProcessTree({ marker: this.start.marker, leader: null }, { graceMs: 0 }).done;
      }
      // The last output may still be on its way to the transcript.
      if (refusal === null) await pause(LAST_WORDS_MS, true);
      this.#gone.abort();
      this.#hooks?.close();
      this.#screen.wake();
      this.#resolveEnded({ status, refusal, output: this.#transcript.tail() });
    };
    tell().catch(crash);
  }
}

/** Names in the folder of a start. */
export const TRANSCRIPT = 'transcript';
export const HOOKS = 'hooks';
export const READY = 'ready';

/** Time limit for the shell to write its record. */
const BEGIN_MS = 10_000;
const BEGIN_POLL_MS = 250;
/** Poll interval while nothing changes. */
const POLL_MS = 1_000;
const IDLE_POLL_MS = 250;
/** A screen that looks ready for a moment may be about to show a dialog. */
const STEADY_MS = 60;
/** Bounds the attempts on a screen that never stops changing. */
const PUTS_MAX = 20;
const LOST_MS = 500;
const LAST_WORDS_MS = 50;
/** Time for an agent that was found again to report or to continue. */
const FOUND_MS = 3_000;
const NUDGE_MS = 30_000;

/** Null while the delivery is in progress. */
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
    'again: check with meow attach, and where the agent has nothing to do, tell it there'
  );
}

function unready(screen: Screen | null): Readiness {
  return { kind: 'unready', reason: screen === null ? 'its terminal cannot be seen' : describeScreen(screen) };
}
