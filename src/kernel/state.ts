// The fold of a journal's decisions, with the indexes that keep the cost of an input independent of the run's size (K6).
// Only `apply` changes it, but for what a replay can do without: `decide` takes from the agenda what it looks at, puts a step
// that waits for a busy agent into that agent's queue, and remembers how far a foreach with names has come.

import type { Json } from '../base/json.ts';
import { present } from '../base/assert.ts';
import { isTurn } from '../ir/effect.ts';
import type { CommandSpec, Delivery, EffectSpec, Session } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import type { Outputs } from '../ir/output.ts';
import type { Allowance, Program, RunRequest, Step } from '../ir/program.ts';
import { UNLIMITED } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import type { Usage } from '../ir/usage.ts';
import type { AgentOpening, FrameOpening, OpenDialog, RunEnd, StopReason } from './decision.ts';
import type { EmittedEvent, GateVerdict } from './input.ts';
import { ByOrder } from './ordered-set.ts';
import type { IdTree } from './id-tree.ts';
import { emptyTree } from './id-tree.ts';

export interface RunState {
  readonly program: Program;
  phase: 'new' | 'running' | 'ending' | 'cleaning' | 'ended';
  request: RunRequest | null;
  /** What the run ends as, from the moment it is known. */
  end: RunEnd | null;
  /** Whoever ended it has no patience. */
  endForced: boolean;
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
  /** By name: those that were started, and those that steps merely name. */
  readonly agents: Map<string, AgentState>;
  /** Effects that agents owe apart from any step, by effect id: to be there, to be started anew, to be ended. */
  readonly agentEffects: Map<string, AgentState>;
  readonly events: EventsState;
  /** Of the latest messages that decided or reported something: one that is sent again is heard once. */
  readonly heard: Set<string>;
  allowance: Allowance;
  readonly cost: CostState;
  /** Transitions of all lines of control so far. */
  transitions: number;
  /** Turns of agents that are with the world. */
  turns: number;
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
  readonly readyForAgent: ByOrder<StepState>;
  /** Pending, and needs something that failed or was skipped. */
  readonly doomed: Set<StepState>;
  /** Pending, and needs something that will never exist. */
  readonly hopeless: Set<StepState>;
  /** Running, and all blocks below are over (or another iteration may begin). */
  readonly joinable: Set<StepState>;
  /** Open, without anything open in them. */
  readonly closable: Set<FrameState>;
}

export type StepStatus = 'pending' | 'running' | 'completing' | 'done' | 'failed' | 'skipped';

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
  /** What its next attempt is told in place of its prompt, and how often that has been done. */
  reprompt: string | null;
  reprompts: number;
  failure: Failure | null;
  outputs: Outputs;
  /** Names of the outputs that are kept in files. */
  kept: readonly string[];
  /** The route of its outcome, where it stands in a block that performs another step. */
  route: string | null;
  /** What its latest attempt has cost; null where that is nothing, or not known yet. */
  usage: Usage | null;
  agent: string | null;
  /** Which life of the agent it was asked of. */
  agentGeneration: number;
  /** The agent whose queue it stands in, until that one is free. */
  queuedFor: string | null;
  startedAt: number | null;
  finishedAt: number | null;
  /** The session that its latest attempt was to begin with. */
  beganIn: Session;
  /** While the world has not answered. */
  effect: EffectSpec<FilledText> | null;
  /** How far its prompt has come; null where it has none. */
  delivery: Delivery | null;
  /** What its agent asks a person, and the gate that was opened for it. */
  dialog: OpenDialog | null;
  /** How many of them have been decided, in all attempts. */
  dialogs: number;
  /** When its time is over. */
  timeoutAt: number | null;
  stopping: StopReason | null;
  stoppingForced: boolean;
  /** It was being stopped when that was withdrawn: what it comes to is not its own doing. */
  interrupted: boolean;
  /** Why it is skipped, where it is. */
  skipped: 'need' | 'run-ending' | null;
  items: readonly Json[] | null;
  width: number | null;
  /** What its iterations are called, where they have names of their own. */
  names: readonly string[] | null;
  /** Those of them that have begun, in any attempt. */
  readonly namesBegun: Set<string>;
  /** How many of the items have an iteration, where they have names: a hint that a replay can do without. */
  begun: number;
  /** What the agent had to say beside its outputs. */
  notes: string | null;
  /** How many events there had been when it became ready, and up to which it has been handed them. */
  eventsBefore: number;
  eventsSeen: number;
  /** The latest questions, and the events that answered them: who asks again has not heard the answer. */
  readonly eventAskings: Map<string, number>;
  /** The gate that somebody asked for on its behalf, of several the last. */
  gate: string | null;

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
  /** All variables that are seen from it, its own and those of the frames around it. */
  readonly sight: Readonly<Record<string, Json>>;
  /** Where the ids of its steps begin. */
  readonly node: IdTree<StepState>;
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

export interface GateState {
  readonly name: string;
  /** Those on whose behalf it was asked; none where it was decided before anybody asked. */
  readonly askers: Map<string, Asking>;
  prompt: string | null;
  openedAt: number | null;
  /** The latest decision, until somebody asks who was not among those that it answered. */
  verdict: GateVerdict | null;
}

