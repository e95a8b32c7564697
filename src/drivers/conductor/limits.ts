// How long a process may take, and how long it may be silent. Silence is that its files do not grow; they are looked at
// only when it might have lasted too long.

import { statSync } from 'node:fs';
import { ABSENT, isErrno } from '../../sys/errno.ts';

export interface LimitsRequest {
  /** How much of its time is left; null is no limit. */
  readonly timeMs: number | null;
  readonly idleMs: number | null;
  /** What it writes to. */
  readonly files: readonly string[];
  /** Told once. */
  readonly reached: (limit: 'timeout' | 'idle') => void;
}

export class Limits {
  readonly #request: LimitsRequest;
  readonly #endAt: number;
  #lookedAt = performance.now();
  #signAt = this.#lookedAt;
  #bytes: number;
  #timer: NodeJS.Timeout | null = null;

  constructor(request: LimitsRequest) {
    this.#request = request;
    this.#endAt = request.timeMs === null ? Infinity : this.#signAt + request.timeMs;
    this.#bytes = request.idleMs === null ? 0 : this.#look().bytes;
    this.#wait();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #wait(): void {
    const until = Math.min(this.#endAt, this.#signAt + (this.#request.idleMs ?? Infinity));
    if (until === Infinity) return;
    const ms = Math.max(0, Math.ceil(until - performance.now()));
    this.#timer = setTimeout(() => this.#due(), Math.min(ms, WAIT_MAX_MS));
  }

  #due(): void {
    const { idleMs, reached } = this.#request;
    const now = performance.now();
    if (now >= this.#endAt) {
      reached('timeout');
      return;
    }
    if (idleMs !== null) {
      const { bytes, silentMs } = this.#look();
      // After a clock was set, or a machine slept, nobody knows when it was written: then it counts as just now.
      const isSure = silentMs >= 0 && silentMs <= now - this.#lookedAt;
      if (bytes !== this.#bytes) this.#signAt = isSure ? now - silentMs : now;
      this.#bytes = bytes;
      this.#lookedAt = now;
      if (now - this.#signAt >= idleMs) {
        reached('idle');
        return;
      }
    }
    this.#wait();
  }

  #look(): { readonly bytes: number; readonly silentMs: number } {
    let bytes = 0;
    let writtenAt = 0;
    for (const file of this.#request.files) {
      try {
        const { size, mtimeMs } = statSync(file);
        bytes += size;
        writtenAt = Math.max(writtenAt, mtimeMs);
      } catch (error) {
        if (!isErrno(error, ...ABSENT)) throw error;
      }
    }
    return { bytes, silentMs: Date.now() - writtenAt };
  }
}

/** The longest that a timer can count. */
const WAIT_MAX_MS = 2 ** 31 - 1;
