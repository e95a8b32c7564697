// One turn of an agent without a terminal: a program that gets a prompt, works, answers and exits.
//
// turn/1  A turn begins at most once, however often it is requested (drivers/recording-shell.ts, shell/1).
// turn/2  It does not need the engine: it reads its prompt from a file and writes to files. A later engine reads its output
//         from the start, and it ends as it would have for the engine that began it.
// turn/3  Every engine that asks gets the same cost.
// turn/4  To stop it, the engine sends the adapter's signal first, since some programs stop their tools only then. When it
//         has exited, or its time is over, all processes with its marker are killed, in any session.
// turn/5  It is stopped when its program reports costs, while it runs, that are above what it may cost.
//
// It has the files of step-folder.ts, and also `prompt` and, if it was stopped or lost, `turn-end.json`. Its `status` contains
// the plan of its session (sessions.ts).

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { err, ok, present, type Result } from '../../../base/errors.ts';
import type { Adapter, HeadlessProfile } from '../../../ir/adapter.ts';
import type { Usage } from '../../../ir/output.ts';
import { within } from '../../../sys/clock.ts';
import { crash, tolerate } from '../../../sys/errors.ts';
import { makeFolder, readRecord, writeJsonFileIfWanted } from '../../../sys/files.ts';
import { killProcessTree } from '../../../sys/kill-process-tree.ts';
import { pauseBeforeStart } from '../../../sys/process.ts';
import type { Secrets } from '../../../sys/secrets.ts';
import { fileEnd } from '../../outputs.ts';
import { deferred } from '../../pending-effect.ts';
import { NOT_BEGUN } from '../../recording-shell.ts';
import { exitOfGone, hasBegunProcess, turnLeader, whenGone } from '../../session-leader.ts';
import type { SpawnEvents } from '../../spawner.ts';
import {
  readExit,
  readExitTime,
  readProcess,
  stepFile,
  type StepFolder,
  unlessRefused,
  wasCutOff,
} from '../../step-folder.ts';
import { readerNamed } from '../readers/named.ts';
import type { RawUsage, Reader, Reading } from '../readers/reader.ts';
import { IdleWatch, processActivity } from './idle-watch.ts';
import { Output } from './output.ts';
import {
  planSession,
  readPlan,
  type SessionPlan,
  type SessionRegistry,
  type SessionWish,
  spentIn,
  tryPlan,
  UNKNOWN,
} from './sessions.ts';
import { keepExchange, readTranscript, replayed } from './transcript.ts';
import { type ProgramRequest, startProgram, turnCommand, type TurnLauncher, type TurnWords } from './turn-launcher.ts';
import { fields, oneOf } from '../../../base/shape.ts';

export interface TurnPlace {
  readonly folder: StepFolder;
  /** The marker of all its processes. */
  readonly marker: string;
  readonly adapter: Adapter;
  readonly sessions: SessionRegistry;
  /** Limit for silence; null: no limit. */
  readonly idleMs: number | null;
  /** Time between the adapter's signal and the kill. */
  readonly graceMs: number;
  /** Whether it has cost more than it may; absent: it may cost anything. */
  readonly overspends?: ((usage: Usage) => boolean) | undefined;
  /** Does not keep this process alive. */
  readonly background: boolean;
  /** None may be in an argument. */
  readonly secrets?: Secrets | undefined;
  /** Starts its program; default: without the spawner. */
  readonly launcher?: TurnLauncher;
}

/** Whether the turn of a step has cost more than it may. */
export type Overspends = (turn: PaidTurn, usage: Usage) => boolean;

export interface PaidTurn {
  readonly step: string;
  readonly adapter: string;
  /** As the step names it. */
  readonly model: string | null;
}

export interface TurnStart extends TurnWords {
  readonly session: SessionWish;
  /** Absolute. */
  readonly workdir: string;
  /** Uses the adapter's hooks, which make an agent continue until it reports; not for turns whose answer ends the work. */
  readonly hooked: boolean;
}

