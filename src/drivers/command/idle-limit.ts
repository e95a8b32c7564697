// Limits how long a process may be silent. Silence means that its files do not grow; they are checked only when the
// limit may have been reached.

import { statSync } from 'node:fs';
import { ABSENT, isErrno } from '../../sys/errno.ts';

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
    if (now - this.#signAt >= idleMs) {
      reached();
      return;
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

/** Longest timer of the system. */
const WAIT_MAX_MS = 2 ** 31 - 1;
