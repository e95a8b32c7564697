// Requests to the world, as data, and the world's answers. The kernel describes an effect, a driver performs it.
// `T` is the form of its texts: `Text` with holes in a Program, `FilledText` when it is asked for.

import type { Json } from '../base/json.ts';
import type { Failure } from './failure.ts';
import type { Follow } from './follow.ts';
import type { Capture, Outputs } from './output.ts';
import type { FilledText } from './text.ts';

export type EffectSpec<T> = CommandSpec<T> | TurnSpec<T> | GateSpec<T>;

/** Run a script in a shell. */
export interface CommandSpec<T> {
  readonly kind: 'command';
  readonly script: T;
  /** Null: the folder the run was started in. */
  readonly cwd: T | null;
  readonly env: Readonly<Record<string, T>>;
  readonly captures: readonly Capture<T>[];
  /** `success`: any status but 0 is a failure. `condition`: 0 is the route `true`, another status the route `false`. */
  readonly verdict: 'success' | 'condition';
}

/** One headless turn of an agent, in the session that the step was entered with. */
export interface TurnSpec<T> {
  readonly kind: 'turn';
  readonly adapter: string;
  readonly prompt: T;
}

/** A decision that only a person can make. No driver performs it: the kernel waits for it. */
export interface GateSpec<T> {
  readonly kind: 'gate';
  /** Its name within the run. */
  readonly gate: T;
  readonly prompt: T;
}

/** Which session an agent's turn continues. */
export type Session =
  | { readonly kind: 'fresh' }
  | { readonly kind: 'resume'; readonly id: string }
  | { readonly kind: 'fork'; readonly id: string };

export interface Effect {
  /** `step#attempt`: derived, so that a replay names the same effects. */
  readonly id: string;
  readonly step: string;
  readonly attempt: number;
  readonly spec: EffectSpec<FilledText>;
  readonly session: Session;
  /** Variables in sight and outputs of needed steps, for the command's environment. */
  readonly variables: Readonly<Record<string, Json>>;
}

export type Outcome = Success | { readonly kind: 'failure'; readonly failure: Failure };

export interface Success {
  readonly kind: 'success';
  readonly outputs: Outputs;
  /** Names of outputs that are too large for the journal: their value says in which file they are kept. */
  readonly kept: readonly string[];
  /** Which of the step's routes this outcome takes; null takes `done`. */
  readonly route: string | null;
  /** Transitions that the answer itself asked for. They stand in place of the step's routes. */
  readonly follows: readonly Follow[] | null;
  /** The session that the turn took place in. */
  readonly session: string | null;
}

export function success(outputs: Outputs = {}, more: Partial<Success> = {}): Success {
  return { kept: [], route: null, follows: null, session: null, ...more, kind: 'success', outputs };
}

/** Drivers exist for these; gates are the kernel's own. */
export type DriverKind = Exclude<EffectSpec<unknown>['kind'], 'gate'>;