/** Called while the turn runs. */
export interface TurnWatcher {
  /** Its session is known, or has changed. */
  session?(session: string): void;
  /** There are more texts for the user; gets all of them. */
  printed?(printed: readonly string[]): void;
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
  /** Last bytes of stderr. */
  readonly stderr: string;
  /** The agent's last message. */
  readonly text: string;
  /** Texts that its messages show to the user. */
  readonly printed: readonly string[];
  /** Pids of processes that could not be killed. */
  readonly left: readonly number[];
}

/** The state of a turn, whichever engine began it. */
export function stateOf({ folder, marker }: Pick<TurnPlace, 'folder' | 'marker'>): 'never' | 'alive' | 'over' | 'lost' {
  const record = readProcess(folder);
  if (turnLeader(record, marker) !== null) return 'alive';
  if (readEnd(folder) !== null) return 'over';
  return record.kind === 'absent' && readProcess(folder).kind === 'absent' ? 'never' : 'lost';
}

export class Turn {
  readonly #begun = deferred<Result<null, string>>();
  readonly #end = deferred<TurnEnd>();
  readonly #gone = deferred<void>();
  /** An error is a sentence: why it never began. */
  readonly begun = this.#begun.promise;
  readonly ended = this.#end.promise;
  readonly #place: TurnPlace;
  readonly #watcher: TurnWatcher;
  readonly #ways: HeadlessProfile;
  #reader: Reader | null = null;
  #output: Output | null = null;
  #idle: IdleWatch | null = null;
  #leader: number | null = null;
  #plan: SessionPlan | null = null;
  #session: string | null = null;
  #printedCount = 0;
  #reported: RawUsage | null = null;
  /** Stop requested before it began. */
  #stopOnBegun: StopReason | null = null;
  /** It is ending, by itself or because we stop it. */
  #ending = false;
  readonly #hurry = new AbortController();

  constructor(place: TurnPlace, watcher: TurnWatcher = {}) {
    this.#place = place;
    this.#watcher = watcher;
    this.#ways = present(place.adapter.headless, `the adapter ${place.adapter.name} has no headless turns`);
  }

