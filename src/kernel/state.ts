// The state of a run: the fold of its journal's decisions, with indexes that keep the cost of an input independent of
// the size of the run (K6). Only `apply` changes it, with three exceptions that a replay does not need: `decide`
// removes agenda entries, queues steps for busy agents, and advances `iterationCursor`.

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
import type { AgentInfo, FrameSpec, OpenDialog, RunEnd, StopReason } from './decision.ts';
import type { EmittedEvent, GateVerdict } from './input.ts';
import { OrderedSet } from './ordered-set.ts';
import type { IdTree } from './id-tree.ts';
import { emptyTree } from './id-tree.ts';

export interface RunState {
  readonly program: Program;
  phase: 'new' | 'running' | 'ending' | 'cleaning' | 'ended';
  request: RunRequest | null;
  /** How the run ends; set as soon as that is decided. */
  end: RunEnd | null;
  /** Stop without grace periods. */
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
  /** Number of cleanups started. A resumed run may end, and clean up, again. */
  cleanups: number;

  readonly tree: IdTree<StepState>;
  /** Needs on steps that do not exist yet, by the id of the needed step. */
  readonly unresolvedById: Map<string, UnresolvedNeed[]>;
  /** Steps whose effect is in flight, by effect id. */
  readonly inFlight: Map<string, StepState>;
  /** By name. Contains started agents and agents that a step has only named. */
  readonly agents: Map<string, AgentState>;
  /** Effects of agents that belong to no step (attend, restart, kill), by effect id. */
  readonly agentEffects: Map<string, AgentState>;
  readonly events: EventsState;
  /** Ids of recent messages that carried a verdict or a report. A message sent twice takes effect once. */
  readonly seenMessages: Set<string>;
  allowance: Allowance;
  readonly cost: CostState;
  /** Transitions taken so far, in all lanes. */
  transitions: number;
  /** Agent turns in flight. */
  turns: number;
  readonly timers: Map<string, Timer>;
  openFrames: number;
  /** A lane that no step waits for has failed. */
  looseFailure: boolean;
  readonly agenda: Agenda;
}

/** Consequences of the decisions so far that `decide` has not handled yet. */
export interface Agenda {
  readonly ready: Set<StepState>;
  /** Ready, but needs an agent. Started after the steps in `ready`. */
  readonly readyForAgent: OrderedSet<StepState>;
  /** Pending, but a step it needs has failed or was skipped. */
  readonly blocked: Set<StepState>;
  /** Pending, but a step it needs can never exist. */
  readonly unresolvable: Set<StepState>;
  /** Running, with all child frames closed or room for another iteration. */
  readonly joinable: Set<StepState>;
  /** Open frames that contain nothing open. */
  readonly closable: Set<FrameState>;
}

export type StepStatus = 'pending' | 'running' | 'completing' | 'done' | 'failed' | 'skipped';

export interface StepState {
  readonly id: string;
  /** Position among all steps of the run, in order of creation. */
  readonly order: number;
  readonly frame: FrameState;
  readonly definition: Step;
  status: StepStatus;
  /** Number of the latest attempt; 0 if never started. */
  attempt: number;
  /** Failed attempts that count against the retry limit. */
  failures: number;
  /** Replaces the prompt in the next attempt; `reprompts` counts how often. */
  reprompt: string | null;
  reprompts: number;
  failure: Failure | null;
  outputs: Outputs;
  /** Names of the outputs stored in files. */
  kept: readonly string[];
  /** Route of its outcome; set only inside a block that performs another step. */
  route: string | null;
  /** Cost of the latest attempt; null if none or not known yet. */
  usage: Usage | null;
  agent: string | null;
  /** Generation of the agent that received the effect. */
  agentGeneration: number;
  /** The busy agent whose queue contains this step. */
  queuedFor: string | null;
  startedAt: number | null;
  finishedAt: number | null;
  /** The session in which the latest attempt started. */
  initialSession: Session;
  /** The effect in flight. */
  effect: EffectSpec<FilledText> | null;
  /** Delivery status of the prompt; null if the step sends none. */
  delivery: Delivery | null;
  /** The agent's open question, with the gate opened for it. */
  dialog: OpenDialog | null;
  /** Number of dialogs decided, in all attempts. */
  dialogs: number;
  timeoutAt: number | null;
  stopping: StopReason | null;
  stoppingForced: boolean;
  /** A stop was requested and then withdrawn: a failure does not count as the step's own. */
  interrupted: boolean;
  /** Reason for skipping; null if not skipped. */
  skipped: 'need' | 'run-ending' | null;
  items: readonly Json[] | null;
  width: number | null;
  /** Names of the iterations; null if they are numbered. */
  names: readonly string[] | null;
  /** Names of iterations started in any attempt. */
  readonly startedNames: Set<string>;
  /** Index of the first item whose named iteration may not have started. A cache: replay rebuilds it. */
  iterationCursor: number;
  /** The agent's remarks beside its outputs. */
  notes: string | null;
  /** Number of events when the step became ready, and number of the last event it received. */
  eventsBefore: number;
  eventsSeen: number;
  /** Recent event requests and the events they returned, so that a repeated request returns the same event. */
  readonly eventRequests: Map<string, number>;
  /** The gate requested on behalf of this step; if several, the last. */
  gate: string | null;

  /** How dependent steps see this step. */
  settlement: 'open' | 'met' | 'broken';
  /** Number of open needs. */
  unmet: number;
  readonly waiters: StepState[];
  /** All child frames exist. Needs on steps below wait for this. */
  grown: boolean;
  readonly unresolvedNeeds: UnresolvedNeed[];
  /** Child frames, in order. */
  readonly children: FrameState[];
  /** Number of children that are iterations or branches, not recoveries. */
  blocks: number;
  openChildren: number;
  childFailed: boolean;
  recoveries: number;
}

