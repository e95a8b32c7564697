// The Program: the common form that every language compiles to. Blocks of steps, as plain JSON. A run grows only by
// instantiating a block, which a `Transition` asks for.

import { type JsonMap, own } from '../base/json.ts';
import type { Permissions } from './adapter.ts';
import type { CommandSpec, EffectSpec } from './effect.ts';
import type { FailureKind } from './failure.ts';
import type { Machine, TransitionPolicy } from './machine.ts';
import type { ValueType } from './output.ts';
import type { Text, ValueTemplate } from './text.ts';
import type { Target, Transition } from './transition.ts';

export interface Program {
  /** Format version; a run keeps its Program unchanged. */
  readonly format: 2;
  readonly source: Source;
  readonly entry: string;
  readonly blocks: Readonly<Record<string, Block>>;
  /** Scripts, by how the run ends. */
  readonly cleanup: Readonly<Record<'success' | 'failure' | 'stop', CommandSpec<Text> | null>>;
  readonly limits: Limits;
  /** How long running steps may continue after a failure. */
  readonly drainMs: number;
  /** `drain`: an unhandled failure ends the run. `isolate`: it ends its own lane only. */
  readonly onFailure: 'drain' | 'isolate';
  /** State machines, and how each state's answers are read. Effects refer to the latter by name. */
  readonly machines: Readonly<Record<string, Machine>>;
  readonly steerings: Readonly<Record<string, TransitionPolicy>>;
  /** Texts stored with the Program for drivers, by name; the kernel does not read them. */
  readonly attachments: Readonly<Record<string, string>>;
  /** Budget of a run that is started without one, in dollars. */
  readonly budgetUsd?: number;
}

/** For people and views; the kernel does not read it. */
export interface Source {
  /** Name in languages/registry.ts. */
  readonly language: string;
  /** As the user named it, with the workflow: `deploy.meow.toml#main`. */
  readonly name: string;
}

export const DEFAULT_LIMITS = {
  expansionDepthMax: 100,
  stepsMax: 10_000,
  stateFileBytesMax: 50_000_000,
  recoveryDepthMax: 3,
  callDepthMax: 100,
} as const;
export type Limits = Readonly<Record<keyof typeof DEFAULT_LIMITS, number>>;

export const DEFAULT_DRAIN_MS = 600_000;

export interface Block {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  readonly steps: readonly Step[];
  /**
   * How its steps are named below the prefix of their frame. `path`: by id. `visit-first`: `3.REVIEW`, counting visits
   * of the lane. `visit-last`: `fix#2`, counting visits of the step; lanes other than the first below the prefix add
   * their name.
   */
  readonly naming: 'path' | 'visit-first' | 'visit-last';
  /** Maximum of visits per lane, and the block to enter instead; null is unlimited. */
  readonly visits: { readonly max: number; readonly instead: Target } | null;
}

export interface Parameter {
  readonly name: string;
  readonly type: ValueType;
  readonly required: boolean;
  readonly fallback: ValueTemplate | null;
  readonly description: string | null;
  /** Its values are secrets: its default, if there is one, is a reference. */
  readonly secret?: true;
}

export interface Step {
  /** Unique in its block, without dots. */
  readonly id: string;
  /** The author's name for the kind of step, for views; the kernel does not read it. */
  readonly executor: string;
  /** Ids in this block, ids below them (`each.0.build`), or patterns in which `*` matches (part of) one segment. */
  readonly needs: readonly string[];
  readonly act: Act;
  /** Transitions by route or by kind of failure. `done` is the route of a plain success. */
  readonly routes: Readonly<Record<string, Transition>>;
  /** Effect of an outcome without a route. `tell`: it fails with a message that says so. */
  readonly unrouted: 'done' | 'fail' | 'tell';
  readonly onError: OnError;
  readonly retry: Retry;
  /** How often an invalid answer is corrected (`Failure.reprompt`) before the step fails. */
  readonly repromptsMax: number;
  readonly timeout: Text | null;
  /** The agent that works on it, one step at a time. */
  readonly agent: Text | null;
}

export type Act =
  | { readonly kind: 'effect'; readonly effect: EffectSpec<Text> }
  /** No effect: takes the route `done` at once. */
  | { readonly kind: 'pass' }
  /**
   * A block below the step performs it. The outcome of the block's last step, with its route, is the outcome of the
   * step. An unhandled failure inside ends the block and is the outcome. Each attempt instantiates the block again.
   * Views show only the outer step.
   */
  | { readonly kind: 'block'; readonly target: Target }
  | Each
  | Loop;

