// An agent in a tmux terminal: rules host/1 to host/6. In addition to agent/files.ts, the folder of its start contains:
//
//   transcript    everything the terminal printed
//   hooks/        payloads of the agent's own hooks (hook-log.ts)
//   ready         written when the agent could first take a prompt: the cursor row at that moment
//   deliveries/   the delivery state of each message (delivery-record.ts)
//   prompts/      prompts that the agent was told to read from a file
//   left          the abandoned prompt (delivery-record.ts)
//   typed         written when a person typed through meow (typed-keys.ts)
//   prepared      exists once the adapter's pre_keys were pressed

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';

import { err, type Result } from '../../../base/errors.ts';
import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { Adapter, Injection, TerminalProfile } from '../../../ir/adapter.ts';
import { type AgentMessage, nudgeText, type PromptMessage } from '../../../ir/prompt-text.ts';
import { crash, isErrno, UNUSABLE } from '../../../sys/errors.ts';
import { readRecord, writeJsonFile } from '../../../sys/files.ts';
import { killProcessTree } from '../../../sys/kill-process-tree.ts';
import { hasLostTerminal } from '../../../sys/process.ts';
import { readProcess } from '../../step-folder.ts';
import { AgentProcess } from '../agent-process.ts';
import type { AgentStart } from '../files.ts';
import { ComputingDetector } from '../headless/idle-watch.ts';
import type { SessionRegistry } from '../headless/sessions.ts';
import type { AgentExit, Concluded, HandRequest, Handover, HostedAgent, Readiness, WorkEnd } from '../host.ts';
import { notTaken } from '../host.ts';
import type { Tmux } from '../tmux/tmux.ts';
import { deliver, deliverKey, type DeliveryRequest, rejects } from './deliver-prompt.ts';
import type { DeliveryOutcome } from './delivery-machine.ts';
import { type DeliveryRecord, DeliveryRecords } from './delivery-record.ts';
import { type DialogHandler, dialogHandler } from './dialog-handler.ts';
import { HookLog } from './hook-log.ts';
import { idleDetector, startupWait } from './idle-detector.ts';
import { containsPrompt, isMisread, needsFile, putIntoFile, rowAtCursor } from './input-text.ts';
import { decisionFrom, type DialogDecision, postDialog, postDialogMessage, unwatchedDecision } from './post-dialog.ts';
import { pause, ScreenWatcher } from './screen-watcher.ts';
import { describeScreen, errorsOn, limitsOn, type Screen } from './screen.ts';
import { SessionCosts } from './session-costs.ts';
import { Transcript } from './transcript.ts';
import { typedAt, typeKeys } from './typed-keys.ts';
import { monitorWork } from './work-monitor.ts';
import { isText } from '../../../base/shape.ts';

export interface TerminalAgentOptions {
  readonly tmux: Tmux;
  readonly adapter: Adapter;
  readonly ways: TerminalProfile;
  readonly sessions: SessionRegistry;
  /** Name of the tmux session. */
  readonly name: string;
}

type HandPrompt = (message: PromptMessage) => Promise<void>;

export class TerminalAgent implements HostedAgent {
  readonly start: AgentStart;
  readonly terminal: string;
  readonly process: AgentProcess;
  readonly ended: Promise<AgentExit>;
  session: string | null;
  readonly #options: TerminalAgentOptions;
  readonly #screen: Readonly<ScreenWatcher>;
  readonly #hooks: Readonly<HookLog> | null;
  readonly #dialogs: DialogHandler;
  readonly #records: DeliveryRecords;
  readonly #costs: SessionCosts;
  readonly #transcript: Transcript;
  readonly #sessionWatchers: ((session: string) => void)[] = [];
  /** Serializes deliveries. */
  #delivering: Promise<unknown> = Promise.resolve();
  #isLost = false;
  #wasFound: boolean;
  #idleRow: string | null = null;