  /** For a turn in state `never`. */
  begin(start: TurnStart): void {
    const { launcher } = this.#place;
    const ready = unlessRefused(() => this.#makeReady(start));
    if (!ready.ok) return this.#refuse(ready.error);
    const events = this.#events(ready.value);
    if (launcher === undefined) startProgram(ready.value, events);
    else launcher.start(ready.value, events);
  }

  /** For a turn in any other state. */
  adopt(): void {
    this.#begun.resolve(ok(null));
    const { folder, marker } = this.#place;
    this.#follow(exitOfGone(folder, marker, turnLeader) === null);
    if (!this.#await()) return;
    // An earlier engine was stopping it.
    const why = writtenEnd(folder);
    if (why !== null && why !== 'lost') this.stop(why);
  }

  /** Stops it; `ended` resolves. Has no effect if it has ended. */
  stop(how: StopReason, graceMs = this.#place.graceMs): void {
    if (graceMs <= 0) this.#hurry.abort();
    if (this.#reader === null) {
      this.#stopOnBegun = how;
      return;
    }
    const { folder, marker } = this.#place;
    if (this.#ending || exitOfGone(folder, marker, turnLeader) !== null) return;
    this.#ending = true;
    const end = async (): Promise<void> => {
      writeEnd(folder, how);
      const killAt = performance.now() + graceMs;
      const leader = this.#leader;
      if (!this.#hurry.signal.aborted && leader !== null) {
        // Gone, or not ours to signal: what is left is killed later.
        tolerate(['ESRCH', 'EPERM'], undefined, () => process.kill(-leader, this.#ways.signal));
        await within(this.#gone.promise, { timeoutMs: graceMs, signal: this.#hurry.signal });
      }
      const left = await this.#sweep(Math.max(0, killAt - performance.now()));
      await this.#finish(readEnd(folder) ?? { how, status: null }, left);
    };
    end().catch(crash);
  }

  #makeReady(start: TurnStart): Result<ProgramRequest, string> {
    const { folder, adapter, sessions, background, marker } = this.#place;
    const planned = planSession(folder, start.session, adapter, this.#ways, sessions);
    if (!planned.ok) return planned;
    const plan = planned.value;
    this.#plan = plan;
    const exchanges = plan.replays === undefined ? [] : readTranscript(sessions.transcript(plan.replays));
    const command = turnCommand(folder, adapter, plan, {
      ...start,
      prompt: replayed(exchanges, start.prompt),
      secrets: this.#place.secrets,
    });
    if (!command.ok) return command;
    const hooks = adapter.hooks !== null && start.hooked ? join(start.holes.folder ?? '', 'hooks') : '';
    if (hooks !== '' && !existsSync(hooks)) makeFolder(hooks);
    tryPlan(plan, sessions);
    const { base, own } = start.environment;
    const environment = { base, own: { ...own, MEOW_HOOKS: hooks, MEOW_RUN: marker } };
    return ok({ ...command.value, cwd: start.workdir, prefix: folder.prefix, environment, background });
  }

  #events(request: ProgramRequest): SpawnEvents {
    let ownPid = 0;
    let refusals = 0;
    const events: SpawnEvents = {
      begun: (pid) => {
        ownPid = pid;
        this.#leader = pid;
        this.#follow(true);
        this.#begun.resolve(ok(null));
        if (this.#stopOnBegun !== null) this.stop(this.#stopOnBegun, this.#hurry.signal.aborted ? 0 : undefined);
      },
      refused: (error) => {
        refusals += 1;
        const pauseMs = this.#stopOnBegun === null ? pauseBeforeStart(error, refusals) : null;
        if (pauseMs === null) this.#refuse(error.code === 'E2BIG' ? TOO_LONG : error.message);
        else setTimeout(() => startProgram(request, events), pauseMs);
      },
      ended: (status) => this.#leaderEnded(ownPid, status),
      // If it has not begun, start it directly: of two processes for one turn, one begins (shell/1).
      abandoned: () => {
        if (ownPid === 0) startProgram(request, events);
        else this.#await();
      },
    };
    return events;
  }

  /** Starts reading its output. */
  #follow(isUnderWay: boolean): void {
    const { folder, idleMs, marker, background } = this.#place;
    this.#plan ??= readPlan(folder);
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
      path: stepFile(folder, 'stdout'),
      reader,
      background,
      grown: () => {
        this.#idle?.sign();
        this.#see(reader);
      },
    });
  }

  #see({ session, printed, usage }: Reader): void {
    if (printed.length > this.#printedCount) {
      this.#printedCount = printed.length;
      this.#watcher.printed?.(printed);
    }
    if (usage !== null && usage !== this.#reported && this.#plan !== null) {
      this.#reported = usage;
      if (this.#place.overspends?.(spentIn(usage, this.#plan)) === true) this.stop('overspent');
    }
    if (session === null) return;
    this.#place.sessions.saw(session);
    this.#tellSession(session);
  }

  #tellSession(session: string): void {
    if (session === this.#session) return;
    this.#session = session;
    this.#watcher.session?.(session);
  }

  /** If two processes were started for one turn, only one runs (shell/1), and it may not be ours. */
  #leaderEnded(pid: number, status: number): void {
    const { folder, marker } = this.#place;
    const record = status === NOT_BEGUN ? readProcess(folder) : null;
    if (record === null || (record.kind === 'written' && record.pid === pid)) this.#over(status);
    else if (hasBegunProcess(folder, marker)) this.#await();
    else this.#refuse(`${stepFile(folder, 'status')} could not be written`);
  }

  /** For a process that is not our child: its record shows its exit. Returns whether it is alive. */
  #await(): boolean {
    const { folder, marker } = this.#place;
    const leader = turnLeader(readProcess(folder), marker);
    if (leader === null) {
      this.#over(null);
      return false;
    }
    this.#leader = leader.pid;
    // Another process than ours may have begun, with another plan.
    this.#plan = readPlan(folder) ?? this.#plan;
    if (typeof this.#plan?.session === 'string') this.#tellSession(this.#plan.session);
    whenGone(leader, folder, () => this.#over(null));
    return true;
  }

  /** Its session leader is gone. `status`: null if that was not our child. */
  #over(status: number | null): void {
    this.#gone.resolve();
    if (this.#ending) return;
    this.#ending = true;
    const end = async (): Promise<void> => {
      const { folder, graceMs } = this.#place;
      let known = readEnd(folder);
      // The spawner may be about to record its exit (drivers/spawner.ts).
      if (known === null && status === null) {
        await sleep(RECORD_MS);
        known = readEnd(folder);
      }
      // A stopped turn may have left processes, and so may one that was cut off.
      const isWhole = known?.how === 'ended' && !wasCutOff(known.status);
      const left = isWhole ? [] : await this.#sweep(graceMs);
      // We know how our own child ended without a record, but no later engine would.
      if (known === null) writeEnd(folder, 'lost');
      await this.#finish(known ?? { how: status === null ? 'lost' : 'ended', status }, left);
    };
    end().catch(crash);
  }

  async #sweep(graceMs: number): Promise<readonly number[]> {
    const { marker } = this.#place;
    const ending = killProcessTree({ marker, leader: this.#leader }, { graceMs });
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
    const at = readExitTime(folder);
    const stderr = fileEnd(stepFile(folder, 'stderr'), STDERR_BYTES);
    const reading = reader.end({ status: ending.how === 'ended' ? ending.status : null, stderr, at });
    const { usage: reported } = reading;
    // A program that names no session has used the one that was chosen for it.
    if (reading.verdict.kind === 'answer' && this.#session !== null) {
      sessions.saw(this.#session);
      const isKept = this.#ways.fork === null && this.#ways.replays === true;
      if (isKept) keepExchange(sessions.transcript(this.#session), folder, reading.verdict.text);
    }
    if (reported?.scope === 'session' && this.#session !== null) sessions.told(this.#session, reported);
    const usage = this.#plan === null ? UNKNOWN : spentIn(reported, this.#plan);
    const { text, printed } = reader;
    this.#end.resolve({
      kind: 'over',
      ...ending,
      reading,
      session: this.#session,
      usage,
      at,
      stderr,
      text,
      printed,
      left,
    });
  }

  /** It never began. */
  #refuse(reason: string): void {
    this.#ending = true;
    this.#idle?.close();
    const end = async (): Promise<void> => {
      await this.#output?.end();
      this.#begun.resolve(err(reason));
      this.#gone.resolve();
      this.#end.resolve({ kind: 'refused', reason });
    };
    end().catch(crash);
  }
}

const RECORD_MS = 250;
const TOO_LONG = 'its command and environment are too long for this system';
const STDERR_BYTES = 64 * 1024;

// `turn-end.json` of a turn: how the turn ended, if its exit status does not say. It is written before the engine sends
// a signal, so that a later engine knows why the turn is gone.

export interface TurnEnding {
  readonly how: 'ended' | EndReason;
  /** 128 + N after signal N; null if not recorded. */
  readonly status: number | null;
}

type StopReason = 'stopped' | 'idle' | 'overspent';
export type EndReason = StopReason | 'lost';
const isWrittenEnd = fields<{ readonly how: EndReason }>({ how: oneOf('stopped', 'idle', 'overspent', 'lost') });

function writeEnd(folder: StepFolder, how: EndReason): void {
  writeJsonFileIfWanted(stepFile(folder, 'turn-end.json'), { how });
}

/** Null if nothing was written. The turn may still be ending. */
function writtenEnd(folder: StepFolder): EndReason | null {
  return readRecord(stepFile(folder, 'turn-end.json'), isWrittenEnd)?.how ?? null;
}

/** For a turn whose processes are gone. Null if nobody saw it end. */
function readEnd(folder: StepFolder): TurnEnding | null {
  const [status, how] = [readExit(folder), writtenEnd(folder)];
  if (status === null) return how === null ? null : { how, status };
  return { how: how === null || how === 'lost' ? 'ended' : how, status };
}
