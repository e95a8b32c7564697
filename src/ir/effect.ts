// Effects: requests to the outside world, as data, and their outcomes. The kernel describes an effect, a driver
// performs it. `T` is the form of its texts: `Text` with placeholders in a Program, `FilledText` when it is started.

import type { Json } from '../base/json.ts';
import type { Channel } from './adapter.ts';
import type { ConductedSpec } from './conductor.ts';
import type { Failure } from './failure.ts';
import type { Capture, Expectation, Outputs, Usage } from './output.ts';
import type { FilledText } from './text.ts';
import type { Transition } from './transition.ts';

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

/** All kinds: a run of another version may name others. */
export const EFFECT_KINDS: Readonly<Record<EffectSpec<unknown>['kind'], true>> = {
  command: true,
  turn: true,
  spawn: true,
  attend: true,
  prompt: true,
  kill: true,
  read: true,
  git: true,
  inspect: true,
  gate: true,
};

export interface CommandSpec<T> {
  readonly kind: 'command';
  readonly script: T;
  /** Null: the folder in which the run was started. */
  readonly cwd: T | null;
  readonly env: Readonly<Record<string, T>>;
  readonly captures: readonly Capture<T>[];
  /** `success`: any status but 0 is a failure. `condition`: 0 takes the route `true`, any other the route `false`. */
  readonly verdict: 'success' | 'condition';
  /** Exit codes of a condition that mean an error instead of true or false. */
  readonly errors: readonly number[];
  /** Transition policy for reading its output, by name; null: the output contains no transitions. */
  readonly steering: string | null;
  /** How long it may be silent, by its output; absent: forever. */
  readonly idleMs?: number;
  /** Names of the variables that it has of the engine's environment; absent: all, and where the run is talked to. */
  readonly inherit?: readonly string[];
}

/** The environment variable in which a command finds a variable of its step, or an output of a step that it needs. */
export function environmentName(variable: string): string {
  return `MEOW_VAR_${variable.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;
}

/** A script with the usual defaults. */
export function commandSpec<T>(script: T, cwd: T | null, more: Partial<CommandSpec<T>> = {}): CommandSpec<T> {
  const defaults = { env: {}, captures: [], verdict: 'success', errors: [], steering: null } as const;
  return { kind: 'command', script, cwd, ...defaults, ...more };
}

/** One headless turn of an agent, in the session of its frame. */
export interface TurnSpec<T> {
  readonly kind: 'turn';
  readonly adapter: T;
  readonly prompt: T;
  /** Null: the folder in which the run was started. */
  readonly cwd: T | null;
  /** Null: the adapter's default. */
  readonly model: T | null;
  readonly effort: T | null;
  /** How long it may be silent; null is unlimited. */
  readonly idleMs: number | null;
  /** Transition policy for reading its answer, by name; null: the answer contains no transitions. */
  readonly steering: string | null;
}

/** Start an agent that later steps prompt. Succeeds when it accepts prompts. */
export interface SpawnSpec<T> {
  readonly kind: 'spawn';
  readonly agent: T;
  readonly adapter: T;
  /** Null: the folder in which the run was started. */
  readonly cwd: T | null;
  readonly env: Readonly<Record<string, T>>;
  /** Null: the adapter's preferred channel. */
  readonly channel: Channel | null;
  /** The session to resume; null starts a new one. */
  readonly resumeSession: T | null;
  /** Resumes a copy of that session, which itself stays unchanged. */
  readonly forks: boolean;
  readonly args: T | null;
}

/** Watch a running agent. The outcome is its exit. */
export type AttendSpec = Readonly<{ kind: 'attend'; agent: string; adapter: string }>;

/** Prompt an agent. `fire-forget` succeeds on delivery; other modes once the driver knows of the `step-reported`. */
export interface PromptSpec<T> {
  readonly kind: 'prompt';
  readonly agent: T;
  readonly prompt: T;
  readonly mode: 'autonomous' | 'interactive' | 'fire-forget';
  readonly expects: readonly Expectation[];
}

/** Kill an agent. Succeeds if it is not running. */
export interface KillSpec<T> {
  readonly kind: 'kill';
  readonly agent: T;
  readonly graceful: boolean;
  /** Time between the request to exit and the kill. */
  readonly graceMs: number;
}

/** Read a list from a JSON file into the output `items`. */
export interface ReadSpec<T> {
  readonly kind: 'read';
  readonly path: T;
  /** What relative paths are relative to: the folder of commands, or the run's own folder. */
  readonly from: 'cwd' | 'run-folder';
  /** Of a stored output: `StoredFile`. */
  readonly sha256?: string;
}

/** A decision that only a person can make. No driver performs it; the kernel waits for it. */
export interface GateSpec<T> {
  readonly kind: 'gate';
  readonly gate: T;
  readonly prompt: T;
  /** False: the step does not wait for the verdict, which changes nothing. */
  readonly blocks: boolean;
  /** Who may decide, as ir/approvers.ts says; null: any person. */
  readonly approvers: readonly string[] | null;
  /** Further approvers that are known only when the gate is asked, one a line; absent: none. */
  readonly moreApprovers?: T;
}

export type Session = Readonly<{ kind: 'fresh' } | { kind: 'resume'; id: string } | { kind: 'fork'; id: string }>;

export interface Effect {
  /** `step#attempt`: derived, so that a replay names the same effects. */
  readonly id: string;
  readonly step: string;
  readonly attempt: number;
  readonly spec: EffectSpec<FilledText>;
  readonly session: Session;
  /** The lane of the step; for a turn, the agent. */
  readonly lane: string;
  /** Visible variables and outputs of needed steps, for the command's environment. */
  readonly variables: Readonly<Record<string, Json>>;
  /** Its texts have values of secrets: set by drivers for drivers, never recorded. */
  readonly hasSecrets?: true;
}