  /** `wasFound`: an earlier engine started it. */
  constructor(start: AgentStart, options: TerminalAgentOptions, wasFound: boolean) {
    const { path } = start.folder;
    this.start = start;
    this.terminal = options.name;
    this.session = start.session;
    this.#options = options;
    this.#wasFound = wasFound;
    this.#records = new DeliveryRecords(path);
    this.#costs = new SessionCosts(path);
    this.#transcript = new Transcript(join(path, TRANSCRIPT));
    // The last output may still be on its way to the transcript.
    const output = { settleMs: options.ways.timing.settleMs, read: () => this.#transcript.tail() };
    this.process = new AgentProcess(start, () => this.#onGone(), output);
    this.ended = this.process.ended;
    this.#screen = new ScreenWatcher({
      ways: options.ways,
      folder: path,
      pane: () => options.tmux.find(start.marker),
      history: () => ({ wasReady: this.#readyRow() !== null, idleRow: this.#readyRow() }),
      lost: () => void this.#onTerminalLost().catch(crash),
    });
    const { hooks } = options.adapter;
    this.#hooks = hooks === null ? null : new HookLog(join(path, HOOKS), hooks, () => this.#onHook());
    this.#hooks?.open();
    this.#dialogs = dialogHandler(this.#screen, this.#hooks, options.ways.timing);
  }

  get alive(): boolean {
    return this.process.alive;
  }

  /** The terminal is open: the recording shell reports the agent's exit. */
  adopt(): void {
    this.process.adopt(this.#options.ways.ready?.deadlineMs ?? BEGIN_MS);
  }

  watchSession(watcher: (session: string) => void): void {
    this.#sessionWatchers.push(watcher);
    if (this.session !== null) watcher(this.session);
  }

  async ready(timeoutMs: number, note: Note): Promise<Readiness> {
    const { ready, startupMs, timing } = this.#options.ways;
    const limitMs = ready?.deadlineMs ?? timeoutMs;
    using _watch = this.#screen.watch();
    using dialogs = this.#dialogs.join(note);
    const begun = performance.now();
    const startup = ready === null ? startupWait(begun + startupMs, timing) : null;
    const computing = new ComputingDetector(this.start.marker);
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
        await dialogs.handle(screen);
        steadySince = screen.isReady && !screen.capture.inMode ? (steadySince ?? now) : null;
        const signs = () => ({ printed: this.#transcript.size(), computes: computing.computes() });
        const leftMs = startup?.(signs(), now) ?? begun + startupMs - now;
        if (steadySince !== null) pauseMs = Math.max(leftMs, steadySince + timing.settleMs - now);
        if (pauseMs <= 0) writeJsonFile(join(this.start.folder.path, READY), rowAtCursor(screen.capture));
      }
      if (spentMs >= limitMs + (ready === null ? startupMs : 0)) {
        return { kind: 'unready', reason: screen === null ? 'its terminal cannot be seen' : describeScreen(screen) };
      }
      await this.#screen.untilChanged(since, Math.min(pauseMs, startup === null ? POLL_MS : STARTUP_POLL_MS));
    }
    return { kind: 'ready' };
  }

  async hand(message: AgentMessage, request: HandRequest): Promise<Handover> {
    if (message.kind === 'prompt') this.#costs.begin(message.id, this.#hooks?.sessionFile ?? null);
    const handover = await this.#handInTurn(message, request);
    const state = handover.kind === 'not-taken' ? this.#records.read(message.id)?.state.kind : undefined;
    if (message.kind === 'prompt' && (state === 'put' || state === 'submitted')) this.#records.abandon(message);
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
    const record = this.#records.read(message.id);
    const after = postDialog(this.#options.ways, this.#hooks);
    const isDecided = record?.decided?.isOver === false && after.canDetect;
    const mustReport = message.kind === 'prompt' && message.mode === 'autonomous';
    const handMore: HandPrompt = async (more) => {
      if (over.aborted || !this.alive) return;
      const givenUp = new Promise((resolve) => over.addEventListener('abort', resolve));
      await this.#handInTurn(more, { timeoutMs: DELIVERY_MS, note, givenUp });
    };
    if (record?.decided !== undefined) after.begin(record.decided, performance.now());
    if (this.#wasFound && !isDecided && mustReport) this.#nudge(message, handMore).catch(crash);
    this.#wasFound = false;
    const dialogs = this.#dialogs.join(note, (verdict) =>
      after.begin(this.#saveDecision(message.id, verdict), performance.now()),
    );
    let isAbandoned = true;
    over.addEventListener('abort', () => {
      dialogs[Symbol.dispose]();
      if (isAbandoned && message.kind === 'prompt') this.#records.abandon(message);
    });
    const end = await monitorWork({
      ...this.#options,
      watcher: this.#screen,
      hooks: this.#hooks,
      transcript: this.#transcript,
      marker: this.start.marker,
      over,
      note,
      isAlive: () => this.alive,
      prompt: message.kind === 'prompt' ? message.text : '',
      record,
      save: (change) => this.#save(message.id, change),
      dialogs,
      postDialog: after,
      resume: (decided) => {
        if (mustReport) this.#continueAfterDialog(message, decided, handMore).catch(crash);
      },
    });
    isAbandoned = false;
    return end;
  }

  /** Repeats the stop hook's reminder, which an idle agent missed while no engine was running. */
  async #nudge(message: PromptMessage, hand: HandPrompt): Promise<void> {
    // A report or the work itself may still be on its way.
    await pause(this.#options.ways.timing.reactMs, true);
    if (this.#hooks?.isIdle !== true) return;
    await hand({ ...message, id: `${message.id} ${randomUUID()}`, text: nudgeText(message.text) });
  }

  /** The agent is idle after a dialog was decided: tell it to continue. */
  async #continueAfterDialog(message: PromptMessage, decided: DialogDecision, hand: HandPrompt): Promise<void> {
    await hand(postDialogMessage(message, decided));
    const isLast = this.#records.read(message.id)?.decided?.number === decided.number;
    if (isLast) this.#save(message.id, { decided: { ...decided, isOver: true } });
  }

  async typeKeys(keys: Uint8Array, by: string): Promise<Result<null, string>> {
    if (!this.alive) return err(`agent ${this.start.agent} has ended`);
    const typed = await typeKeys(await this.#screen.pane(), this.start.folder.path, keys, by);
    this.#screen.wake();
    return typed;
  }

  decide(verdict: DialogVerdict): void {
    this.#dialogs.decide(verdict);
  }

  async conclude(id: string, timeoutMs: number): Promise<Concluded> {
    this.#records.forgetAbandoned(id);
    if ((await this.#untilIdle(timeoutMs)) === false) await this.#pressInterrupt();
    return { session: this.session, usage: this.#costs.usedBy(id, this.#hooks?.sessionFile ?? null) };
  }

  async interrupt(id: string, timeoutMs: number): Promise<void> {
    this.#records.forgetAbandoned(id);
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
      if (outcome.kind === 'assumed-delivered') {
        const doubt =
          `the engine ended while agent ${this.start.agent} was given its prompt, and nothing tells whether it has it. ` +
          'It was not given again: check with meow attach, and where the agent has nothing to do, tell it there';
        void request.note({ doubt });
      }
      if (outcome.kind === 'queued') return { kind: 'taken', delivery: 'queued' };
      if (outcome.kind !== 'failed') return { kind: 'taken' };
      return outcome.delivery === 'dead' ? { kind: 'agent-gone' } : { ...outcome, kind: 'not-taken' };
    } catch (error) {
      if (!isErrno(error, ...UNUSABLE)) throw error;
      return notTaken(`it could not be saved: ${error.message}`);
    }
  }

  /** If this message repeats an abandoned prompt, continues with the delivery state of that prompt. */
  #resumeAbandoned(message: AgentMessage): DeliveryRecord | null {
    const abandoned = message.kind === 'prompt' ? this.#records.abandonedBefore(message) : null;
    const before = abandoned === null ? null : this.#records.read(abandoned);
    if (abandoned === null || before === null) return null;
    // If the agent is idle, it missed the stop hook's reminder.
    const record = { ...before, decided: unwatchedDecision(before.decided ?? null) };
    this.#records.write(message.id, record);
    this.#records.forgetAbandoned(abandoned);
    return record;
  }

  async #deliver(message: AgentMessage, hand: HandRequest, known: DeliveryRecord | null): Promise<DeliveryOutcome> {
    const { note, givenUp } = hand;
    using _watch = this.#screen.watch();
    using dialogs = this.#dialogs.join(note, (verdict) => void this.#saveDecision(message.id, verdict));
    let isGivenUp = false;
    void givenUp.then(() => {
      isGivenUp = true;
      this.#screen.wake();
    });
    const record = known ?? (await this.#begin(message.id));
    const request: DeliveryRequest = {
      watcher: this.#screen,
      timeoutMs: this.#options.ways.injection.deadlineMs ?? hand.timeoutMs,
      record,
      save: (state) => this.#save(message.id, { state }),
      note,
      isGivenUp: () => isGivenUp,
      isAlive: () => this.alive,
      dialogs,
    };
    if (message.kind === 'key') return await deliverKey(message.key, request);
    // Shells opened beside the agent see the current step.
    await (await this.#screen.pane())?.setEnvironment('MEOW_STEP', message.step);
    const isBracketed = await this.#transcript.isBracketed();
    const ways = this.#profileFor(message);
    const text = this.#textFor(message, ways.injection, record, isBracketed);
    const isConfirmed = (): boolean => this.#hasAccepted(text, record);
    return await deliver({
      ...request,
      ways,
      transcript: this.#transcript,
      text,
      typedAt: () => typedAt(this.start.folder.path),
      isConfirmed,
      wasPrepared: this.#records.isPrepared,
      savePrepared: () => this.#records.savePrepared(),
    });
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
    const accepted = this.#hooks.accepted.slice(acceptedBefore);
    return accepted.some(({ prompt }) => prompt === null || containsPrompt(prompt, text));
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
    const detector = idleDetector(this.#options.ways, this.#hooks);
    if (!detector.canDetect) return null;
    using _ = this.#screen.watch();
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const since = this.#screen.changes;
      const screen = await this.#screen.observe();
      this.#hooks?.catchUp();
      const now = performance.now();
      if (!this.alive || (screen !== null && detector.observe(screen, now))) return true;
      if (now >= deadline) return false;
      await this.#screen.untilChanged(since, Math.min(IDLE_POLL_MS, deadline - now));
    }
  }

  async #pressInterrupt(): Promise<void> {
    const { interruptKeys: keys } = this.#options.ways.stop;
    if (keys.length === 0 || !this.alive) return;
    const mayPress = (screen: Screen): boolean => {
      const dialog = this.#dialogs.dialogOn(screen);
      return this.alive && (dialog === null || rejects(dialog.pattern.reject, ...keys));
    };
    await this.#screen.putWhile(mayPress, { kind: 'keys', keys });
  }

  #onHook(): void {
    const session = this.#hooks?.session ?? null;
    if (session !== null && session !== this.session) {
      this.session = session;
      for (const watcher of this.#sessionWatchers) watcher(session);
    }
    if ((this.#hooks?.accepted.length ?? 0) > 0) this.#saveUsed();
    this.#screen.wake();
  }

  /** The cursor row when the agent was first ready; null if it never was. */
  #readyRow(): string | null {
    return (this.#idleRow ??= readRecord(join(this.start.folder.path, READY), isText));
  }

  /** The terminal is gone. An agent that survives without a terminal is useless and is killed. */
  async #onTerminalLost(): Promise<void> {
    if (this.#isLost || !this.alive) return;
    this.#isLost = true;
    await pause(this.#options.ways.timing.pauseMs, true);
    this.#isLost = false;
    const record = readProcess(this.start.folder);
    if (!this.alive || record.kind !== 'written' || !hasLostTerminal(record.pid)) return;
    await killProcessTree({ marker: this.start.marker, leader: null }, { graceMs: 0 }).done;
  }

  #onGone(): void {
    this.#hooks?.close();
    this.#screen.wake();
  }
}

/** Names in the folder of a start. */
export const TRANSCRIPT = 'transcript';
export const HOOKS = 'hooks';
export const READY = 'ready';

/** Limits of adapters without `[ready] deadline`, for the shell's record, and `[prompt_injection] deadline`. */
const BEGIN_MS = 60_000;
const DELIVERY_MS = 30_000;
/** Poll intervals. */
const POLL_MS = 1_000;
const STARTUP_POLL_MS = 100;
const IDLE_POLL_MS = 250;

/** Null while the delivery is in progress. */
function outcomeOf({ state }: DeliveryRecord): DeliveryOutcome | null {
  return state.kind === 'begun' || state.kind === 'put' || state.kind === 'submitted' ? null : state;
}
