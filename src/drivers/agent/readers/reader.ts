// How the output of an agent's program is understood. A reader is a fold over the whole lines of its stdout: it tells
// meanwhile what is known of the turn, and at the end what became of it. It does nothing else, and never throws at what
// it is given: a line that it does not understand is passed over.

import type { Json } from '../../../base/json.ts';

export interface Reader {
  /** Of a line that is very long: it is read only where it has one of these in it, and is told as `longLine` else. */
  readonly essential: readonly string[];
  /** Without its line end. */
  line(text: string): void;
  /** A line was passed over for its length: what a tool has put out, in all likelihood. */
  longLine(): void;
  /** Null until it is told. */
  readonly session: string | null;
  /** A tool has been called and has not answered: silence is no wonder. */
  readonly toolInFlight: boolean;
  /** What the agent has said last. */
  readonly text: string;
  end(exit: ProgramExit): Reading;
}

export interface ProgramExit {
  /** 128 + N where signal N ended it; null where it left none. */
  readonly status: number | null;
  /** Its end. */
  readonly stderr: string;
  /** When it ended, in milliseconds since 1970. */
  readonly at: number;
}

export interface Reading {
  readonly verdict: Verdict;
  /** How often the agent was denied the use of a tool. */
  readonly denied: number;
  /** Null where it does not tell. */
  readonly usage: RawUsage | null;
}

export type Verdict =
  /** `text`: null where it is all of stdout. */
  | { readonly kind: 'answer'; readonly text: string | null; readonly structured: Json }
  /** The agent says what went wrong. */
  | { readonly kind: 'error'; readonly message: string; readonly limit: Limit | null }
  /** It has said neither: its exit status tells. */
  | { readonly kind: 'silent' };

/** It may not work any more. */
export interface Limit {
  /** When it ends, in milliseconds since 1970; null where that is not told. */
  readonly until: number | null;
}

/**
 * As the program counts it: this turn alone, or all of the session so far. `untold`: one of these, and it is not known
 * which; in the first turn of a session they are the same.
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
