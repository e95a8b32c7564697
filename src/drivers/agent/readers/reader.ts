// The interface of readers. A reader folds the stdout lines of an agent's program: it reports progress during the turn
// and the result at the end. It has no side effects and never throws on its input: it skips lines that it does not
// understand.

import type { Json } from '../../../base/json.ts';

export interface Reader {
  /** A very long line is parsed only if it contains one of these; otherwise it is passed as `longLine`. */
  readonly essential: readonly string[];
  /** Without line end. */
  line(text: string): void;
  /** A line was skipped because of its length; it is probably tool output. */
  longLine(): void;
  /** Null until reported. */
  readonly session: string | null;
  /** A tool call is in flight, so silence is expected. */
  readonly toolInFlight: boolean;
  /** The agent's latest message. */
  readonly text: string;
  end(exit: ProgramExit): Reading;
}

export interface ProgramExit {
  /** 128 + N after signal N; null if not recorded. */
  readonly status: number | null;
  /** Last bytes of stderr. */
  readonly stderr: string;
  /** Time of exit in milliseconds since 1970. */
  readonly at: number;
}

export interface Reading {
  readonly verdict: Verdict;
  /** Number of denied tool calls. */
  readonly denied: number;
  /** Null if not reported. */
  readonly usage: RawUsage | null;
}

export type Verdict =
  /** `text` null: all of stdout. */
  | { readonly kind: 'answer'; readonly text: string | null; readonly structured: Json }
  /** The agent reported an error. */
  | { readonly kind: 'error'; readonly message: string; readonly limit: Limit | null }
  /** No result: the exit code decides. */
  | { readonly kind: 'silent' };

/** A usage limit reported by the agent. */
export interface Limit {
  /** End of the limit in milliseconds since 1970; null if not reported. */
  readonly until: number | null;
}

/**
 * What the program counts: this turn alone, or the whole session. `untold`: one of the two, unknown which; in the first
 * turn of a session they are equal.
 */
export interface RawUsage {
  readonly usd: number | null;
  readonly tokens: number | null;
  readonly scope: 'turn' | 'session' | 'untold';
}

export function answer(text: string | null, structured: Json = null): Verdict {
  return { kind: 'answer', text, structured };
}

export function error(message: string, limit: Limit | null = null): Verdict {
  return { kind: 'error', message, limit };
}

export const SILENT: Verdict = { kind: 'silent' };

// Tool calls in flight.

export class OpenCalls {
  readonly #ids = new Set<string>();

  begin(id: string | null): void {
    if (id !== null && this.#ids.size < CALLS_MAX) this.#ids.add(id);
  }

  end(id: string | null): void {
    if (id !== null) this.#ids.delete(id);
  }

  endAll(): void {
    this.#ids.clear();
  }

  get any(): boolean {
    return this.#ids.size > 0;
  }
}

/** More than any agent makes at once. */
const CALLS_MAX = 1_000;

// The agent's latest message; a message that arrives in pieces is joined. A message over the size limit counts as none.

export class LatestMessage {
  #pieces: string[] = [];
  #length = 0;

  /** Starts a new message. */
  begin(): void {
    this.#pieces = [];
    this.#length = 0;
  }

  add(piece: string): void {
    this.#length += piece.length;
    if (this.#length <= LENGTH_MAX) this.#pieces.push(piece);
  }

  get text(): string {
    if (this.#pieces.length > 1) this.#pieces = [this.#pieces.join('')];
    return this.#pieces[0] ?? '';
  }

  get isTooLong(): boolean {
    return this.#length > LENGTH_MAX;
  }
}

const LENGTH_MAX = 64_000_000;

export const TOO_LONG = `its answer has more than ${LENGTH_MAX} characters`;
