// Writes the state file ID.yaml while the run proceeds: at most every 200 ms, less often if a write is expensive, so that
// it takes less than a twentieth of the time, and once more before the run is released. It never shows what the journal
// does not hold: it writes nothing while an append is in flight, and nothing after one that failed.

import { UsageError } from '../base/errors.ts';
import { isSystemError } from '../sys/errors.ts';
import type { StateFile } from '../sys/files.ts';
import { changedSteps, StateYaml } from '../view/state-yaml.ts';
import type { JournalRecord, LiveRun, RunObserver, RunState } from './observer.ts';

const INTERVAL_MIN_MS = 200;
const COST_SHARE = 20;

export interface StateRefreshOptions {
  readonly file: StateFile;
  readonly bytesMax: number;
  /** Called once if the state has become larger than the limit. */
  tooLarge(limit: string): void;
  /** Takes a line for people. */
  warn(line: string): void;
}

export class StateRefresh implements RunObserver {
  readonly #options: StateRefreshOptions;
  #run: LiveRun | null = null;
  #yaml: StateYaml | null = null;
  #dirty = false;
  #timer: NodeJS.Timeout | undefined;
  /** A write was due while the state was not durable. */
  #late = false;
  #writing: Promise<void> | null = null;
  #finished = false;
  #nextAt = 0;
  /** The first problem of the file, and whether it was reported. */
  #problem: string | null = null;
  #warned = false;
  #overLimit = false;

  constructor(options: StateRefreshOptions) {
    this.#options = options;
  }

  open(run: LiveRun): void {
    this.#run = run;
    this.observe([], run.state);
  }

  observe(records: readonly JournalRecord[], state: RunState): void {
    if (this.#yaml === null) this.#yaml = new StateYaml(state);
    else this.#yaml.invalidate(changedSteps(records));
    this.#dirty = true;
    this.#warn();
    if (this.#late && !this.#finished) this.#begin();
    else this.#schedule();
  }

  async close(): Promise<void> {
    this.#finished = true;
    clearTimeout(this.#timer);
    await this.#writing;
    if (this.#dirty && this.#durable) await this.#refresh();
  }

  get #durable(): boolean {
    return this.#run?.durable === true;
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#writing !== null || this.#late || this.#finished) return;
    const wait = Math.max(0, this.#nextAt - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#late = !this.#durable;
      if (!this.#late) this.#begin();
    }, wait);
  }

  #begin(): void {
    this.#late = false;
    this.#writing = this.#refresh().finally(() => {
      this.#writing = null;
      if (this.#dirty) this.#schedule();
    });
  }

  /** Renders at once, while the state is durable; then writes. */
  async #refresh(): Promise<void> {
    if (this.#yaml === null) return;
    const began = performance.now();
    this.#dirty = false;
    const pieces = this.#yaml.pieces();
    const bytes = pieces.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
    if (bytes > this.#options.bytesMax) {
      const limit = formatBytes(this.#options.bytesMax);
      if (!this.#overLimit) this.#options.tooLarge(limit);
      this.#overLimit = true;
      await this.#write([this.#yaml.withoutSteps(`workflow file size exceeded: ${limit}; the steps are left out`)]);
    } else {
      await this.#write(pieces);
    }
    const now = performance.now();
    this.#nextAt = now + Math.max(INTERVAL_MIN_MS, (now - began) * COST_SHARE);
  }

  /** The journal is the truth: if the state file cannot be written, the run continues with a warning. */
  async #write(text: readonly string[]): Promise<void> {
    try {
      await this.#options.file.write(text);
    } catch (error) {
      if (!(error instanceof UsageError) && !isSystemError(error)) throw error;
      const what = error instanceof UsageError ? error.message : `cannot write the state file: ${error.message}`;
      this.#problem ??= `${what}; the journal is not affected`;
      this.#warn();
    }
  }

  /** Not while an append is in flight: it may fail for the same reason, and that is reported elsewhere. */
  #warn(): void {
    if (this.#problem === null || this.#warned || !this.#durable) return;
    this.#warned = true;
    this.#options.warn(this.#problem);
  }
}

/** `10MB`, in the form of the configuration. */
function formatBytes(bytes: number): string {
  if (bytes >= 1_000_000 && bytes % 100_000 === 0) return `${bytes / 1_000_000}MB`;
  if (bytes >= 1_000 && bytes % 100 === 0) return `${bytes / 1_000}KB`;
  return `${bytes} bytes`;
}