/** One block per item of a list. */
export interface Each {
  readonly kind: 'each';
  readonly items:
    | { readonly kind: 'value'; readonly value: ValueTemplate }
    /** A JSON file, read when the step starts. */
    | { readonly kind: 'file'; readonly path: Text };
  readonly target: Target;
  readonly itemName: string;
  readonly indexName: string | null;
  /** Names iterations instead of their index; names must be unique. */
  readonly key: Text | null;
  /** Whether iterations may run concurrently: a boolean, or a text that becomes one. */
  readonly parallel: ValueTemplate;
  /** Maximum of concurrent iterations; null is unlimited. A number, or a text that becomes one. */
  readonly width: ValueTemplate | null;
  readonly join: boolean;
}

/** One block after another, in rounds. In each, the variable `round` is its number, from 1. */
export interface Loop {
  readonly kind: 'loop';
  readonly target: Target;
  readonly check: LoopCheck;
  /** Maximum of rounds: a number from 1, or a text that becomes one. */
  readonly roundsMax: ValueTemplate;
  readonly delayMs: number;
  /** After the last round, if the loop is not over. `end`: the step is done. `expand`: it is done after a block. */
  readonly exhausted:
    | { readonly kind: 'fail' }
    | { readonly kind: 'end' }
    | { readonly kind: 'expand'; readonly target: Target };
}

export type LoopCheck =
  /** A block whose last step takes the route `true` or `false`. `before` a round, false ends the loop; `after` it, true. */
  | { readonly kind: 'block'; readonly when: 'before' | 'after'; readonly target: Target }
  /** An output of a step of the round, or a part of it: true, or the text `true`, ends the loop. */
  | { readonly kind: 'output'; readonly step: string; readonly path: readonly string[] };

export type OnError =
  | { readonly kind: 'fail' }
  /** The step stays failed, and dependent steps run. */
  | { readonly kind: 'continue' }
  | { readonly kind: 'recover'; readonly target: Target };

export interface Retry {
  readonly attemptsMax: number;
  readonly delayMs: number;
  readonly backoff: 'none' | 'linear' | 'exponential';
  /** Random share by which a delay is shortened or extended, so that retries do not coincide; 0 is none. */
  readonly jitter: number;
  /** Kinds of failure that are retried; absent: all. */
  readonly kinds?: readonly FailureKind[];
}

export const NO_RETRY: Retry = { attemptsMax: 1, delayMs: 0, backoff: 'none', jitter: 0 };

/** A step with the usual defaults: it needs nothing, and its failure counts. */
export function stepOf(id: string, executor: string, act: Act, more: Partial<Step> = {}): Step {
  return {
    id,
    executor,
    needs: [],
    act,
    routes: {},
    unrouted: 'done',
    onError: { kind: 'fail' },
    retry: NO_RETRY,
    repromptsMax: 0,
    timeout: null,
    agent: null,
    ...more,
  };
}

/** A workflow that a run enters by a path that nobody wrote before: what it adds to the Program. */
export interface ProgramPart extends Pick<Program, 'blocks' | 'machines' | 'steerings'> {
  /** The machine whose state names the path. */
  readonly machine: string;
  readonly path: string;
  readonly entry: string;
}

export function partOf(json: string): ProgramPart {
  return JSON.parse(json) as ProgramPart;
}

export function withPart(program: Program, part: ProgramPart): Program {
  const { machine, path, entry } = part;
  const machines = { ...program.machines, ...part.machines };
  const from = own(machines, machine);
  const entered = from === undefined ? {} : { [machine]: { ...from, workflows: { ...from.workflows, [path]: entry } } };
  return {
    ...program,
    blocks: { ...program.blocks, ...part.blocks },
    machines: { ...machines, ...entered },
    steerings: { ...program.steerings, ...part.steerings },
  };
}

/** The request that started a run. */
export interface RunRequest {
  readonly id: string;
  /** Distinguishes its processes from those of a run with the same id elsewhere. */
  readonly mark: string;
  readonly variables: JsonMap;
  readonly meta: Readonly<Record<string, string>>;
  /** The folder in which commands run. */
  readonly cwd: string;
  /** The folder of the run's own files; absent in runs of earlier versions. Absolute. */
  readonly folder?: string;
  /** Lanes may work in folders outside of it. */
  readonly allowOutside: boolean;
  /** It starts no turn in quiet hours; absent: it does. */
  readonly background?: true;
  /** What agents may do without asking. Absent if nobody chose. */
  readonly permissions?: Permissions;
  readonly allowance: Allowance;
  /** Absent: none. */
  readonly budgets?: Budgets;
  /** The run whose budget it shares, because it is a fork of it, directly or through others; absent if there is none. */
  readonly origin?: string;
  /** Trace context of the program that started the run (W3C `traceparent`); absent if there is none. */
  readonly traceparent?: string;
  /** What the command line said, for forks with another workflow; absent in runs of earlier versions. */
  readonly given?: GivenFlags;
}