/** A need on a step below another step that has not grown yet. */
export interface UnresolvedNeed {
  readonly waiter: StepState;
  /** Path below the step that has not grown. */
  readonly segments: readonly string[];
  /** The need contains a wildcard. A pattern without matches counts as met. */
  readonly isPattern: boolean;
  /** The needed step now exists and has become an ordinary wait. */
  resolved: boolean;
}

export interface FrameState extends FrameSpec {
  /** Performs a step, or is below a frame that does: views fold its steps into that step. */
  readonly isInner: boolean;
  /** Variables of this frame and of all enclosing frames. */
  readonly visibleVariables: Readonly<Record<string, Json>>;
  /** Root of its steps in the id tree. */
  readonly node: IdTree<StepState>;
  readonly steps: StepState[];
  /** Number of unfinished steps, open inline frames and called frames. */
  open: number;
  failing: boolean;
  closed: boolean;
  /** Belongs to the recovery of a step that is retried instead. Never reopened. */
  abandoned: boolean;
  value: Json;
  /** Session for the next agent turn in this frame. */
  nextSession: Session;
}

export interface GateState {
  readonly name: string;
  /** By requester. Empty if the gate was decided before any request. */
  readonly requests: Map<string, GateRequest>;
  prompt: string | null;
  openedAt: number | null;
  /** The latest verdict; reset by the first request that it does not answer. */
  verdict: GateVerdict | null;
}

/** One request for a verdict. A later request for the same gate needs a verdict of its own. */
export interface GateRequest {
  verdict: GateVerdict | null;
  /** The request timed out. */
  expired: boolean;
}

export interface AgentState {
  readonly name: string;
  /** `named`: never started, but steps queue for it. */
  status: 'named' | 'opening' | 'active' | 'closing' | 'closed' | 'ended' | 'gone' | 'lost';
  info: AgentInfo | null;
  /** Number of starts. */
  generation: number;
  /** Kill without a grace period. */
  closingForced: boolean;
  /** The step in progress. */
  busy: StepState | null;
  /** The step in progress, or the last one. */
  latest: StepState | null;
  readonly queue: OrderedSet<StepState>;
}

/** The most recent events, oldest first. */
export interface EventsState {
  /** Number of events in the whole run. */
  count: number;
  /** Total size of `latest` in characters. */
  size: number;
  readonly latest: (EmittedEvent & { readonly seq: number; readonly at: number })[];
  readonly ids: Set<string>;
}

/** Limits on stored events. Waiting steps are woken at once, so nothing needs older events. */
export const EVENTS_MAX = 10_000;
export const EVENTS_SIZE_MAX = 16_000_000;

export interface CostState {
  usd: number;
  tokens: number;
  /** Turns without a reported price. */
  unpriced: number;
}

export interface LaneState {
  /** Variables of the lane's first frame; visible in all its frames. */
  readonly variables: Readonly<Record<string, Json>>;
  visits: number;
  readonly visitsOf: Map<Step, number>;
  /** Number of steps by their id in the block. Blocks of several workflows may share ids. */
  readonly countById: Map<string, number>;
  /** The current frame, or the last one. */
  frame: FrameState | null;
  /** The most recent step for each id in a block. */
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
    unresolvedById: new Map(),
    inFlight: new Map(),
    agents: new Map(),
    agentEffects: new Map(),
    seenMessages: new Set(),
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
      readyForAgent: new OrderedSet(),
      blocked: new Set(),
      unresolvable: new Set(),
      joinable: new Set(),
      closable: new Set(),
    },
  };
}

/** The lane in which a run starts. */
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

/** Counts against the limit of concurrent agents: the step uses a named agent or is a turn. */
export function needsAgent({ definition: { agent, act } }: StepState): boolean {
  return agent !== null || (act.kind === 'effect' && isTurn(act.effect));
}

/** Id of the agent's own effect in its present status; null if it has none. Step ids never contain `@`. */
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

/** Id of the cleanup script, as if it were a step. Step ids never contain `@`. */
export const CLEANUP_STEP = '@cleanup';

export function stepOf(state: RunState, id: string): StepState {
  return present(state.steps.get(id), `no step ${id} in this run`);
}

export function frameOf(state: RunState, id: string): FrameState {
  return present(state.frames.get(id), `no frame ${JSON.stringify(id)} in this run`);
}

/** Whether the parent step waits for the frame to close. */
export function isAwaited({ join }: Pick<FrameState, 'join'>): boolean {
  return join === 'wait' || join === 'loose' || join === 'answer';
}

/** Key of a gate request. A gate step asks once per attempt; a command asks once for all attempts of its step. */
export function requesterOf(step: StepState): string {
  return step.effect?.kind === 'gate' ? effectId(step.id, step.attempt) : step.id;
}

/** Whether a request waits for a verdict, or a non-blocking gate is undecided. */
export function isOpenGate(state: RunState, { requests }: GateState): boolean {
  for (const [requester, { verdict, expired }] of requests) {
    if (verdict !== null || expired) continue;
    const step =
      state.inFlight.get(requester) ?? state.steps.get(requester) ?? state.steps.get(requester.replace(/#\d+$/, ''));
    const act = step?.definition.act;
    if (act?.kind === 'effect' && act.effect.kind === 'gate' && !act.effect.blocks) return true;
    const status = step?.status;
    if (status === 'running' || (state.end === 'paused' && status === 'pending')) return true;
  }
  return false;
}

export function isFinished(step: StepState): boolean {
  return step.status === 'done' || step.status === 'failed' || step.status === 'skipped';
}
