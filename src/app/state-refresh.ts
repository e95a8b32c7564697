// Keeps ID.yaml a moment behind the journal: at most every 200 ms while things move, less often where a refresh is dear,
// so that it takes less than a twentieth of the time, and once more, complete, before the run is released. It never tells
// of what the journal does not hold: while an append is under way nothing is rendered, and after one that failed never
// again.

import { UsageError } from '../base/usage-error.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import type { RunState } from '../kernel/state.ts';
import { isSystemError } from '../sys/errno.ts';
import type { StateFile } from '../stores/state-file.ts';
import { StateYaml, changedSteps } from '../view/state-yaml.ts';

const INTERVAL_MIN_MS = 200;
const COST_SHARE = 20;

export interface StateRefreshOptions {
  readonly file: StateFile;
  readonly bytesMax: number;
  /** Whether the state tells of nothing but what is durable. It does whenever something is seen. */
  durable(): boolean;
  /** The state has become larger than the limit: the file stays as it was. */
  tooLarge(limit: string): void;
  /** Takes a line for people. */
  warn(line: string): void;
}

export class StateRefresh {
  readonly #options: StateRefreshOptions;
  #yaml: StateYaml | null = null;
  #state: RunState | null = null;
  #dirty = false;
  #timer: NodeJS.Timeout | null = null;
  /** It was time to refresh, and the state was not durable. */
  #late = false;
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
    else this.#yaml.invalidate(changedSteps(records));
    this.#state = state;
    this.#dirty = true;
    if (this.#late && !this.#finished) this.#begin();
    else this.#schedule();
  }

  /** The file tells of everything that was seen, where that can still be told apart; what comes later is not written. */
  async finish(): Promise<void> {
    this.#finished = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#writing;
    if (this.#dirty && this.#options.durable()) await this.#refresh();
  }

  /** The journal cannot be written either, and that is said elsewhere. */
  silence(): void {
    this.#complained = true;
  }

  #schedule(): void {
    if (this.#timer !== null || this.#busy || this.#late || this.#finished) return;
    const wait = Math.max(0, this.#nextAt - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#late = !this.#options.durable();
      if (!this.#late) this.#begin();
    }, wait);
  }

  #begin(): void {
    this.#late = false;
    this.#busy = true;
    this.#writing = this.#refresh().finally(() => {
      this.#busy = false;
      if (this.#dirty) this.#schedule();
    });
  }

  /** The text is taken before anything else can happen. */
  async #refresh(): Promise<void> {
    const state = this.#state;
    if (this.#yaml === null || state === null) return;
    const began = performance.now();
    this.#dirty = false;
    const pieces = this.#yaml.pieces();
    const bytes = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    if (bytes > this.#options.bytesMax) {
      const limit = formatBytes(this.#options.bytesMax);
      if (!this.#refused) this.#options.tooLarge(limit);
      this.#refused = true;
      await this.#write([this.#yaml.withoutSteps(`workflow file size exceeded: ${limit}; the steps are left out`)]);
    } else {
      await this.#write(pieces);
    }
    const now = performance.now();
    this.#nextAt = now + Math.max(INTERVAL_MIN_MS, (now - began) * COST_SHARE);
  }

  /** The journal is the truth, so a state file that cannot be written is said, once, and no reason to stop. */
  async #write(text: readonly string[]): Promise<void> {
    try {
      await this.#options.file.write(text);
    } catch (error) {
      if (!(error instanceof UsageError) && !isSystemError(error)) throw error;
      const what = error instanceof UsageError ? error.message : `cannot write the state file: ${error.message}`;
      if (!this.#complained) this.#options.warn(`${what}; it stays as it was, and what counts is the journal`);
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
