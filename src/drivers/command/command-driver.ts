// The driver of commands: shell scripts, each in a session of its own, that outlive the engine and are found again.
//
// command/1  An attempt runs at most once, however often it is requested (drivers/recording-shell.ts, shell/1).
// command/2  An attempt that another engine finds ends as it would have for the engine that started it.
// command/3  A stopped attempt is answered when all its processes are gone, or with the pids of those that are not.
// command/4  Failures of the outside world are failures in the answer; an exception is a bug, and ends the engine.
//
// The driver leaves alone what a command leaves running that ends by itself (a server that a setup step starts): it has the
// marker, and `processesOfRun` finds it. A command that a signal ends leaves nothing.

import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';

import { assert, err, ok, type Result } from '../../base/errors.ts';
import type { Answer, Driver, StopHow } from '../../engine/ports.ts';
import type { CommandSpec, Effect, Outcome } from '../../ir/effect.ts';
import type { FilledText } from '../../ir/text.ts';
import { crash, type ErrnoError, EXHAUSTED, isErrno, UNUSABLE } from '../../sys/errors.ts';
import { killProcessTree, type Termination } from '../../sys/kill-process-tree.ts';
import { pauseBeforeStart, type ProcessEntry, type ProcessRequest, startProcess } from '../../sys/process.ts';
import type { DriverContext, EnvVariables } from '../environment.ts';
import { environmentFor, inRun, markerOf, resolveWorkdir, variablesByName } from '../environment.ts';
import { commandOutcome, failed, type Left, resolveText, resolveTexts, unfinishedOutcome } from '../outputs.ts';
import { type CommandLine, commandLine, findShell, NOT_BEGUN, type Shell } from '../recording-shell.ts';
import { exitOfGone, hasBegunProcess, livingLeader, whenGone } from '../session-leader.ts';
import { Spawner, type SpawnEvents } from '../spawner.ts';
import {
  discardForgedRecords,
  prepareStepFolder,
  readExitTime,
  readProcess,
  stepFile,
  stepFolder,
  type StepFolder,
  wasCutOff,
  writeStepFile,
} from '../step-folder.ts';

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
  readonly options: CommandDriverOptions;
  /** The environment of all commands. */
  readonly environment: EnvVariables;
  readonly shell: Shell | null;
  readonly recorder: Shell | null;
  readonly #attempts = new Map<string, Attempt>();
  readonly #waiting: Attempt[] = [];
  readonly #spawner: Spawner;
  #requested = 0;
  /** Processes started in the last 50 ms: caps the burst of starts. */
  readonly #young = new Set<Attempt>();
  #scheduled = false;
  /** A process was started in this tick. */
  #busy = false;

  constructor(options: CommandDriverOptions) {
    this.options = options;
    this.environment = inRun(options.environment, options);
    const searchPath = options.environment['PATH'] ?? '';
    this.shell = findShell(options.shell ?? 'sh', searchPath);
    this.recorder = findShell('sh', `${searchPath}:/bin:/usr/bin`);
    this.#spawner = options.spawner ?? new Spawner(this.environment);
    if ((options.known ?? 0) >= SPAWNER_FROM) this.#spawner.launch();
  }

  start(effect: Effect, answer: Answer): void {
    this.#ask('start', effect, answer);
  }

  find(effect: Effect, answer: Answer): void {
    this.#ask('find', effect, answer);
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
    assert(effect.spec.kind === 'command', `no command: ${effect.id} is a ${effect.spec.kind}`);
    const attempt = new Attempt(effect, effect.spec, how, this);
    attempt.answers.push(answer);
    this.#attempts.set(effect.id, attempt);
    this.#requested += 1;
    if (this.#requested >= SPAWNER_FROM) this.#spawner.launch();
    if (how === 'start' && !this.#busy) {
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

  /** Starts the process of an attempt. */
  launch(attempt: Attempt, request: ProcessRequest): void {
    if (!this.#spawner.ready) return startProcess(request, attempt);
    this.#young.add(attempt);
    setTimeout(() => this.#hasStartedUp(attempt), YOUNG_MS).unref();
    const { cwd, prefix, environment, path, args } = request;
    const commands = [[path, path, ...args]] as const;
    const streams = { files: {}, stdin: '/dev/null', record: null };
    this.#spawner.start({ cwd, prefix, environment, ...streams, commands }, attempt);
  }

  /** The attempt is over. */
  forget(attempt: Attempt): void {
    this.#attempts.delete(attempt.effect.id);
    this.#hasStartedUp(attempt);
  }

  #hasStartedUp(attempt: Attempt): void {
    if (this.#young.delete(attempt)) this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => this.#begin());
  }

  /** A start without the spawner blocks the engine for a millisecond, so there are only a few in one tick. */
  #begin(): void {
    this.#scheduled = false;
    const room = this.#spawner.ready ? YOUNG_MAX - this.#young.size : STARTS_A_TURN;
    for (const attempt of this.#waiting.splice(0, Math.max(0, room))) attempt.begin();
    if (room > 0) this.#schedule();
  }
}

const STARTS_A_TURN = 4;
/** Launching the spawner costs about as much as these do without it. */
const SPAWNER_FROM = 6;
const YOUNG_MAX = Math.max(24, 4 * availableParallelism());
const YOUNG_MS = 50;
const GRACE_MS = 5_000;

type Life =
  | { readonly kind: 'waiting' }
  /** The system was short of something; tried again later. */
  | { readonly kind: 'refused'; readonly timer: NodeJS.Timeout }
  /** Requested; a stop that arrives meanwhile takes effect once it has begun. */
  | { readonly kind: 'starting'; stop: 'gently' | 'at-once' | null }
  /** Our own child, or the spawner's: its exit is reported. */
  | { readonly kind: 'running'; readonly pid: number }
  /** Started by an earlier engine. */
  | { readonly kind: 'found'; readonly entry: ProcessEntry; readonly unwatch: () => void }
  | { readonly kind: 'ending'; readonly ending: Termination; reason: EndReason }
  | { readonly kind: 'over' };

/** Stopped by us; gone without a status; or ended with this one. */
type EndReason = 'stopped' | 'lost' | number;

/** One attempt, from the request to the answer. */
class Attempt implements SpawnEvents {
  readonly answers: Answer[] = [];
  readonly effect: Effect;
  readonly #spec: CommandSpec<FilledText>;
  readonly #how: 'start' | 'find';
  readonly #driver: CommandDriver;
  readonly #folder: StepFolder;
  #life: Life = { kind: 'waiting' };
  #starts = 0;

  constructor(effect: Effect, spec: CommandSpec<FilledText>, how: 'start' | 'find', driver: CommandDriver) {
    this.effect = effect;
    this.#spec = spec;
    this.#how = how;
    this.#driver = driver;
    this.#folder = stepFolder(driver.options.files, effect.step, effect.attempt, how);
  }

  begin(): void {
    if (this.#life.kind !== 'waiting') return;
    if (this.#how === 'start') this.#launch();
    else this.#lookAround();
  }

  stop(how: 'gently' | 'at-once'): void {
    const life = this.#life;
    switch (life.kind) {
      case 'waiting':
        if (this.#how === 'start') this.#answerSoon(NOT_RUN);
        // Not looked for yet: an earlier engine may have started it.
        else if (!this.#concludeRecorded())
          this.#end('stopped', how, livingLeader(readProcess(this.#folder), this.#marker)?.pid ?? null);
        return;
      case 'refused':
        clearTimeout(life.timer);
        this.#answerSoon(NOT_RUN);
        return;
      case 'starting':
        life.stop = how;
        return;
      case 'running':
        // It has ended already, and its result is on the way.
        if (this.#exit() === null) this.#end('stopped', how, life.pid);
        return;
      case 'found':
        life.unwatch();
        if (!this.#concludeRecorded()) this.#end('stopped', how, life.entry.pid);
        return;
      case 'ending':
        life.reason = 'stopped';
        if (how === 'at-once') life.ending.atOnce();
        return;
      case 'over':
        return;
    }
  }

  #launch(): void {
    this.#starts += 1;
    this.#life = { kind: 'starting', stop: null };
    let request: Result<CommandRequest, string>;
    try {
      request = this.#request();
      if (this.#isFirst) discardForgedRecords(this.#driver.options.files, this.effect.step, this.effect.attempt);
      prepareStepFolder(this.#folder);
      if (request.ok && request.value.script !== null) writeStepFile(this.#folder, 'script', request.value.script);
    } catch (error) {
      if (!isErrno(error, ...UNUSABLE)) throw error;
      setImmediate(() => this.refused(error));
      return;
    }
    if (request.ok) this.#driver.launch(this, request.value);
    else this.#answerSoon(notStarted(request.error));
  }

  /** Nobody else can have started this attempt. */
  get #isFirst(): boolean {
    return this.#how === 'start' && this.#starts === 1;
  }

  begun(pid: number): void {
    const life = this.#life;
    if (life.kind !== 'starting') return;
    this.#life = { kind: 'running', pid };
    if (life.stop !== null) this.stop(life.stop);
  }

  /** The spawner is dead. Processes that it started continue, and starting one again cannot run its script twice (shell/1). */
  abandoned(): void {
    const life = this.#life;
    if (life.kind === 'starting' && life.stop !== null) this.#end('stopped', life.stop, null);
    else if (life.kind === 'starting') this.#launch();
    else if (life.kind === 'running') this.#lookAround();
    else if (life.kind === 'ending') life.ending.look();
  }

  #request(): Result<CommandRequest, string> {
    const { options, shell, recorder } = this.#driver;
    if (shell === null || recorder === null)
      return err(`there is no shell ${shell === null ? (options.shell ?? 'sh') : 'sh'} on PATH`);
    const script = resolveText(this.#spec.script, options.files);
    if (!script.ok) return script;
    if (script.value.includes('\0')) return err('the script contains a NUL byte, which no shell can read');
    const cwd = this.#cwd();
    if (!cwd.ok) return cwd;
    const env = resolveTexts(this.#spec.env, options.files);
    if (!env.ok) return env;
    const { effect } = this;
    const inherited = this.#spec.steering === null ? {} : variablesByName(effect.variables);
    const own = { ...inherited, ...env.value };
    const environment = environmentFor({ base: this.#driver.environment, run: options, effect, own });
    if (!environment.ok) return environment;
    const { prefix } = this.#folder;
    const isHidden = this.effect.hasSecrets === true || options.secrets?.isIn(script.value) === true;
    const line = commandLine({ shell, recorder, script: script.value, prefix, isHidden });
    const { base, own: ofStep } = environment.value;
    const whole = { base, own: { ...ofStep, ...line.environment } };
    return ok({ ...line, cwd: cwd.value, environment: whole, prefix });
  }

  #cwd(): Result<string, string> {
    const { cwd, files } = this.#driver.options;
    if (this.#spec.cwd === null) return ok(cwd);
    const text = resolveText(this.#spec.cwd, files);
    if (!text.ok) return text;
    return text.value.includes('\0') ? err('the path of its folder contains a NUL byte') : ok(resolve(cwd, text.value));
  }

  refused(error: ErrnoError): void {
    const life = this.#life;
    if (life.kind !== 'starting' && life.kind !== 'running') return;
    if (life.kind === 'starting' && life.stop !== null) return this.#answer(NOT_RUN);
    const pauseMs = pauseBeforeStart(error, this.#starts);
    if (pauseMs === null) this.#answer(notStarted(this.#reasonOf(error)));
    else this.#life = { kind: 'refused', timer: setTimeout(() => this.#launch(), pauseMs) };
  }

  #reasonOf(error: ErrnoError): string {
    if (error.code === 'E2BIG') return 'its script and environment are too long for this system';
    if (EXHAUSTED.some((code) => code === error.code))
      return `the system has no room for it, and had none in ${this.#starts} tries (${error.message})`;
    const cwd = this.#cwd();
    const folder = cwd.ok ? resolveWorkdir(cwd.value, '') : cwd;
    return folder.ok ? error.message : folder.error;
  }

  ended(status: number): void {
    const life = this.#life;
    if (life.kind === 'ending') return life.ending.look();
    if (life.kind !== 'running') return;
    const record = status === NOT_BEGUN ? readProcess(this.#folder) : null;
    if (record === null || (record.kind === 'written' && record.pid === life.pid)) this.#conclude(status);
    else if (!this.#isFirst && hasBegunProcess(this.#folder, this.#marker)) this.#lookAround();
    else this.#answer(notStarted(`${stepFile(this.#folder, 'status')} could not be written`));
  }

  /** An earlier engine may have started this attempt, and it may have ended. */
  #lookAround(): void {
    if (this.#concludeRecorded()) return;
    const record = readProcess(this.#folder);
    const entry = livingLeader(record, this.#marker);
    if (entry !== null) {
      const unwatch = whenGone(entry, this.#folder, (status) => {
        if (status === null) this.#lookAround();
        else this.#conclude(status);
      });
      this.#life = { kind: 'found', entry, unwatch };
    }
    // If another process of this attempt is just starting, only one of the two runs the script (shell/1).
    else if (record.kind === 'absent' && readProcess(this.#folder).kind === 'absent') this.#launch();
    else if (!this.#concludeRecorded()) this.#end('lost', 'gently', null);
  }

  /** Whether its exit is recorded. */
  #concludeRecorded(): boolean {
    const status = this.#exit();
    if (status !== null) this.#conclude(status);
    return status !== null;
  }

  #exit(): number | null {
    return exitOfGone(this.#folder, this.#marker);
  }

  #end(reason: EndReason, how: 'gently' | 'at-once', leader: number | null): void {
    const graceMs = how === 'at-once' ? 0 : (this.#driver.options.graceMs ?? GRACE_MS);
    const ending = killProcessTree({ marker: this.#marker, leader }, { graceMs });
    const life: Extract<Life, { kind: 'ending' }> = { kind: 'ending', ending, reason };
    this.#life = life;
    const answer = async (): Promise<void> => {
      const left = await ending.done;
      if (typeof life.reason === 'number') return this.#answer(await this.#outcomeOf(life.reason));
      const rest =
        left.length === 0 ? '' : `; these processes could not be killed: ${left.map(({ pid }) => pid).join(', ')}`;
      const message = life.reason === 'stopped' ? 'the command was stopped' : LOST;
      this.#answer(await unfinishedOutcome(life.reason, `${message}${rest}`, this.#spec, this.#left()));
    };
    answer().catch(crash);
  }

  #conclude(status: number): void {
    const life = this.#life;
    if (wasCutOff(status)) return this.#end(status, 'gently', life.kind === 'running' ? life.pid : null);
    this.#life = { kind: 'over' };
    const answer = async (): Promise<void> => this.#answer(await this.#outcomeOf(status));
    answer().catch(crash);
  }

  async #outcomeOf(status: number): Promise<Outcome> {
    const found = this.#how === 'find' ? { endedAt: readExitTime(this.#folder) } : {};
    return { ...(await commandOutcome(this.#spec, { ...this.#left(), status })), ...found };
  }

  #answer(outcome: Outcome): void {
    this.#life = { kind: 'over' };
    this.#driver.forget(this);
    for (const answer of this.answers) answer(outcome);
  }

  /** Never during the call that requested it. */
  #answerSoon(outcome: Outcome): void {
    this.#life = { kind: 'over' };
    setImmediate(() => this.#answer(outcome));
  }

  #left(): Omit<Left, 'status'> {
    const { files, secrets, cwd: ownFolder } = this.#driver.options;
    const cwd = this.#cwd();
    return { files, secrets, folder: this.#folder, cwd: cwd.ok ? cwd.value : ownFolder };
  }

  get #marker(): string {
    return markerOf(this.#driver.options, this.effect.id);
  }
}

type CommandRequest = ProcessRequest & Omit<CommandLine, 'environment'>;

const LOST = 'the command was started by an earlier engine, and is gone without an exit status';

const NOT_RUN = failed('stopped', 'the command was stopped before it was started');

function notStarted(reason: string): Outcome {
  return failed('not-started', `the command could not be started: ${reason}`);
}
