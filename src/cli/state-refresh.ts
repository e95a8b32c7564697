// Keeps ID.yaml a moment behind the journal: at most every 200 ms while things move, less often where a refresh is dear,
// so that it takes less than a twentieth of the time, and once more, complete, before the run is released.

import { performance } from 'node:perf_hooks';

import { UsageError } from '../base/usage-error.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState } from '../kernel/state.ts';
import type { StateFile } from '../stores/state-file.ts';
import { StateYaml, stepsTouched } from '../view/state-yaml.ts';
import { complain } from './say.ts';

const INTERVAL_MIN_MS = 200;
const COST_SHARE = 20;

export interface StateRefreshOptions {
  readonly file: StateFile;
  readonly bytesMax: number;
  /** The state has become larger than the limit: the file stays as it was. */
  tooLarge(limit: string): void;
}

export class StateRefresh {
  readonly #options: StateRefreshOptions;
  #yaml: StateYaml | null = null;
  #state: RunState | null = null;
  #dirty = false;
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();
  #busy = false;
  #finished = false;
  #nextAt = 0;
  #complained = false;
  #refused = false;

  constructor(options: StateRefreshOptions) {
    this.#options = options;
  }

  seen(records: readonly JournalRecord[], state: RunState): void {
    if (this.#yaml === null) this.#yaml = new StateYaml(state);
    else this.#yaml.touch(stepsTouched(records));
    this.#state = state;
    this.#dirty = true;
    this.#schedule();
  }

  /** The file tells of everything that was seen; what comes later is not written. */
  async finish(): Promise<void> {
    this.#finished = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#writing;
    if (this.#dirty) await this.#refresh();
  }

  /** The journal cannot be written either, and that is said elsewhere. */
  silence(): void {
    this.#complained = true;
  }

  #schedule(): void {
    if (this.#timer !== null || this.#busy || this.#finished) return;
    const wait = Math.max(0, this.#nextAt - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#busy = true;
      this.#writing = this.#refresh().finally(() => {
        this.#busy = false;
        if (this.#dirty) this.#schedule();
      });
    }, wait);
  }

  async #refresh(): Promise<void> {
    const state = this.#state;
    if (this.#yaml === null || state === null) return;
    const began = performance.now();
    this.#dirty = false;
    const text = this.#yaml.text();
    if (Buffer.byteLength(text) > this.#options.bytesMax) {
      if (!this.#refused) this.#options.tooLarge(formatBytes(this.#options.bytesMax));
      this.#refused = true;
    } else {
      await this.#write(text);
    }
    const now = performance.now();
    this.#nextAt = now + Math.max(INTERVAL_MIN_MS, (now - began) * COST_SHARE);
  }

  /** The journal is the truth, so a state file that cannot be written is said, once, and no reason to stop. */
  async #write(text: string): Promise<void> {
    try {
      await this.#options.file.write(text);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      if (!this.#complained) complain(`meow: ${error.message}; it stays as it was, and what counts is the journal`);
      this.#complained = true;
    }
  }
}

/** `10MB`, as limits are written. */
function formatBytes(bytes: number): string {
  if (bytes >= 1_000_000 && bytes % 100_000 === 0) return `${bytes / 1_000_000}MB`;
  if (bytes >= 1_000 && bytes % 100 === 0) return `${bytes / 1_000}KB`;
  return `${bytes} bytes`;
}
