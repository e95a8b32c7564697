// Requests to the world, as data, and the world's answers. The kernel describes an effect, a driver performs it.
// `T` is the form of its texts: `Text` with holes in a Program, `FilledText` when it is asked for.

import type { Json } from '../base/json.ts';
import type { Channel } from './adapter.ts';
import type { Failure } from './failure.ts';
import type { Transition } from './transition.ts';
import type { Capture, Expectation, Outputs } from './output.ts';
import type { ConductedSpec } from './conducted.ts';
import type { FilledText } from './text.ts';
import type { Usage } from './usage.ts';

export type EffectSpec<T> =
  | CommandSpec<T>
  | TurnSpec<T>
  | SpawnSpec<T>
  | AttendSpec
  | PromptSpec<T>
  | KillSpec<T>
  | ReadSpec<T>
  | ConductedSpec
  | GateSpec<T>;

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
  /** Of a condition: statuses that say neither, but that it could not be asked. */
  readonly errors: readonly number[];
  /** What its output says to follow is read by this of the Program's steerings; null: it says nothing about that. */
  readonly steering: string | null;
}

/** One headless turn of an agent, in the session that the step was entered with. */
export interface TurnSpec<T> {
  readonly kind: 'turn';
  readonly adapter: T;
  readonly prompt: T;
  /** Null: the folder the run was started in. */
  readonly cwd: T | null;
  /** Null leaves the choice to the adapter. */
  readonly model: T | null;
  readonly effort: T | null;
  /** How long it may be silent; null is no limit. */
  readonly idleMs: number | null;
  /** What its answer says to follow is read by this of the Program's steerings; null: it says nothing about that. */
  readonly steering: string | null;
}

/** Start an agent that stays: it is prompted later, step by step. Answered when it can take a prompt. */
export interface SpawnSpec<T> {
  readonly kind: 'spawn';
  readonly agent: T;
  readonly adapter: T;
  /** Null: the folder the run was started in. */
  readonly cwd: T | null;
  readonly env: Readonly<Record<string, T>>;
  /** How it is talked to; null leaves the choice to the adapter. */
  readonly channel: Channel | null;
  /** The session to go on with; null begins one. */
  readonly resumeSession: T | null;
  /** It goes on in a copy of that session, which stays as it is. */
  readonly forks: boolean;
  /** Put behind the adapter's own start command. */
  readonly args: T | null;
}

/** Watch over an agent that was started, until it is gone. The answer is that it is gone. */
export interface AttendSpec {
  readonly kind: 'attend';
  readonly agent: string;
  readonly adapter: string;
}

/**
 * Give an agent a task. `fire-forget` is answered when the agent has it; the others when the agent has reported
 * (`step-reported`) and the driver has been told so.
 */
export interface PromptSpec<T> {
  readonly kind: 'prompt';
  readonly agent: T;
  readonly prompt: T;
  readonly mode: 'autonomous' | 'interactive' | 'fire-forget';
  readonly expects: readonly Expectation[];
}

/** End an agent. One that is not there has been ended. */
export interface KillSpec<T> {
  readonly kind: 'kill';
  readonly agent: T;
  readonly graceful: boolean;
  /** Between asking it to end and ending it. */
  readonly graceMs: number;
}

/** Read a list from a JSON file: the output `items`. */
export interface ReadSpec<T> {
  readonly kind: 'read';
  readonly path: T;
  /** What a relative path is relative to: the folder that commands run in, or the run's own. */
  readonly from: 'cwd' | 'run-folder';
}

/** A decision that only a person can make. No driver performs it: the kernel waits for it. */
export interface GateSpec<T> {
  readonly kind: 'gate';
  /** Its name within the run. */
  readonly gate: T;
  readonly prompt: T;
  /** False: nobody waits for the decision, and it changes nothing. */
  readonly blocks: boolean;
  /** Who may decide; null: anybody. */
  readonly approvers: readonly string[] | null;
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
  /** The line of control that asks: the agent, where the effect is a turn. */
  readonly lane: string;
  /** Variables in sight and outputs of needed steps, for the command's environment. */
  readonly variables: Readonly<Record<string, Json>>;
}

/** What is known of an effect before it is answered. What is left out has not changed. */
export interface Progress {
  /** The session that it takes place in, as soon as that is seen. */
  readonly session?: string;
  /** How far a prompt has come. */
  readonly delivery?: Delivery;
  /** What the agent asks that only a person may answer; null: it asks no longer. */
  readonly dialog?: Dialog | null;
  /** What nobody could make sure of, and what to do about it: for people. A part of a sentence. */
  readonly doubt?: string;
}

/**
 * Of a prompt: on its way, in the agent's hands, waiting behind its present work; or why it is in none. `draft-stuck`: it
 * is in the agent's input, and cannot be submitted. `blocked-on-dialog`: the agent asks something else first.
 */
export type Delivery = 'sending' | 'accepted' | 'queued' | 'draft-stuck' | 'blocked-on-dialog' | 'not-ready' | 'dead';

export interface Dialog {
  /** What kind of question it is: `permission`. */
  readonly name: string;
  /** As a person would see it. */
  readonly text: string;
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
  readonly follows: readonly Transition[] | null;
  /** What the answer wants to be shown to whoever watches. */
  readonly printed: readonly string[];
  /** The session that the turn took place in, or that a started agent is in. */
  readonly session: string | null;
  /** What it cost; null where it costs nothing. */
  readonly usage: Usage | null;
}

export function success(outputs: Outputs = {}, more: Partial<Success> = {}): Success {
  const nothing = { kept: [], route: null, follows: null, printed: [], session: null, usage: null };
  return { ...nothing, ...more, kind: 'success', outputs };
}

/** Whether it is a turn of the agent that its line of control is, in that one's session. */
export function isTurn(effect: EffectSpec<unknown> | null): boolean {
  return effect?.kind === 'turn' || effect?.kind === 'work' || effect?.kind === 'evaluate';
}

/** Drivers exist for these; gates are the kernel's own. */
export type DriverKind = Exclude<EffectSpec<unknown>['kind'], 'gate'>;