export interface GivenFlags {
  /** The workflow, as named in the folder of the run. */
  readonly reference: string;
  /** Names of variables. */
  readonly variables: readonly string[];
  /** Paths of the files whose texts are the values of variables, by name, also those of defaults. */
  readonly files: Readonly<Record<string, string>>;
  readonly allowance: Partial<Allowance>;
}

/** Limits that pause a run when they are reached; a resume may raise them. Null is unlimited. */
export interface Allowance {
  readonly usd: number | null;
  readonly tokens: number | null;
  /** Gotos, calls, returns and forks of all lanes. */
  readonly transitions: number | null;
  /** Concurrent agent turns. */
  readonly agents: number | null;
}

/** Budgets of the configuration, beside the allowance. Null is unlimited. */
export interface Budgets {
  /** Of a run and its forks. */
  readonly runUsd: number | null;
  /** Of each agent. */
  readonly agentUsd: number | null;
  /** There are budgets of the day: what other runs have spent must be known before a turn starts. */
  readonly days: boolean;
  /** The same for a budget of the run, because the run has forks, which share it. */
  readonly relatives: boolean;
  /** Reserved for a turn about which nothing is known. */
  readonly reserveUsd: number;
  /** A turn is stopped that exceeds a budget, and its reservation by more than this share. Absent: none is. */
  readonly overrun?: number;
}

export const UNLIMITED: Allowance = { usd: null, tokens: null, transitions: null, agents: null };

/** Targets of the blocks that perform a step, besides its routes and its recovery. */
export function targetsOfAct(act: Act): readonly Target[] {
  switch (act.kind) {
    case 'effect':
    case 'pass':
      return [];
    case 'block':
    case 'each':
      return [act.target];
    case 'loop':
      return [act, act.check, act.exhausted].flatMap((part) => ('target' in part ? [part.target] : []));
  }
}

/** Whether a step can create others: needs below it wait until it has grown. */
export function canGrow(step: Step): boolean {
  return (
    targetsOfAct(step.act).length > 0 ||
    step.onError.kind === 'recover' ||
    Object.values(step.routes).some(({ kind }) => kind === 'expand')
  );
}

/** Facts about a whole Conductor workflow, attached to the Program for later engines. */
export interface ConductorFacts {
  readonly workflowId: string;
  readonly description: string;
  /** Folder of run directories, each named after its run; relative to the project, without a trailing slash. */
  readonly artifactsDir: string;
  /** It has steps that write to the worktree or restore it. */
  readonly mutates: boolean;
  /** Types of gates by step id: `requires_approval`. */
  readonly gates: Readonly<Record<string, string>>;
}

/** Where a run works, determined at its start. `base`: the first commit; null without git. `inPlace`: in the user's own tree. */
export type WorkplaceFacts = Readonly<{ base: string | null; inPlace: boolean }>;

export function withWorkplace(program: Program, facts: WorkplaceFacts): Program {
  return { ...program, attachments: { ...program.attachments, workplace: JSON.stringify(facts) } };
}

export function workplaceOf({ attachments: { workplace } }: Program): WorkplaceFacts {
  return workplace === undefined ? { base: null, inPlace: false } : (JSON.parse(workplace) as WorkplaceFacts);
}

/** A file that the run keeps, and writes to its own folder before a command uses it. */
export interface KeptFile {
  /** Below the folder of the run. */
  readonly path: string;
  readonly base64: string;
  readonly isExecutable: boolean;
}

export function attachFiles(program: Program, files: readonly KeptFile[]): Program {
  return { ...program, attachments: { ...program.attachments, files: JSON.stringify(files) } };
}

export function keptFilesOf({ attachments: { files } }: Pick<Program, 'attachments'>): readonly KeptFile[] {
  return files === undefined ? [] : (JSON.parse(files) as readonly KeptFile[]);
}

export function attachConductor(facts: ConductorFacts): Program['attachments'] {
  return { conductor: JSON.stringify(facts) };
}

/** Null if the Program comes from another language. */
export function conductorOf({ attachments: { conductor } }: Program): ConductorFacts | null {
  return conductor === undefined ? null : (JSON.parse(conductor) as ConductorFacts);
}
