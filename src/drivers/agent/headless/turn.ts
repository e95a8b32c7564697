// One turn of an agent without a terminal: a program that is given a prompt, works, answers and ends.
//
// U1  A turn begins at most once, however often it is asked for (drivers/recording-shell.ts, W1).
// U2  It needs nothing of the engine: it reads its prompt from a file and writes into files. One that is found again is
//     read from its beginning, and ends as it would have for the engine that began it.
// U3  What it has cost is told the same by every life of the engine that asks.
// U4  One that is stopped is sent the adapter's signal first, since some programs end their tools only then; when it is
//     gone, or its time is up, whatever carries its marker is ended, in whatever session it is.
//
// Its folder is as step-folder.ts has it, and has also `prompt`, `turn.json` (session-plan.ts), `turn-end.json`
// (end-file.ts), and `hooks/` for an adapter with hooks.

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { crash } from '../../../sys/throw-uncaught.ts';
import { present } from '../../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import type { ErrnoError } from '../../../sys/errno.ts';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import type { Adapter, HeadlessProfile } from '../../../ir/adapter.ts';
import type { Usage } from '../../../ir/usage.ts';
import type { HoleValues } from '../render-adapter.ts';
import { readFileEnd } from '../../../sys/read-file-end.ts';
import type { SpawnEvents } from '../../spawner.ts';
import { turnLeader, whenGone } from '../../session-leader.ts';
import { readerNamed } from '../readers/named.ts';
import type { Reader, Reading } from '../readers/reader.ts';
import { killProcessTree } from '../../../sys/kill-process-tree.ts';
import type { Termination } from '../../../sys/kill-process-tree.ts';
import { readExit, readProcess } from '../../step-folder.ts';
import { makeFolder } from '../../../sys/private-file.ts';
import type { StepFolder } from '../../step-folder.ts';
import { NOT_BEGUN } from '../../recording-shell.ts';
import { turnCommand } from './command-line.ts';
import type { TurnWords } from './command-line.ts';
import { ownEnd, readEnd, writeEnd, writtenEnd } from './end-file.ts';
import type { TurnEnding } from './end-file.ts';
import { IdleWatch } from './idle-watch.ts';
import { processActivity } from './process-activity.ts';
import { Output } from './output.ts';
import type { ProgramRequest } from './turn-launcher.ts';
import type { SessionRegistry } from './session-registry.ts';
import { planSession, planText, readPlan, tryPlan } from './session-plan.ts';
import type { SessionPlan, SessionWish } from './session-plan.ts';
import { spentIn, UNKNOWN } from './spending.ts';
import { startProgram } from './turn-launcher.ts';
import type { TurnLauncher } from './turn-launcher.ts';
import { keepExchange, readTranscript, replayed } from './transcript.ts';
import { within } from '../../../sys/with-timeout.ts';

export interface TurnPlace {
  readonly folder: StepFolder;
  /** What all its processes carry. */
  readonly marker: string;
  readonly adapter: Adapter;
  readonly sessions: SessionRegistry;
  /** How long it may be silent; null is no limit. */
  readonly idleMs: number | null;
  /** Between the adapter's signal and the end. */
  readonly graceMs: number;
  /** This process may end meanwhile. */
  readonly background: boolean;
  /** Starts its program; default: without the spawner. */
  readonly launcher?: TurnLauncher;
}

export interface TurnStart extends TurnWords {
  readonly session: SessionWish;
  /** An earlier life was to begin it, and may have planned its session. */
  readonly again: boolean;
  /** Absolute. */
  readonly workdir: string;
  readonly holes: HoleValues;
  /** Complete, but for the marker and the hooks of this turn. */
  readonly environment: Readonly<Record<string, string>>;
  /** The adapter's hooks are heard. They keep an agent going that has not reported; one whose answer ends its work is not to. */
  readonly hooked: boolean;
}

export type TurnEnd =
  /** It never began: the reason is a sentence. */
  { readonly kind: 'refused'; readonly reason: string } | OverTurn;

export interface OverTurn extends TurnEnding {
  readonly kind: 'over';
  readonly reading: Reading;
  readonly session: string | null;
  readonly usage: Usage;
  /** When it ended, in milliseconds since 1970. */
  readonly at: number;
  /** The end of it. */
  readonly stderr: string;
  /** What the agent said last. */
  readonly text: string;
  /** The pids of processes that could not be ended. */
  readonly left: readonly number[];
}

