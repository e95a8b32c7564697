// The fold of a journal's decisions, with the indexes that keep the cost of an input independent of the run's size (K6).
// Only `apply` changes it, but for two lists that a replay can do without: `decide` takes from the agenda what it looks at,
// and puts a step that waits for a busy agent into that agent's queue.

import type { Json } from '../base/json.ts';
import { present } from '../base/assert.ts';
import type { CommandSpec, EffectSpec, Session } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import type { Outputs } from '../ir/output.ts';
import type { Program, RunRequest, Step } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import type { FrameOpening, RunEnd, StopReason } from './decision.ts';
import type { GateVerdict } from './input.ts';
import type { IdTree } from './id-tree.ts';
import { emptyTree } from './id-tree.ts';

export interface RunState {
  readonly program: Program;
  phase: 'new' | 'running' | 'ending' | 'cleaning' | 'ended';
  request: RunRequest | null;
  /** What the run ends as, from the moment it is known. */
  end: RunEnd | null;
  reason: string | null;
  result: Json;
  startedAt: number | null;
  endedAt: number | null;
  readonly warnings: string[];

  readonly steps: Map<string, StepState>;
  readonly frames: Map<string, FrameState>;
  readonly lanes: Map<string, LaneState>;
  readonly gates: Map<string, GateState>;
  cleanup: { readonly effect: CommandSpec<FilledText>; stopping: boolean } | null;
  /** How often a cleanup has begun: a run that is taken up again may end again. */
  cleanups: number;

  readonly tree: IdTree<StepState>;
  /** Steps that do not exist yet and are needed by name. */
  readonly hoped: Map<string, Hope[]>;
  /** Steps whose effect is with the world, by effect id. */
  readonly asked: Map<string, StepState>;
  /** The step that each busy agent works on, and those that wait for it. */
  readonly agents: Map<string, { busy: StepState | null; readonly queue: Set<StepState> }>;
  readonly timers: Map<string, Timer>;
  openFrames: number;
  /** A line of control that nobody waits for has failed. */
  looseFailure: boolean;
  readonly agenda: Agenda;
}

/** What follows from the decisions so far and is still to be decided. */
export interface Agenda {
  readonly ready: Set<StepState>;
  /** Ready, and in want of an agent: taken after the others. */
  readonly readyForAgent: Set<StepState>;
  /** Pending, and needs something that failed or was skipped. */
  readonly doomed: Set<StepState>;
  /** Pending, and needs something that will never exist. */
  readonly hopeless: Set<StepState>;
  /** Running, and all blocks below are over (or another iteration may begin). */
  readonly joinable: Set<StepState>;
  /** Open, without anything open in them. */
  readonly closable: Set<FrameState>;
}

export type StepStatus = 'pending' | 'running' | 'done' | 'failed' | 'skipped';

export interface StepState {
  readonly id: string;
  /** Its place among all steps of the run, in the order of their coming into being. */
  readonly order: number;
  readonly frame: FrameState;
  readonly definition: Step;
  status: StepStatus;
  /** Of the latest start; 0 where it never started. */
  attempt: number;
  /** How many attempts failed and count against its retries. */
  failures: number;
  failure: Failure | null;
  outputs: Outputs;
  /** Names of the outputs that are kept in files. */
  kept: readonly string[];
  agent: string | null;
  /** The agent whose queue it stands in, until that one is free. */
  queuedFor: string | null;
  startedAt: number | null;
  finishedAt: number | null;
  /** While the world has not answered. */
  effect: EffectSpec<FilledText> | null;
  /** When its time is over. */
  timeoutAt: number | null;
  stopping: StopReason | null;
  /** It was being stopped when that was withdrawn: what it comes to is not its own doing. */
  interrupted: boolean;
  /** Why it is skipped, where it is. */
  skipped: 'need' | 'run-ending' | null;
  items: readonly Json[] | null;

