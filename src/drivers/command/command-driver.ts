// The driver of commands: shell scripts, each in a session of its own, that outlive the engine and are found again.
//
// command/1  An attempt runs at most once, however often it is requested (drivers/recording-shell.ts, shell/1).
// command/2  An attempt that another engine finds ends as it would have for the engine that started it.
// command/3  A stopped attempt is answered when all its processes are gone, or with the pids of those that are not.
// command/4  Failures of the outside world are failures in the answer; an exception is a bug, and ends the engine.
//
// The driver leaves alone what a command leaves running (a server that a setup step starts): it has the marker, and
// `processesOfRun` finds it.

import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { crash } from '../../sys/throw-uncaught.ts';
import { watchPath } from '../../sys/watch.ts';
import { assert } from '../../base/assert.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import type { Answer, Driver, RunFiles, StopHow } from '../../engine/ports.ts';
import type { CommandSpec, Effect, Outcome } from '../../ir/effect.ts';
import { failure } from '../../ir/failure.ts';
import type { FilledText } from '../../ir/text.ts';
import { environmentFor, inRun, markerOf, variablesByName } from '../environment.ts';
import type { DriverContext } from '../environment.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import type { ErrnoError } from '../../sys/errno.ts';
import { bootId, HAS_PROC, lives } from '../../sys/process-table.ts';
import type { ProcessEntry } from '../../sys/process-table.ts';
import { Spawner } from '../spawner.ts';
import type { SpawnEvents, SpawnRequest } from '../spawner.ts';
import { startProcess } from '../../sys/process.ts';
import type { ProcessRequest } from '../../sys/process.ts';
import { killProcessTree } from '../../sys/kill-process-tree.ts';
import type { Termination } from '../../sys/kill-process-tree.ts';
import { makeStepFolder, readExit, readProcess, stepFolder } from '../step-folder.ts';
import { UMASK, writePrivate } from '../../sys/private-file.ts';
import type { StepFolder } from '../step-folder.ts';
import { commandOutcome, unfinishedOutcome } from '../command-outcome.ts';
import { livingLeader } from '../session-leader.ts';
import { resolveText } from '../resolve-text.ts';
import { resolveWorkdir } from '../resolve-workdir.ts';
import { commandLine, findShell, NOT_BEGUN } from '../recording-shell.ts';
import type { Shell } from '../recording-shell.ts';

export interface CommandDriverOptions extends DriverContext {
  /** A name on PATH, or a path. */
  readonly shell?: string;
  /** Time between TERM and KILL; default: 5 seconds. */
  readonly graceMs?: number;
  /** The number of commands known beforehand: if they are many, the spawner is launched before the first. */
  readonly known?: number;
}

export function commandDriver(options: CommandDriverOptions): Driver {
  return new CommandDriver(options);
}

class CommandDriver implements Driver {
  readonly #options: CommandDriverOptions;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #attempts = new Map<string, Attempt>();
  readonly #waiting: Attempt[] = [];
  readonly #shell: Shell | null;
  readonly #recorder: Shell | null;
  readonly #spawner: Spawner;
  #requested = 0;
  /** Processes started in the last 50 ms, and when: caps the burst of starts. */
  readonly #young = new Map<Attempt, number>();
  #growing = false;
  #scheduled = false;
  /** The effect that the engine will start next. */
  #prepared: Attempt | null = null;
  /** A process was started in this tick. */
  #busy = false;

  constructor(options: CommandDriverOptions) {
    this.#options = options;
    this.#environment = inRun(options.environment, options);
    const searchPath = options.environment['PATH'] ?? '';
    this.#shell = findShell(options.shell ?? 'sh', searchPath);
    this.#recorder = findShell('sh', `${searchPath}:/bin:/usr/bin`);
    this.#spawner = options.spawner ?? new Spawner(this.#environment);
    if ((options.known ?? 0) >= SPAWNER_FROM) this.#spawner.launch();
  }

  start(effect: Effect, answer: Answer): void {
    this.#ask('start', effect, answer);
  }

  find(effect: Effect, answer: Answer): void {
    this.#ask('find', effect, answer);
  }

