// The one form that every workflow language compiles to: blocks of steps, as plain JSON. A run grows in one way only,
// by instantiating a block; what `Follow` lists are the ways to ask for that.

import type { JsonMap } from '../base/json.ts';
import type { CommandSpec, EffectSpec } from './effect.ts';
import type { Transition, Target } from './transition.ts';
import type { Machine, TransitionPolicy } from './machine.ts';
import type { ValueType } from './output.ts';
import type { Text, ValueTemplate } from './text.ts';

export interface Program {
  /** Of this form of Programs; a run keeps its own for as long as it lives. */
  readonly format: 2;
  readonly source: Source;
  readonly entry: string;
  readonly blocks: Readonly<Record<string, Block>>;
  readonly cleanup: Cleanup;
  readonly limits: Limits;
  /** How long steps that are running when the run begins to fail may go on. */
  readonly drainMs: number;
  /** `drain`: a failure that nobody handles ends the run. `isolate`: it ends its own line of control, the others go on. */
  readonly onFailure: 'drain' | 'isolate';
  /** Of states that answers choose among, and how each state's answers are read; a step's effect names the latter. */
  readonly machines: Readonly<Record<string, Machine>>;
  readonly steerings: Readonly<Record<string, TransitionPolicy>>;
  /** Texts that lay beside the workflow and that drivers act from, by their names; the kernel does not read them. */
  readonly attachments: Readonly<Record<string, string>>;
}

/** For people and views; the kernel does not read it. */
export interface Source {
  /** The name of one of languages/registry.ts. */
  readonly language: string;
  /** As the user named it, with the workflow: `deploy.meow.toml#main`. */
  readonly name: string;
}

export interface Cleanup {
  readonly success: CommandSpec<Text> | null;
  readonly failure: CommandSpec<Text> | null;
  readonly stop: CommandSpec<Text> | null;
}

export interface Limits {
  readonly expansionDepthMax: number;
  readonly stepsMax: number;
  readonly stateFileBytesMax: number;
  readonly recoveryDepthMax: number;
  /** How many calls may wait for each other in one line of control. */
  readonly callDepthMax: number;
}

export const DEFAULT_LIMITS: Limits = {
  expansionDepthMax: 100,
  stepsMax: 10_000,
  stateFileBytesMax: 50_000_000,
  recoveryDepthMax: 3,
  callDepthMax: 100,
};

export interface Block {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly steps: readonly Step[];
  /**
   * How its steps are named below the prefix of their frame. `path`: by their id alone. `visit-first`: `3.REVIEW`,
   * counting the visits of the line of control. `visit-last`: `fix#2`, counting the visits of the step; of a
   * line of control that is not the first below the prefix, behind its name.
   */
  readonly naming: 'path' | 'visit-first' | 'visit-last';
  /** How often one line of control may enter it, and where it goes instead; null is no limit. */
  readonly visits: { readonly max: number; readonly instead: Target } | null;
}

export interface Parameter {
  readonly name: string;
  readonly type: ValueType;
  readonly required: boolean;
  readonly fallback: ValueTemplate | null;
  readonly description: string | null;
}

export interface Step {
  /** Unique in its block, without dots. */
  readonly id: string;
  /** The author's word for what it does, for views; the kernel does not read it. */
  readonly executor: string;
  /** Ids of this block, ids below them (`each.0.build`), or patterns where `*` stands for (part of) one segment. */
  readonly needs: readonly string[];
  readonly act: Act;
  /** What follows an outcome, by its route or by the kind of its failure. `done` is the route of a plain success. */
  readonly routes: Readonly<Record<string, Transition>>;
  /** What an outcome without a route means. `tell`: it fails, and says that it had no route. */
  readonly unrouted: 'done' | 'fail' | 'tell';
  readonly onError: OnError;
  readonly retry: Retry;
  /** How often a turn is told what is wrong with its answer (`Failure.reprompt`) before that is a failure. */
  readonly repromptsMax: number;
  readonly timeout: Text | null;
  /** The agent that works on it; an agent works on one step at a time. */
  readonly agent: Text | null;
}

export type Act =
  | { readonly kind: 'effect'; readonly effect: EffectSpec<Text> }
  /** Nothing to ask of the world: the route `done` follows at once. */
  | { readonly kind: 'pass' }
  /**
   * A block below the step performs it: the outcome of the block's last step is the outcome of the step, with its route. A
   * step of the block that fails without being handled ends the block, and its failure is the outcome. Each attempt has
   * the block anew. Views show the step, and fold what is below it into it.
   */
  | { readonly kind: 'block'; readonly target: Target }
  | Each;

/** A block for each item of a list. */
export interface Each {
  readonly kind: 'each';
  readonly items:
    | { readonly kind: 'value'; readonly value: ValueTemplate }
    /** A JSON file, read when the step starts. */
    | { readonly kind: 'file'; readonly path: Text };
  readonly target: Target;
  readonly itemName: string;
  readonly indexName: string | null;
  /** Names an iteration in place of its index; it must name each by another name. */
  readonly key: Text | null;
  /** Whether more than one iteration may be open at once. True or false, or a text that comes to one of them. */
  readonly parallel: ValueTemplate;
  /** How many iterations may be open at once, where they are parallel; null is no limit. A number, or a text of one. */
  readonly width: ValueTemplate | null;
  readonly join: boolean;
}

export type OnError =
  | { readonly kind: 'fail' }
  /** The step stays failed, and what needs it goes on. */
  | { readonly kind: 'continue' }
  /** A block below the step makes good for it. */
  | { readonly kind: 'recover'; readonly target: Target };

export interface Retry {
  readonly attemptsMax: number;
  readonly delayMs: number;
  readonly backoff: 'none' | 'linear' | 'exponential';
  /** By which share of itself a delay may be shorter or longer, so that not all try again at once; 0 is not at all. */
  readonly jitter: number;
}

export const NO_RETRY: Retry = { attemptsMax: 1, delayMs: 0, backoff: 'none', jitter: 0 };

/** What a run was started with. */
export interface RunRequest {
  readonly id: string;
  /** Tells its processes from those of a run with the same id elsewhere. */
  readonly mark: string;
  readonly variables: JsonMap;
  readonly meta: Readonly<Record<string, string>>;
  /** The folder that commands run in. */
  readonly cwd: string;
  /** Lines of control may work in folders outside of it. */
  readonly allowOutside: boolean;
  readonly allowance: Allowance;
}

/** What a run may use up before it pauses; whoever resumes it may allow more. Null is no limit. */
export interface Allowance {
  readonly usd: number | null;
  readonly tokens: number | null;
  /** Of all lines of control together: gotos, calls, returns and forks. */
  readonly transitions: number | null;
  /** Turns of agents at once. */
  readonly agents: number | null;
}

export const UNLIMITED: Allowance = { usd: null, tokens: null, transitions: null, agents: null };

/** Whether a step can bring others into being: needs below it wait until it has done so. */
export function canGrow(step: Step): boolean {
  return (
    step.act.kind === 'each' ||
    step.act.kind === 'block' ||
    step.onError.kind === 'recover' ||
    Object.values(step.routes).some(({ kind }) => kind === 'expand')
  );
}