/** A decision belongs to one asking, and stays with it: who asks after everybody has been answered needs another. */
export interface Asking {
  verdict: GateVerdict | null;
  /** Nobody decided in time. */
  expired: boolean;
}

export interface AgentState {
  readonly name: string;
  /** `named`: no more than a name that steps queue for. */
  status: 'named' | 'opening' | 'active' | 'closing' | 'closed' | 'ended' | 'gone' | 'lost';
  opening: AgentOpening | null;
  /** How often it was started. */
  generation: number;
  /** It is ended without grace. */
  closingForced: boolean;
  /** The step it works on. */
  busy: StepState | null;
  /** What it works on, or worked on last. */
  latest: StepState | null;
  readonly queue: ByOrder<StepState>;
}

/** The latest events, oldest first. */
export interface EventsState {
  /** How many there have been. */
  count: number;
  /** What those kept have to say, in characters. */
  size: number;
  readonly latest: (EmittedEvent & { readonly seq: number; readonly at: number })[];
  readonly ids: Set<string>;
}

/** Older events are forgotten, and those that fill too much room: nobody waits for long without being woken. */
export const EVENTS_KEPT = 10_000;
export const EVENTS_SIZE_MAX = 16_000_000;

export interface CostState {
  usd: number;
  tokens: number;
  /** Turns that did not tell their price. */
  unpriced: number;
}

export interface LaneState {
  /** Those that the line of control began with: in sight for all its life. */
  readonly variables: Readonly<Record<string, Json>>;
  visits: number;
  readonly visitsOf: Map<Step, number>;
  /** How many of its steps have an id: blocks of several workflows may have the same. */
  readonly named: Map<string, number>;
  /** Where it is, or was last. */
  frame: FrameState | null;
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
    endForced: false,
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
    agentEffects: new Map(),
    heard: new Set(),
    events: { count: 0, size: 0, latest: [], ids: new Set() },
    allowance: UNLIMITED,
    cost: { usd: 0, tokens: 0, unpriced: 0 },
    transitions: 0,
    turns: 0,
    timers: new Map(),
    openFrames: 0,
    looseFailure: false,
    agenda: {
      ready: new Set(),
      readyForAgent: new ByOrder(),
      doomed: new Set(),
      hopeless: new Set(),
      joinable: new Set(),
      closable: new Set(),
    },
  };
}

/** The line of control that a run begins with. */
export const ENTRY_LANE = 'main';

export function effectId(step: string, attempt: number): string {
  return `${step}#${attempt}`;
}

export function timeoutTimer(step: string, attempt: number): string {
  return `${effectId(step, attempt)} timeout`;
}

export function retryTimer(step: string): string {
  return `${step} retry`;
}

/** Whether it takes its turn among agents: it works with a named one, or is a turn of its line of control. */
export function wantsAgent({ definition: { agent, act } }: StepState): boolean {
  return agent !== null || (act.kind === 'effect' && isTurn(act.effect));
}

/** What an agent owes apart from any step; null where it owes nothing. The name cannot be that of a step. */
export function agentEffectId({ name, status, generation }: AgentState): string | null {
  switch (status) {
    case 'active':
      return `@agent ${name}#${generation}`;
    case 'opening':
      return `@agent ${name}#${generation} spawn`;
    case 'closing':
      return `@agent ${name}#${generation} kill`;
    default:
      return null;
  }
}

/** The run's cleanup script as a step; none can have this name, for steps have no @ in theirs. */
export const CLEANUP_STEP = '@cleanup';

export function stepOf(state: RunState, id: string): StepState {
  return present(state.steps.get(id), `no step ${id} in this run`);
}

export function frameOf(state: RunState, id: string): FrameState {
  return present(state.frames.get(id), `no frame ${JSON.stringify(id)} in this run`);
}

/** Whether the step that it stands below goes on when it is over, by whatever it comes to. */
export function isAwaited({ join }: Pick<FrameState, 'join'>): boolean {
  return join === 'wait' || join === 'loose' || join === 'answer';
}

/** Whether it stands in a block that performs a step, or below one that does: a part of that step. */
export function performsAnother(state: RunState, { frame }: StepState): boolean {
  for (let now = frame; ; ) {
    if (now.join === 'answer') return true;
    const above = now.caller !== null ? state.frames.get(now.caller) : state.steps.get(now.owner ?? '')?.frame;
    if (above === undefined) return false;
    now = above;
  }
}

/** Who asks for a gate. A step that is a gate asks anew with each attempt; a command that is run again asks no more. */
export function askerOf(step: StepState): string {
  return step.effect?.kind === 'gate' ? effectId(step.id, step.attempt) : step.id;
}

/** Somebody waits for a decision about it, or has left the question. */
export function isOpenGate(state: RunState, { askers }: GateState): boolean {
  for (const [asker, { verdict, expired }] of askers) {
    if (verdict !== null || expired) continue;
    const step = state.asked.get(asker) ?? state.steps.get(asker) ?? state.steps.get(asker.replace(/#\d+$/, ''));
    const act = step?.definition.act;
    if (act?.kind === 'effect' && act.effect.kind === 'gate' && !act.effect.blocks) return true;
    const status = step?.status;
    if (status === 'running' || (state.end === 'paused' && status === 'pending')) return true;
  }
  return false;
}

export function isOver(step: StepState): boolean {
  return step.status === 'done' || step.status === 'failed' || step.status === 'skipped';
}