  /** While several commands run, nobody waits for the next one, so preparing it gains nothing. */
  prepare(effect: Effect): void {
    if (!this.#spawner.ready || this.#prepared !== null) return;
    if (this.#attempts.size >= availableParallelism()) return;
    const attempt = this.#attempt('start', effect);
    attempt.prepare(this.#spawner);
    this.#prepared = attempt;
  }

  stop(effectId: string, { force }: StopHow): void {
    this.#attempts.get(effectId)?.stop(force ? 'at-once' : 'gently');
  }

  #ask(how: 'start' | 'find', effect: Effect, answer: Answer): void {
    const known = this.#attempts.get(effect.id);
    if (known !== undefined) {
      known.answers.push(answer);
      return;
    }
    const prepared = this.#prepared?.effect.id === effect.id ? this.#prepared : null;
    if (prepared !== null) this.#prepared = null;
    const attempt = prepared ?? this.#attempt(how, effect);
    attempt.answers.push(answer);
    this.#attempts.set(effect.id, attempt);
    this.#requested += 1;
    if (this.#requested >= SPAWNER_FROM) this.#spawner.launch();
    if (prepared !== null || (how === 'start' && !this.#busy)) {
      // A single command starts at once, and runs while the engine does the rest of its work.
      this.#busy = true;
      setImmediate(() => {
        this.#busy = false;
      });
      attempt.begin();
      return;
    }
    this.#waiting.push(attempt);
    this.#schedule();
  }

  #attempt(how: 'start' | 'find', effect: Effect): Attempt {
    assert(effect.spec.kind === 'command', `no command: ${effect.id} is a ${effect.spec.kind}`);
    const attempt = new Attempt(effect, effect.spec, how, {
      options: this.#options,
      environment: this.#environment,
      shell: this.#shell,
      recorder: this.#recorder,
      start: (request, events) => this.#start(attempt, request, events),
      ended: () => {
        this.#attempts.delete(effect.id);
        if (this.#young.delete(attempt)) this.#schedule();
      },
    });
    return attempt;
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#begin();
    });
  }

  /** A start without the spawner blocks the engine for a millisecond, so there are only a few in one tick. */
  #begin(): void {
    const room = this.#spawner.ready ? YOUNG_MAX - this.#young.size : STARTS_A_TURN;
    for (const attempt of this.#waiting.splice(0, Math.max(0, room))) attempt.begin();
    if (room > 0) this.#schedule();
    else if (!this.#growing) {
      this.#growing = true;
      setTimeout(() => this.#grow(), YOUNG_MS).unref();
    }
  }

  /** Forgets processes that are no longer starting up, and starts the next ones. */
  #grow(): void {
    this.#growing = false;
    const before = performance.now() - YOUNG_MS;
    for (const [attempt, since] of this.#young) if (since <= before) this.#young.delete(attempt);
    this.#schedule();
  }

  #start(attempt: Attempt, request: ProcessRequest, events: SpawnEvents): void {
    if (!this.#spawner.ready) {
      startProcess(request, events);
      return;
    }
    this.#young.set(attempt, performance.now());
    this.#spawner.start(spawnRequest(request), events);
  }
}

const STARTS_A_TURN = 4;
/** Launching the spawner costs about as much as these do without it. */
const SPAWNER_FROM = 6;
const YOUNG_MAX = Math.max(24, 4 * availableParallelism());
const YOUNG_MS = 50;
/** About three minutes. */
const STARTS_MAX = 100;
const START_PAUSE_MIN_MS = 50;
const START_PAUSE_MAX_MS = 2_000;
const GRACE_MS = 5_000;
const LOOK_MIN_MS = 250;
const LOOK_MAX_MS = 5_000;

interface Surroundings {
  readonly options: CommandDriverOptions;
  /** The environment of all commands. */
  readonly environment: Readonly<Record<string, string>>;
  readonly shell: Shell | null;
  readonly recorder: Shell | null;
  start(request: ProcessRequest, events: SpawnEvents): void;
  ended(): void;
}

type Life =
  | { readonly kind: 'waiting' }
  /** Ready to begin; not requested yet. */
  | { readonly kind: 'prepared'; readonly goAhead: () => void }
  /** The system was short of something; tried again later. */
  | { readonly kind: 'refused'; readonly timer: NodeJS.Timeout }
  /** Requested; a stop that arrives meanwhile takes effect once it has begun. */
  | { readonly kind: 'starting'; stop: 'gently' | 'at-once' | null }
  /** Our own child, or the spawner's: its exit is reported. */
  | { readonly kind: 'running'; readonly pid: number }
  /** Started by an earlier engine: its record shows its exit, and polling shows whether it is alive. */
  | { readonly kind: 'found'; readonly entry: ProcessEntry; readonly unwatch: () => void }
  | { readonly kind: 'ending'; readonly ending: Termination; reason: 'stopped' | 'lost' }
  | { readonly kind: 'over' };

/** One attempt, from the request to the answer. */
class Attempt {
  readonly answers: Answer[] = [];
  readonly effect: Effect;
  readonly #spec: CommandSpec<FilledText>;
  readonly #how: 'start' | 'find';
  readonly #around: Surroundings;
  readonly #folder: StepFolder;
  #life: Life = { kind: 'waiting' };
  #starts = 0;

  constructor(effect: Effect, spec: CommandSpec<FilledText>, how: 'start' | 'find', around: Surroundings) {
    this.effect = effect;
    this.#spec = spec;
    this.#how = how;
    this.#around = around;
    this.#folder = stepFolder(around.options.files, effect.step, effect.attempt);
  }

  /** Does all of a start but its last step. If that fails, `begin` does the whole start. */
  prepare(spawner: Spawner): void {
    try {
      const request = this.#request();
      const goAhead =
        request.ok && !request.value.readsScript ? spawner.prepare(spawnRequest(request.value), this.#events) : null;
      if (goAhead !== null) this.#life = { kind: 'prepared', goAhead };
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    }
  }

  begin(): void {
    const life = this.#life;
    if (life.kind === 'prepared') {
      this.#starts += 1;
      this.#life = { kind: 'starting', stop: null };
      life.goAhead();
      return;
    }
    if (life.kind !== 'waiting') return;
    if (this.#how === 'start') this.#launch();
    else this.#lookAround();
  }

  stop(how: 'gently' | 'at-once'): void {
    const life = this.#life;
    switch (life.kind) {
      case 'waiting':
      case 'prepared':
        if (this.#how === 'start') this.#answerSoon(notRun());
        else this.#stopUnseen(how);
        return;
      case 'refused':
        clearTimeout(life.timer);
        this.#answerSoon(notRun());
        return;
      case 'starting':
        life.stop = how;
        return;
      case 'running':
        // It has ended already, and its result is on the way.
        if (readExit(this.#folder) === null) this.#end('stopped', how, life.pid);
        return;
      case 'found': {
        life.unwatch();
        const status = readExit(this.#folder);
        if (status === null) this.#end('stopped', how, life.entry.pid);
        else this.#conclude(status);
        return;
      }
      case 'ending':
        life.reason = 'stopped';
        if (how === 'at-once') life.ending.atOnce();
        return;
      case 'over':
        return;
    }
  }

  /** Not looked for yet: an earlier engine may have started it. */
  #stopUnseen(how: 'gently' | 'at-once'): void {
    const status = readExit(this.#folder);
    if (status !== null) this.#conclude(status);
    else this.#end('stopped', how, livingLeader(readProcess(this.#folder), this.#marker)?.pid ?? null);
  }

  #launch(): void {
    this.#starts += 1;
    this.#life = { kind: 'starting', stop: null };
    let request: Result<CommandRequest, string>;
    try {
      request = this.#request();
      if (request.ok && request.value.readsScript) {
        makeStepFolder(this.#folder.path);
        writePrivate(join(this.#folder.path, 'script'), request.value.script);
      }
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
      setImmediate(() => this.#refusedBy(error));
      return;
    }
    if (request.ok) this.#around.start(request.value, this.#events);
    else this.#answerSoon(notStarted(request.error));
  }

  get #events(): SpawnEvents {
    return {
      begun: (pid) => this.#begun(pid),
      refused: (error) => this.#refusedBy(error),
      ended: (status) => this.#ended(status),
      abandoned: () => this.#abandoned(),
    };
  }

  #begun(pid: number): void {
    const life = this.#life;
    if (life.kind !== 'starting') return;
    this.#life = { kind: 'running', pid };
    if (life.stop !== null) this.stop(life.stop);
  }

  /** The spawner is dead. Processes that it started go on, and starting one again cannot run its script twice (shell/1). */
  #abandoned(): void {
    const life = this.#life;
    if (life.kind === 'prepared') this.#life = { kind: 'waiting' };
    else if (life.kind === 'starting' && life.stop !== null) this.#end('stopped', life.stop, null);
    else if (life.kind === 'starting') this.#launch();
    else if (life.kind === 'running') this.#lookAround();
    else if (life.kind === 'ending') life.ending.look();
  }

  #request(): Result<CommandRequest, string> {
    const { options, shell, recorder } = this.#around;
    if (shell === null || recorder === null)
      return err(`there is no shell ${shell === null ? (options.shell ?? 'sh') : 'sh'} on PATH`);
    const script = resolveText(this.#spec.script, options.files);
    if (!script.ok) return script;
    if (script.value.includes('\0')) return err('the script contains a NUL byte, which no shell can read');
    const cwd = this.#cwd();
    if (!cwd.ok) return cwd;
    const own: (readonly [string, string])[] =
      this.#spec.steering !== null ? [...variablesByName(this.effect.variables)] : [];
    for (const [name, text] of Object.entries(this.#spec.env)) {
      const value = resolveText(text, options.files);
      if (!value.ok) return value;
      own.push([name, value.value]);
    }
    const environment = environmentFor({
      base: this.#around.environment,
      run: options,
      effect: this.effect,
      own: Object.fromEntries(own),
    });
    if (!environment.ok) return environment;
    const line = commandLine({
      shell,
      recorder,
      script: script.value,
      folder: this.#folder.path,
      bootId: bootId(),
      hasUptime: HAS_PROC,
      umask: UMASK,
    });
    return ok({
      ...line,
      script: script.value,
      cwd: cwd.value,
      environment: environment.value,
      folder: this.#folder.path,
    });
  }

  #cwd(): Result<string, string> {
    const { cwd, files } = this.#around.options;
    if (this.#spec.cwd === null) return ok(cwd);
    const text = resolveText(this.#spec.cwd, files);
    if (!text.ok) return text;
    return text.value.includes('\0') ? err('the path of its folder contains a NUL byte') : ok(resolve(cwd, text.value));
  }

  #refusedBy(error: ErrnoError): void {
    const life = this.#life;
    // `begin` tries again, and reports the reason.
    if (life.kind === 'prepared') this.#life = { kind: 'waiting' };
    if (life.kind !== 'starting' && life.kind !== 'running') return;
    if (life.kind === 'starting' && life.stop !== null) {
      this.#answer(notRun());
      return;
    }
    if (isErrno(error, ...EXHAUSTED) && this.#starts < STARTS_MAX) {
      const timer = setTimeout(
        () => {
          this.#life = { kind: 'waiting' };
          this.#launch();
        },
        Math.min(START_PAUSE_MIN_MS * 2 ** (this.#starts - 1), START_PAUSE_MAX_MS),
      );
      this.#life = { kind: 'refused', timer };
      return;
    }
    this.#refuse(this.#reasonOf(error));
  }

  #reasonOf(error: ErrnoError): string {
    if (error.code === 'E2BIG') return 'its script and environment are too long for this system';
    if (EXHAUSTED.some((code) => code === error.code))
      return `the system has no room for it, and had none in ${this.#starts} tries (${error.message})`;
    const cwd = this.#cwd();
    const folder = cwd.ok ? resolveWorkdir(cwd.value, '') : cwd;
    return folder.ok ? error.message : folder.error;
  }

  #refuse(reason: string): void {
    this.#answer(notStarted(reason));
  }

  #ended(status: number): void {
    const life = this.#life;
    if (life.kind === 'ending') {
      life.ending.look();
      return;
    }
    if (life.kind !== 'running') return;
    if (status === NOT_BEGUN) {
      const record = readProcess(this.#folder);
      const own = record.kind === 'written' && record.pid === life.pid;
      if (!own && record.kind !== 'written' && livingLeader(record, this.#marker) === null) {
        this.#refuse(`${join(this.#folder.path, 'status')} could not be written`);
        return;
      }
      if (!own) {
        this.#lookAround();
        return;
      }
    }
    this.#conclude(status);
  }

  /** An earlier engine may have started this attempt, and it may have ended. */
  #lookAround(): void {
    const status = readExit(this.#folder);
    if (status !== null) {
      this.#conclude(status);
      return;
    }
    const record = readProcess(this.#folder);
    const entry = livingLeader(record, this.#marker);
    if (entry !== null) this.#await(entry);
    else if (record.kind !== 'absent' || readProcess(this.#folder).kind !== 'absent') this.#gone();
    // If another process of this attempt is just starting, only one of the two runs the script (shell/1).
    else this.#launch();
  }

  #await(entry: ProcessEntry): void {
    let pauseMs = LOOK_MIN_MS;
    let timer: NodeJS.Timeout;
    const watcher = watchPath(this.#folder.path, () => look());
    const unwatch = (): void => {
      clearTimeout(timer);
      watcher?.close();
    };
    const look = (): boolean => {
      const status = readExit(this.#folder);
      if (status === null) return false;
      unwatch();
      this.#conclude(status);
      return true;
    };
    const lookSlowly = (): void => {
      const alive = lives(entry);
      if (look()) return;
      if (!alive) {
        unwatch();
        this.#lookAround();
        return;
      }
      timer = setTimeout(lookSlowly, pauseMs);
      pauseMs = Math.min(pauseMs * 2, LOOK_MAX_MS);
    };
    this.#life = { kind: 'found', entry, unwatch };
    lookSlowly();
  }

  #gone(): void {
    const status = readExit(this.#folder);
    if (status === null) this.#end('lost', 'gently', null);
    else this.#conclude(status);
  }

  #end(reason: 'stopped' | 'lost', how: 'gently' | 'at-once', leader: number | null): void {
    const graceMs = how === 'at-once' ? 0 : (this.#around.options.graceMs ?? GRACE_MS);
    const ending = killProcessTree({ marker: this.#marker, leader }, { graceMs });
    const life = { kind: 'ending' as const, ending, reason };
    this.#life = life;
    const answer = async (): Promise<void> => {
      const left = await ending.done;
      const rest =
        left.length === 0 ? '' : `; these processes could not be killed: ${left.map(({ pid }) => pid).join(', ')}`;
      const message = life.reason === 'stopped' ? 'the command was stopped' : LOST;
      this.#answer(await unfinishedOutcome(life.reason, `${message}${rest}`, this.#spec, this.#left()));
    };
    answer().catch(crash);
  }

  #conclude(status: number): void {
    this.#life = { kind: 'over' };
    const answer = async (): Promise<void> => {
      this.#answer(await commandOutcome(this.#spec, { ...this.#left(), status }));
    };
    answer().catch(crash);
  }

  #answer(outcome: Outcome): void {
    this.#life = { kind: 'over' };
    this.#around.ended();
    for (const answer of this.answers) answer(outcome);
  }

  /** Never during the call that requested it. */
  #answerSoon(outcome: Outcome): void {
    this.#life = { kind: 'over' };
    setImmediate(() => this.#answer(outcome));
  }

  #left(): { readonly files: RunFiles; readonly folder: StepFolder; readonly cwd: string } {
    const { files, cwd: ownFolder } = this.#around.options;
    const cwd = this.#cwd();
    return { files, folder: this.#folder, cwd: cwd.ok ? cwd.value : ownFolder };
  }

  get #marker(): string {
    return markerOf(this.#around.options, this.effect.id);
  }
}

interface CommandRequest extends ProcessRequest {
  readonly readsScript: boolean;
  readonly script: string;
}

function spawnRequest({ cwd, folder, environment, path, args }: ProcessRequest): SpawnRequest {
  const commands = [[path, path, ...args]] as const;
  return { cwd, folder, environment, files: {}, stdin: '/dev/null', recordsEnd: false, commands };
}

const LOST = 'the command was started by an earlier engine, and is gone without an exit status';

function notStarted(reason: string): Outcome {
  return { kind: 'failure', failure: failure('not-started', `the command could not be started: ${reason}`) };
}

function notRun(): Outcome {
  return { kind: 'failure', failure: failure('stopped', 'the command was stopped before it was started') };
}