/** What is there of a turn, whoever began it. */
export function stateOf({ folder, marker }: Pick<TurnPlace, 'folder' | 'marker'>): 'never' | 'alive' | 'over' | 'lost' {
  if (readExit(folder) !== null) return 'over';
  const record = readProcess(folder);
  if (turnLeader(record, marker) !== null) return 'alive';
  if (readEnd(folder) !== null) return 'over';
  return record.kind === 'absent' && readProcess(folder).kind === 'absent' ? 'never' : 'lost';
}

export class Turn {
  /** An error is a sentence: why it never began. */
  readonly begun: Promise<Result<null, string>>;
  readonly ended: Promise<TurnEnd>;
  readonly #place: TurnPlace;
  readonly #ways: HeadlessProfile;
  #tellBegun: (result: Result<null, string>) => void = () => undefined;
  #tellEnd: (end: TurnEnd) => void = () => undefined;
  /** Resolves when its leading shell is gone. */
  readonly #gone: Promise<void>;
  #tellGone: () => void = () => undefined;
  #reader: Reader | null = null;
  #output: Output | null = null;
  #idle: IdleWatch | null = null;
  #leader: number | null = null;
  #ready: Result<ReadyTurn, string> | null = null;
  /** Lets the program go that waits. */
  #goAhead: (() => void) | null = null;
  #mayBegin = false;
  #plan: SessionPlan | null = null;
  #session: string | null = null;
  /** The one that its output has told. */
  #seen: string | null = null;
  readonly #sessionWatchers: ((session: string) => void)[] = [];
  /** It is to be stopped, and has not begun. */
  #stopOnBegun: 'stopped' | 'idle' | null = null;
  /** Its end is on the way, by us or by itself. */
  #ending = false;
  readonly #hurry = new AbortController();