  /** What those who need it see. */
  settlement: 'open' | 'met' | 'broken';
  /** Needs that are still open. */
  unmet: number;
  readonly waiters: StepState[];
  /** Whether all blocks below it exist; needs that name something below wait for it. */
  grown: boolean;
  readonly hopes: Hope[];
  /** Frames below it, in order. */
  readonly children: FrameState[];
  /** How many of them are iterations or branches, and no recoveries. */
  blocks: number;
  openChildren: number;
  childFailed: boolean;
  recoveries: number;
}

/** A need of a step that names something below a step that has not grown yet. */
export interface Hope {
  readonly waiter: StepState;
  /** Segments below the step that is hoped for. */
  readonly rest: readonly string[];
  /** Whether the whole need is a pattern: then finding nothing meets it. */
  readonly pattern: boolean;
  /** What was hoped for has come into being, and is waited for like any other step. */
  fulfilled: boolean;
}

export interface FrameState extends FrameOpening {
  readonly steps: StepState[];
  /** Its unfinished steps, the inline frames below them, and the frame it called. */
  open: number;
  failing: boolean;
  closed: boolean;
  /** A recovery of a step that is tried again instead, or something below one: history, and never taken up again. */
  abandoned: boolean;
  value: Json;
  /** How the next turn in it begins. */
  nextSession: Session;
}

/** A decision about a gate. It belongs to one asking: whoever asks for the gate again needs another. */
export interface GateState {
  readonly verdict: GateVerdict;
  used: boolean;
}

export interface LaneState {
  /** Those that the line of control began with: in sight for all its life. */
  readonly variables: Readonly<Record<string, Json>>;
  visits: number;
  readonly visitsOf: Map<string, number>;
  /** The step of the latest visit, by its id in the block. */
  readonly latest: Map<string, StepState>;
  forks: number;
}

export type Timer =
  | { readonly id: string; readonly at: number; readonly kind: 'timeout' | 'retry'; readonly step: string }
  | { readonly id: string; readonly at: number; readonly kind: 'drain' | 'cleanup' };

export function initialState(program: Program): RunState {
  return {
    program,
    phase: 'new',
    request: null,
    end: null,
    reason: null,
    result: null,
    startedAt: null,
    endedAt: null,
    warnings: [],
    steps: new Map(),
    frames: new Map(),
    lanes: new Map(),
    gates: new Map(),
    cleanup: null,
    cleanups: 0,
    tree: emptyTree(),
    hoped: new Map(),
    asked: new Map(),
    agents: new Map(),
    timers: new Map(),
    openFrames: 0,
    looseFailure: false,
    agenda: {
      ready: new Set(),
      readyForAgent: new Set(),
      doomed: new Set(),
      hopeless: new Set(),
      joinable: new Set(),
      closable: new Set(),
    },
  };
}

export function effectId(step: string, attempt: number): string {
  return `${step}#${attempt}`;
}

export function timeoutTimer(step: string, attempt: number): string {
  return `${effectId(step, attempt)} timeout`;
}

export function retryTimer(step: string): string {
  return `${step} retry`;
}

/** The run's cleanup script as a step; none can have this name, for steps have no @ in theirs. */
export const CLEANUP_STEP = '@cleanup';

export function stepOf(state: RunState, id: string): StepState {
  return present(state.steps.get(id), `no step ${id} in this run`);
}

export function frameOf(state: RunState, id: string): FrameState {
  return present(state.frames.get(id), `no frame ${JSON.stringify(id)} in this run`);
}

/** Of steps that want the same, the one that came into being first goes first. */
export function earliest(steps: Iterable<StepState>): StepState | undefined {
  let found: StepState | undefined;
  for (const step of steps) if (found === undefined || step.order < found.order) found = step;
  return found;
}

export function isOver(step: StepState): boolean {
  return step.status === 'done' || step.status === 'failed' || step.status === 'skipped';
}
