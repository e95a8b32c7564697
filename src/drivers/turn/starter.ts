// Starts the programs of turns. As long as they are few we do it ourselves. Where one follows upon another within moments,
// what each start takes of the engine's only thread is most of what a turn costs, and another process does it (recorder.ts).

import type { LaunchEvents } from '../perl-starter.ts';
import { startProcess } from '../process.ts';
import { findRecorder } from './recorder.ts';
import type { ProgramRequest, Recorder } from './recorder.ts';

export class Starter {
  readonly #environment: Readonly<Record<string, string>>;
  /** Undefined until one is worth its while; null where there is none. */
  #recorder: Recorder | null | undefined;
  /** When the latest were started. */
  readonly #times: number[] = [];

  constructor(environment: Readonly<Record<string, string>>) {
    this.#environment = environment;
  }

  start(request: ProgramRequest, events: LaunchEvents): void {
    if (this.#recorder === undefined && this.#areMany()) this.#recorder = findRecorder(this.#environment);
    if (this.#recorder?.ready === true) this.#recorder.start(request, events);
    else startProcess(request, events);
  }

  #areMany(): boolean {
    const now = performance.now();
    this.#times.push(now);
    if (this.#times.length < MANY) return false;
    return now - (this.#times.shift() ?? now) < WITHIN_MS;
  }
}

/** It takes some milliseconds to get ready, and some memory. */
const MANY = 8;
const WITHIN_MS = 10_000;