  constructor(place: TurnPlace) {
    this.#place = place;
    this.#ways = present(place.adapter.headless, `the adapter ${place.adapter.name} has no turns`);
    this.begun = new Promise((resolve) => {
      this.#tellBegun = resolve;
    });
    this.ended = new Promise((resolve) => {
      this.#tellEnd = resolve;
    });
    this.#gone = new Promise((resolve) => {
      this.#tellGone = resolve;
    });
  }

  /** The session that it takes place in, as soon as that is known. */
  get session(): string | null {
    return this.#session;
  }

  /** Tells of the session now, where it is known, and whenever it becomes known. */
  watchSession(told: (session: string) => void): void {
    this.#sessionWatchers.push(told);
    if (this.#session !== null) told(this.#session);
  }

  /** For a turn of which nothing is there: all that can be done before it may begin. */
  prepare(start: TurnStart): void {
    const ready = this.#makeReady(start);
    this.#ready = ready;
    if (!ready.ok) return;
    const { request } = ready.value;
    this.#goAhead = this.#place.launcher?.prepare(request, this.#events(request)) ?? null;
  }

  beginPrepared(): void {
    this.#go(present(this.#ready, 'a turn that was not prepared'));
  }

  /** For a turn of which nothing is there. */
  begin(start: TurnStart): void {
    this.#go(this.#makeReady(start));
  }

  /** For a turn of which there is something. */
  adopt(): void {
    this.#tellBegun(ok(null));
    this.#follow(readExit(this.#place.folder) === null);
    if (!this.#await()) return;
    // An earlier life was about to end it.
    const why = writtenEnd(this.#place.folder);
    if (why === 'stopped' || why === 'idle') this.stop(why);
  }

  /** Ends it; it is told of by `ended`. What has ended by itself meanwhile has. */
  stop(how: 'stopped' | 'idle', graceMs = this.#place.graceMs): void {
    if (graceMs <= 0) this.#hurry.abort();
    if (this.#reader === null) {
      this.#stopOnBegun = how;
      return;
    }
    if (this.#ending || readExit(this.#place.folder) !== null) return;
    this.#ending = true;
    const end = async (): Promise<void> => {
      const { folder } = this.#place;
      writeEnd(folder, how);
      const killAt = performance.now() + graceMs;
      if (!this.#hurry.signal.aborted && this.#leader !== null) {
        signalGroup(this.#leader, this.#ways.signal);
        await within(this.#gone, { timeoutMs: graceMs, signal: this.#hurry.signal });
      }
      const left = await this.#sweep(Math.max(0, killAt - performance.now()));
      await this.#finish(readEnd(folder) ?? { how, status: null }, left);
    };
    end().catch(crash);
  }

  #makeReady(start: TurnStart): Result<ReadyTurn, string> {
    const { folder, adapter, sessions, background, marker } = this.#place;
    return unlessRefused(() => {
      const request = { folder: folder.path, wish: start.session, again: start.again };
      const planned = planSession(request, adapter, this.#ways, sessions);
      if (!planned.ok) return planned;
      const plan = planned.value;
      this.#plan = plan;
      const path = start.environment['PATH'] ?? '';
      const replays = plan.replays ?? null;
      const said = replays === null ? [] : readTranscript(sessions.transcript(replays));
      const prompt = replays === null ? start.prompt : replayed(said, start.prompt);
      const words = { ...start, prompt };
      const command = turnCommand(folder.path, adapter, this.#ways, plan, words, start.holes, path);
      if (!command.ok) return command;
      const hooks = adapter.hooks !== null && start.hooked ? hooksIn(folder) : '';
      if (hooks !== '') makeFolder(hooks);
      const environment = { base: start.environment, own: { MEOW_HOOKS: hooks, MEOW_RUN: marker } };
      const files = { prompt, plan: planText(plan) };
      return ok({
        plan,
        request: { ...command.value, cwd: start.workdir, environment, folder: folder.path, background, files },
      });
    });
  }

  #go(ready: Result<ReadyTurn, string>): void {
    if (!ready.ok) {
      this.#refuse(ready.error);
      return;
    }
    const { plan, request } = ready.value;
    const { sessions, launcher } = this.#place;
    const tried = unlessRefused(() => {
      tryPlan(plan, sessions);
      return ok(null);
    });
    if (!tried.ok) {
      this.#refuse(tried.error);
      return;
    }
    this.#mayBegin = true;
    if (this.#goAhead !== null) this.#goAhead();
    else if (launcher === undefined) startProgram(request, this.#events(request));
    else launcher.start(request, this.#events(request));
  }

  #events(request: ProgramRequest): SpawnEvents {
    let ownPid = 0;
    const events: SpawnEvents = {
      begun: (pid) => {
        ownPid = pid;
        this.#leader = pid;
        this.#follow(true);
        this.#tellBegun(ok(null));
        if (this.#stopOnBegun !== null) this.stop(this.#stopOnBegun, this.#hurry.signal.aborted ? 0 : undefined);
      },
      // One that was only prepared is started as a whole, and whoever asks for it is told.
      refused: (error) => {
        if (this.#mayBegin) this.#unbegun(reasonOf(error));
        else this.#goAhead = null;
      },
      ended: (status) => this.#leaderEnded(ownPid, status),
      // What has not begun is begun by ourselves: of two shells for one turn, one begins (W1).
      abandoned: () => {
        if (!this.#mayBegin) this.#goAhead = null;
        else if (ownPid === 0) startProgram(request, events);
        else this.#await();
      },
    };
    return events;
  }

  /** From here on what it puts out is read. */
  #follow(isUnderWay: boolean): void {
    const { folder, idleMs, marker, background } = this.#place;
    this.#plan ??= readPlan(folder.path);
    const planned = this.#plan?.session ?? null;
    if (planned !== null) this.#tellSession(planned);
    const named = readerNamed(this.#ways.reader);
    const reader = present(named.ok ? named.value : null, `no reader ${this.#ways.reader}`);
    this.#reader = reader;
    if (idleMs !== null && isUnderWay) {
      this.#idle = new IdleWatch({
        idleMs,
        background,
        signs: () => processActivity(marker),
        toolInFlight: () => reader.toolInFlight,
        idle: () => this.stop('idle'),
      });
    }
    this.#output = new Output({
      path: join(folder.path, 'stdout'),
      reader,
      background,
      grown: () => {
        this.#idle?.sign();
        this.#see(reader);
      },
    });
  }

  #see({ session }: Reader): void {
    if (session === null || session === this.#seen) return;
    this.#seen = session;
    this.#place.sessions.saw(session);
    this.#tellSession(session);
  }

  #tellSession(session: string): void {
    if (session === this.#session) return;
    this.#session = session;
    for (const told of this.#sessionWatchers) told(session);
  }

  /** Of two shells for one turn, one begins (W1): ours may have been the other. */
  #leaderEnded(pid: number, status: number): void {
    if (status !== NOT_BEGUN) {
      this.#over(status);
      return;
    }
    const record = readProcess(this.#place.folder);
    if (record.kind === 'written' && record.pid === pid) this.#over(status);
    else if (record.kind === 'written' || turnLeader(record, this.#place.marker) !== null) this.#await();
    else this.#unbegun(`${join(this.#place.folder.path, 'status')} could not be written`);
  }

  /** It is not our child, or not any more: what it leaves tells of its end. Whether it lives. */
  #await(): boolean {
    const { folder, marker } = this.#place;
    const leader = turnLeader(readProcess(folder), marker);
    if (leader === null) {
      this.#over(null);
      return false;
    }
    this.#leader = leader.pid;
    whenGone(leader, folder, (status) => this.#over(status));
    return true;
  }

  /** Its leading shell is gone. `status`: null where that was not our child. */
  #over(status: number | null): void {
    this.#tellGone();
    if (this.#ending) return;
    this.#ending = true;
    const end = async (): Promise<void> => {
      const { folder, graceMs } = this.#place;
      let known = status === null ? readEnd(folder) : ownEnd(folder);
      // Somebody else may have seen it end, and be about to record that (drivers/spawner.ts).
      if (known === null && status === null) {
        await sleep(RECORD_MS);
        known = readEnd(folder);
      }
      // One that was to be stopped may have left something; and a shell that could not record the end of its program
      // may have left that.
      const left = known?.how === 'ended' ? [] : await this.#sweep(graceMs);
      // How our own child ended we know, though it left no record of it: nobody after us will.
      if (known === null) writeEnd(folder, 'lost');
      await this.#finish(known ?? { how: status === null ? 'lost' : 'ended', status }, left);
    };
    end().catch(crash);
  }

  async #sweep(graceMs: number): Promise<readonly number[]> {
    const { marker } = this.#place;
    const ending: Termination = killProcessTree({ marker, leader: this.#leader }, { graceMs });
    const hasten = (): void => ending.atOnce();
    if (this.#hurry.signal.aborted) hasten();
    this.#hurry.signal.addEventListener('abort', hasten);
    const left = await ending.done;
    this.#hurry.signal.removeEventListener('abort', hasten);
    return left.map(({ pid }) => pid);
  }

  async #finish(ending: TurnEnding, left: readonly number[]): Promise<void> {
    const { folder, sessions } = this.#place;
    this.#idle?.close();
    await this.#output?.end();
    const reader = present(this.#reader, 'a turn that was not followed');
    this.#see(reader);
    const at = endedAt(folder);
    const stderr = lastBytes(join(folder.path, 'stderr'));
    const reading = reader.end({ status: ending.how === 'ended' ? ending.status : null, stderr, at });
    const { usage: told } = reading;
    // A program that tells no session has answered in the one that was chosen for it.
    if (reading.verdict.kind === 'answer' && this.#session !== null) {
      sessions.saw(this.#session);
      const isKept = this.#ways.fork === null && this.#ways.replays === true;
      if (isKept) keepExchange(sessions.transcript(this.#session), folder, reading.verdict.text);
    }
    if (told?.scope === 'session' && this.#session !== null) sessions.told(this.#session, told);
    const usage = this.#plan === null ? UNKNOWN : spentIn(told, this.#plan);
    const { session } = this;
    this.#tellEnd({ kind: 'over', ...ending, reading, session, usage, at, stderr, text: reader.text, left });
  }

  #refuse(reason: string): void {
    this.#ending = true;
    this.#tellBegun(err(reason));
    this.#tellGone();
    this.#tellEnd({ kind: 'refused', reason });
  }

  #unbegun(reason: string): void {
    this.#ending = true;
    this.#idle?.close();
    const end = async (): Promise<void> => {
      await this.#output?.end();
      this.#refuse(reason);
    };
    end().catch(crash);
  }
}

interface ReadyTurn {
  readonly plan: SessionPlan;
  readonly request: ProgramRequest;
}

/** What the world refuses is a sentence. */
function unlessRefused<T>(act: () => Result<T, string>): Result<T, string> {
  try {
    return act();
  } catch (error) {
    if (isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) return err(error.message);
    throw error;
  }
}

const RECORD_MS = 250;

function hooksIn({ path }: StepFolder): string {
  return join(path, 'hooks');
}

function reasonOf(error: ErrnoError): string {
  return error.code === 'E2BIG' ? 'its command and environment are too long for this system' : error.message;
}

function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // Gone meanwhile, or not ours to signal: whoever is left is ended by force.
    if (!isErrno(error, 'ESRCH', 'EPERM')) throw error;
  }
}

const STDERR_BYTES = 64 * 1024;

/** The end of a file; empty where it is absent. */
function lastBytes(path: string): string {
  try {
    // Most are empty.
    return statSync(path).size === 0 ? '' : readFileEnd(path, STDERR_BYTES).trim();
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return '';
    throw error;
  }
}

/** The last thing that its shell does is to write this file. */
function endedAt({ path }: StepFolder): number {
  try {
    return Math.round(statSync(join(path, 'status')).mtimeMs);
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return Date.now();
    throw error;
  }
}
