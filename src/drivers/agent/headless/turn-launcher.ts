// Starts the programs of turns. As long as they are few we do it ourselves. Where one follows upon another within moments,
// what each start takes of the engine's only thread is most of what a turn costs, and another process does it (turn-supervisor.ts).

import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import type { LaunchEvents } from '../../spawner.ts';
import { startProcess } from '../../process.ts';
import { makeStepFolder } from '../../step-folder.ts';
import { writePrivate } from '../../../sys/private-file.ts';
import { PROMPT } from './program.ts';
import type { ProgramRequest } from './program.ts';
import { findRecorder, Recorder } from './turn-supervisor.ts';
import { PLAN } from './session-plan.ts';

export class Starter {
  readonly #environment: Readonly<Record<string, string>>;
  /** Undefined until one is worth its while; null where there is none. */
  #recorder: Recorder | null | undefined;
  /** When the latest were started. */
  readonly #times: number[] = [];

  constructor(environment: Readonly<Record<string, string>>, recorder?: Recorder) {
    this.#environment = environment;
    this.#recorder = recorder;
  }

  start(request: ProgramRequest, events: LaunchEvents): void {
    if (this.#recorder === undefined && this.#areMany()) this.#recorder = findRecorder(this.#environment);
    const recorder = this.#recorderFor(request);
    if (recorder === null) startProgram(request, events);
    else recorder.start(request, events);
  }

  /** Makes it ready, and returns how to let it go; null where it is to be started as a whole. */
  prepare(request: ProgramRequest, events: LaunchEvents): (() => void) | null {
    return this.#recorderFor(request)?.prepare(request, events) ?? null;
  }

  #recorderFor(request: ProgramRequest): Recorder | null {
    return this.#recorder?.ready === true && Recorder.takes(request) ? this.#recorder : null;
  }

  #areMany(): boolean {
    const now = performance.now();
    this.#times.push(now);
    if (this.#times.length < MANY) return false;
    return now - (this.#times.shift() ?? now) < WITHIN_MS;
  }
}

/** By ourselves. Events as of `startProcess`. */
export function startProgram(request: ProgramRequest, events: LaunchEvents): void {
  const { folder, files } = request;
  try {
    makeStepFolder(folder);
    writePrivate(join(folder, PROMPT), files.prompt);
    writePrivate(join(folder, PLAN), files.plan);
  } catch (error) {
    if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    setImmediate(() => events.refused(error));
    return;
  }
  startProcess({ ...request, ...request.shelled() }, events);
}

/** It takes some milliseconds to get ready, and some memory. */
const MANY = 8;
const WITHIN_MS = 10_000;
