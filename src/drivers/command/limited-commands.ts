// Commands with a reduced environment (`inherit`) or a limit of silence (`idleMs`), beside all others.
//
// limited-commands/1  The reason is recorded (the file `silent` of the attempt) before the signal is sent, so that
//                     a later engine reports the same.

import { existsSync, statSync } from 'node:fs';

import { assert } from '../../base/errors.ts';
import { formatDuration } from '../../base/time.ts';
import type { Answer, Driver } from '../../engine/ports.ts';
import type { Effect } from '../../ir/effect.ts';
import { ABSENT, tolerate } from '../../sys/errors.ts';
import { stepFile, stepFolder, writeStepFile } from '../step-folder.ts';
import { commandDriver, type CommandDriverOptions } from './command-driver.ts';

export function limitedCommands(options: CommandDriverOptions): Driver {
  const plain = commandDriver(options);
  /** By the names of inherited variables. */
  const sealed = new Map<string, Driver>();
  const driverWith = (inherit: readonly string[] | undefined): Driver => {
    if (inherit === undefined) return plain;
    const key = inherit.join(' ');
    const inherited = Object.entries(options.environment).filter(([name]) => inherit.includes(name));
    const environment = Object.fromEntries(inherited);
    const driver = sealed.get(key) ?? commandDriver({ ...options, environment, binFolder: null });
    sealed.set(key, driver);
    return driver;
  };
  const ask = (how: 'start' | 'find', effect: Effect, answer: Answer): void => {
    const { id, spec } = effect;
    assert(spec.kind === 'command', `no command: ${id} is a ${spec.kind}`);
    const driver = driverWith(spec.inherit);
    const limited = spec.idleMs === undefined ? answer : watched(driver, effect, spec.idleMs, answer, how);
    driver[how](effect, limited);
  };
  const watched = (driver: Driver, effect: Effect, idleMs: number, answer: Answer, how: 'start' | 'find'): Answer => {
    const folder = stepFolder(options.files, effect.step, effect.attempt, how);
    const file = stepFile(folder, 'silent');
    const end = (): void => {
      if (!existsSync(file)) writeStepFile(folder, 'silent', '');
      driver.stop(effect.id, { force: false, why: 'timeout' });
    };
    const files = ['stdout', 'stderr'].map((name) => stepFile(folder, name));
    const limit = new IdleLimit({ idleMs, files, reached: end });
    // An earlier engine may not have finished killing it.
    if (how === 'find' && existsSync(file)) setImmediate(end);
    return (outcome) => {
      limit.close();
      const isCutOff = outcome.kind === 'failure' && CUT_OFF.has(outcome.failure.kind) && existsSync(file);
      if (!isCutOff) return answer(outcome);
      const { failure } = outcome;
      const at = failure.message.indexOf('; ');
      const left = at === -1 ? '' : failure.message.slice(at);
      const message = `it was silent for ${formatDuration(idleMs)}${left}`;
      answer({ ...outcome, failure: { ...failure, kind: 'idle', message } });
    };
  };
  return {
    start: (effect, answer) => ask('start', effect, answer),
    find: (effect, answer) => ask('find', effect, answer),
    stop(effectId, how) {
      for (const driver of [plain, ...sealed.values()]) driver.stop(effectId, how);
    },
  };
}

const CUT_OFF: ReadonlySet<string> = new Set(['stopped', 'lost', 'signal']);

/**
 * Limits how long a process may be silent. Silence means that its files do not grow; they are checked only when the
 * limit may have been reached.
 */
export interface IdleLimitRequest {
  readonly idleMs: number;
  /** Files that it writes to. */
  readonly files: readonly string[];
  /** Called once. */
  readonly reached: () => void;
}

export class IdleLimit {
  readonly #request: IdleLimitRequest;
  #lookedAt = performance.now();
  #signAt = this.#lookedAt;
  #bytes: number;
  #timer: NodeJS.Timeout | null = null;

  constructor(request: IdleLimitRequest) {
    this.#request = request;
    this.#bytes = this.#look().bytes;
    this.#wait();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #wait(): void {
    const ms = Math.max(0, Math.ceil(this.#signAt + this.#request.idleMs - performance.now()));
    this.#timer = setTimeout(() => this.#due(), Math.min(ms, WAIT_MAX_MS));
  }

  #due(): void {
    const { idleMs, reached } = this.#request;
    const now = performance.now();
    const { bytes, silentMs } = this.#look();
    // After a clock change or a suspend the time of the write is unknown: it then counts as now.
    const isSure = silentMs >= 0 && silentMs <= now - this.#lookedAt;
    if (bytes !== this.#bytes) this.#signAt = isSure ? now - silentMs : now;
    this.#bytes = bytes;
    this.#lookedAt = now;
    if (now - this.#signAt >= idleMs) reached();
    else this.#wait();
  }

  #look(): { readonly bytes: number; readonly silentMs: number } {
    let bytes = 0;
    let writtenAt = 0;
    for (const file of this.#request.files) {
      const stat = tolerate(ABSENT, null, () => statSync(file));
      bytes += stat?.size ?? 0;
      writtenAt = Math.max(writtenAt, stat?.mtimeMs ?? 0);
    }
    return { bytes, silentMs: Date.now() - writtenAt };
  }
}

/** Longest timer of the system. */
const WAIT_MAX_MS = 2 ** 31 - 1;