/** Progress before the outcome. Absent fields are unchanged. */
export interface Progress {
  readonly session?: string;
  readonly delivery?: Delivery;
  /** The agent's question that only a person may answer; null: the question is gone. */
  readonly dialog?: Dialog | null;
  /** A doubt to report to people, with what to do: part of a sentence. */
  readonly doubt?: string;
  /** All texts to show to the user so far. */
  readonly printed?: readonly string[];
}

/**
 * Delivery status of a prompt. `draft-stuck`: it was put in, and nothing shows that the agent has it; or an old draft
 * cannot be cleared. `blocked-on-dialog`: the agent asks something else first.
 */
export type Delivery = 'sending' | 'accepted' | 'queued' | 'draft-stuck' | 'blocked-on-dialog' | 'not-ready' | 'dead';

export interface Dialog {
  /** Type of question, such as `permission`. */
  readonly name: string;
  /** As a person would see it. */
  readonly text: string;
}

/** `endedAt`: when it ended, in milliseconds since 1970, if a driver found it after the engine had been absent. */
export type Outcome = (Success | { readonly kind: 'failure'; readonly failure: Failure }) & {
  readonly endedAt?: number;
};

export interface Success {
  readonly kind: 'success';
  readonly outputs: Outputs;
  /** Names of outputs stored in files because they are too large for the journal. */
  readonly kept: readonly string[];
  /** The route taken; null means `done`. */
  readonly route: string | null;
  /** Transitions from the answer itself. They replace the step's routes. */
  readonly follows: readonly Transition[] | null;
  /** Workflows that the transitions enter and that the Program does not have yet: each a `ProgramPart` as JSON. */
  readonly grown?: readonly string[];
  /** All texts to show to the user, with those reported as progress. */
  readonly printed: readonly string[];
  /** The session of the turn, or of the started agent. */
  readonly session: string | null;
  /** Null if it cost nothing. */
  readonly usage: Usage | null;
}

export function success(outputs: Outputs = {}, more: Partial<Success> = {}): Success {
  const defaults = { kept: [], route: null, follows: null, printed: [], session: null, usage: null };
  return { ...defaults, ...more, kind: 'success', outputs };
}

export function isTurn(effect: EffectSpec<unknown> | null): boolean {
  return effect?.kind === 'turn';
}

/** The kinds that drivers perform; the kernel handles gates itself. */
export type DriverKind = Exclude<EffectSpec<unknown>['kind'], 'gate'>;
