// The state of a run: the fold of its journal's decisions, with indexes that keep the cost of an input independent of
// the size of the run (K6). Only `apply` changes it, with four exceptions that a replay does not need: `decide` removes
// agenda entries, queues steps for busy agents, keeps turns that wait for admission, and advances `iterationCursor`.

import { present } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import { type CommandSpec, type Delivery, type EffectSpec, isTurn, type Outcome, type Session } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import type { Outputs, Usage } from '../ir/output.ts';
import {
  type Allowance,
  type Budgets,
  canGrow,
  type Limits,
  type Program,
  type RunRequest,
  type Step,
  UNLIMITED,
} from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import { emptyTree, type IdTree, OrderedSet } from './collections.ts';
import type { Cost, Decision, FrameSpec, OpenDialog, RunEnd, StopReason } from './decision.ts';
import type { AgentInfo, Fork } from './fork.ts';
import type { EmittedEvent, GateVerdict } from './input.ts';
import { emptySpending, type Extra, type OthersSpending, type PauseCause } from './spending.ts';

export const NO_COST: Cost = { usd: 0, tokens: 0, unpriced: 0 };

/** A run before its first decision. */
class NewRunState {
  /** With the workflows that were entered by a path that nobody wrote before. */
  program: Program;
  phase: 'new' | 'running' | 'ending' | 'cleaning' | 'ended' = 'new';
  request: RunRequest | null = null;
  /** Null unless it comes from another run. */
  fork: Fork | null = null;
  /** How the run ends; set as soon as that is decided. */
  end: RunEnd | null = null;
  /** Stop without grace periods. */
  endForced = false;
  reason: string | null = null;
  /** The budget that the run is paused for. */
  pause: PauseCause | null = null;
  result: Json = null;
  startedAt: number | null = null;
  endedAt: number | null = null;
  /** Time of the latest record. */
  recordedAt: number | null = null;
  absences: readonly Absence[] = [];
  /** The machine that drives the run; null if it is not shared, or nobody has driven it. */
  machine: string | null = null;
  readonly warnings: string[] = [];
  /** Those that report a refused verdict. */
  readonly refusals = new Set<string>();

  readonly steps = new Map<string, StepState>();
  readonly frames = new Map<string, FrameState>();
  readonly lanes = new Map<string, LaneState>();
  readonly gates = new Map<string, GateState>();
  cleanup: { readonly effect: CommandSpec<FilledText>; stopping: boolean; readonly machine: string | null } | null =
    null;
  /** Number of cleanups started. A resumed run may end, and clean up, again. */
  cleanups = 0;

  readonly tree: IdTree<StepState> = emptyTree();
  /** Needs on steps that do not exist yet, by the id of the needed step. */
  readonly unresolvedById = new Map<string, UnresolvedNeed[]>();
  /** Steps whose effect is in flight, by effect id. */
  readonly inFlight = new Map<string, StepState>();
  /** By name. Contains started agents and agents that a step has only named. */
  readonly agents = new Map<string, AgentState>();
  /** Pending steps that wait until the run is resumed. */
  readonly parked = new Set<StepState>();
  /** Effects of agents that belong to no step (attend, restart, kill), by effect id. */
  readonly agentEffects = new Map<string, AgentState>();
  readonly events = new EventsState();
  /** Ids of recent messages that carried a verdict or a report. A message sent twice takes effect once. */
  readonly seenMessages = new Set<string>();
  allowance: Allowance = UNLIMITED;
  /** Those of the configuration; null: none. */
  budgets: Budgets | null = null;
  extra: Extra = { usd: 0, tokens: 0 };
  /** Those of the Program, unless a resume has changed them. */
  limits: Limits;
  cost = NO_COST;
  /** What counts against budgets. */
  readonly spending = emptySpending();
  /** Transitions taken so far, in all lanes. */
  transitions = 0;
  /** Agent turns in flight. */
  turns = 0;
  readonly timers = new Map<string, Timer>();
  openFrames = 0;
  /** A lane that no step waits for has failed. */
  looseFailure = false;
  readonly agenda = new Agenda();

  constructor(program: Program) {
    this.program = program;
    this.limits = program.limits;
  }
}

/** Plain data, which may be copied. */
export type RunState = Pick<NewRunState, keyof NewRunState>;

export function initialState(program: Program): RunState {
  return new NewRunState(program);
}

/** Consequences of the decisions so far that `decide` has not handled yet. */
class Agenda {
  readonly ready = new Set<StepState>();
  /** Ready, but needs an agent. Started after the steps in `ready`. */
  readonly readyForAgent = new OrderedSet<StepState>();
  /** Ready, but its turn waits for admission. The next input tries again: a replay does not need them. */
  readonly unadmitted = new Set<StepState>();
  /** Those of them that need figures about other runs, as `turn` of a reservation. */
  readonly askedTurns = new Set<string>();
  /** Pending, but a step it needs has failed or was skipped. */
  readonly blocked = new Set<StepState>();
  /** Pending, but a step it needs can never exist. */
  readonly unresolvable = new Set<StepState>();
  /** Running, with all child frames closed or room for another iteration. */
  readonly joinable = new Set<StepState>();
  /** Open frames that contain nothing open. */
  readonly closable = new Set<FrameState>();
}

export type StepStatus = 'pending' | 'running' | 'completing' | 'done' | 'failed' | 'skipped';

export class StepState {
  readonly id: string;
  /** Position among all steps of the run, in order of creation. */
  readonly order: number;
  readonly frame: FrameState;
  readonly definition: Step;
  status: StepStatus = 'pending';
  /** Number of the latest attempt; 0 if never started. */
  attempt = 0;
  /** The run whose result it keeps; null if it ran here. A step above others is kept only with them. */
  keptFrom: string | null = null;
  /** Failed attempts that count against the retry limit. */
  failures = 0;
  /** Replaces the prompt in the next attempt; `reprompts` counts how often. */
  reprompt: string | null = null;
  reprompts = 0;
  /** Recorded reports that were refused. */
  refusedReports = 0;
  failure: Failure | null = null;
  outputs: Outputs = {};
  /** Names of the outputs stored in files. */
  kept: readonly string[] = [];
  /** Route of its outcome; set only inside a block that performs another step. */
  route: string | null = null;
  /** Cost of the latest attempt; null if none or not known yet. */
  usage: Usage | null = null;
  /** Cost of all attempts; null if none or not known yet. */
  cost: Cost | null = null;
  /** How many texts of the latest attempt were shown to the user. */
  printed = 0;
  agent: string | null = null;
  /** Generation of the agent that received the effect. */
  agentGeneration = 0;
  /** The busy agent whose queue contains this step. */
  queuedFor: string | null = null;
  startedAt: number | null = null;
  finishedAt: number | null = null;
  /** Where the latest attempt began; null if the run was not shared then. */
  machine: string | null = null;
  /** When the effect of the latest attempt ended, if no engine recorded that at once. */
  effectEndedAt: number | null = null;
  /** The session in which the latest attempt started. */
  initialSession: Session;
  /** The effect in flight. */
  effect: EffectSpec<FilledText> | null = null;
  /** Delivery status of the prompt; null if the step sends none. */
  delivery: Delivery | null = null;
  /** The agent's open question, with the gate opened for it. */
  dialog: OpenDialog | null = null;
  /** Number of dialogs decided, in all attempts. */
  dialogs = 0;
  timeoutAt: number | null = null;
  stopping: StopReason | null = null;
  stoppingForced = false;
  /** A stop was requested and then withdrawn: a failure does not count as the step's own. */
  interrupted = false;
  /** Reason for skipping; null if not skipped. */
  skipped: 'need' | 'run-ending' | null = null;
  items: readonly Json[] | null = null;
  width: number | null = null;
  /** Names of the iterations; null if they are numbered. */
  names: readonly string[] | null = null;
  /** Names of iterations started in any attempt. */
  readonly startedNames = new Set<string>();
  /** Index of the first item whose named iteration may not have started. A cache: replay rebuilds it. */
  iterationCursor = 0;
  /** Maximum of rounds of a loop, and the number of the last round that it may begin: a resume may allow more. */
  roundsMax = 0;
  roundsAllowed = 0;
  /** The round that the loop has waited for, or waits for. */
  delayedRound = 0;
  /** The agent's remarks beside its outputs. */
  notes: string | null = null;
  /** Number of events when the step became ready, and number of the last event it received. */
  eventsBefore = 0;
  eventsSeen = 0;
  /** Recent event requests and the events they returned, so that a repeated request returns the same event. */
  readonly eventRequests = new Map<string, number>();
  /** The gate requested on behalf of this step; if several, the last. */
  gate: string | null = null;

  /** How dependent steps see this step. */
  settlement: 'open' | 'met' | 'broken' = 'open';
  /** Number of open needs. */
  unmet = 0;
  readonly waiters: StepState[] = [];
  /** All child frames exist. Needs on steps below wait for this. */
  grown: boolean;
  readonly unresolvedNeeds: UnresolvedNeed[] = [];
  /** Child frames, in order. */
  readonly children: FrameState[] = [];
  /** Number of children that are iterations or branches, not recoveries. */
  blocks = 0;
  openChildren = 0;
  childFailed = false;
  recoveries = 0;

  constructor(id: string, order: number, frame: FrameState, definition: Step) {
    this.id = id;
    this.order = order;
    this.frame = frame;
    this.definition = definition;
    this.initialSession = frame.nextSession;
    this.grown = !canGrow(definition);
  }
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
  /** The frame before it in its lane; null for the first one, and for one that no transition has opened. */
  readonly after: FrameState | null;
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
  /** Number of askings so far. Several requests may belong to one: see gates.ts. */
  asked: number;
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
  prompt: string | null;
  /** Who may decide; null: any person. */
  approvers: readonly string[] | null;
}

export class AgentState {
  readonly name: string;
  /** `named`: never started, but steps queue for it. */
  status: 'named' | 'opening' | 'active' | 'closing' | 'closed' | 'ended' | 'gone' | 'lost' = 'named';
  info: AgentInfo | null = null;
  /** Number of starts. */
  generation = 0;
  /** Where its present effect began; null if the run was not shared then. */
  machine: string | null = null;
  /** Kill without a grace period. */
  closingForced = false;
  /** The step in progress. */
  busy: StepState | null = null;
  /** The step in progress, or the last one. */
  latest: StepState | null = null;
  readonly queue = new OrderedSet<StepState>();

  constructor(name: string) {
    this.name = name;
  }
}

/** The most recent events, oldest first. */
export class EventsState {
  /** Number of events in the whole run. */
  count = 0;
  /** Total size of `latest` in characters. */
  size = 0;
  readonly latest: (EmittedEvent & { readonly seq: number; readonly at: number })[] = [];
  readonly ids = new Set<string>();
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

export type Timer = Readonly<
  { id: string; at: number } & ({ kind: 'timeout' | 'retry' | 'round'; step: string } | { kind: 'drain' | 'cleanup' })
>;

/** One `decide` call: the state with all decisions so far applied, and the time of the input. */
export interface DecideContext {
  readonly state: RunState;
  readonly at: number;
  /** What other runs have spent; null unless the input says so. */
  readonly others: OthersSpending | null;
  /** Appends the decision to the record and applies it to the state. */
  emit(decision: Decision): void;
  /** Retries, routes, recovers or fails the step. */
  fail(step: StepState, problem: Failure): void;
}

/** The lane in which a run starts. */
export const ENTRY_LANE = 'main';

/** A kept step's session belongs to another run, so it continues in a copy. */
export function sessionAfter({ keptFrom }: StepState, id: string): Session {
  return { kind: keptFrom === null ? 'resume' : 'fork', id };
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

export function roundTimer(step: string): string {
  return `${step} round`;
}

/** Counts against the limit of concurrent agents: the step uses a named agent or is a turn. */
export function needsAgent({ definition: { agent, act } }: StepState): boolean {
  return agent !== null || (act.kind === 'effect' && isTurn(act.effect));
}

/** Id of the agent's own effect in its present status; null if it has none. Step ids never contain `@`. */
export function agentEffectId({ name, status, generation }: AgentState): string | null {
  const suffixes: Partial<Record<typeof status, string>> = { active: '', opening: ' spawn', closing: ' kill' };
  const suffix = suffixes[status];
  return suffix === undefined ? null : `@agent ${name}#${generation}${suffix}`;
}

export function agentsWith({ agents }: RunState, wanted: AgentState['status']): readonly AgentState[] {
  return [...agents.values()].filter(({ status }) => status === wanted);
}

/** Id of the cleanup script, as if it were a step. Step ids never contain `@`. */
export const CLEANUP_STEP = '@cleanup';

export function stepOf(state: RunState, id: string): StepState {
  return present(state.steps.get(id), `no step ${id} in this run`);
}

export function frameOf(state: RunState, id: string): FrameState {
  return present(state.frames.get(id), `no frame ${JSON.stringify(id)} in this run`);
}

/** The calling frame, or that of the parent step; null for the entry frame and for forks. */
export function frameAround(state: RunState, { caller, owner }: FrameSpec): FrameState | null {
  if (caller !== null) return frameOf(state, caller);
  return owner === null ? null : stepOf(state, owner).frame;
}

/** The frame that stays open for this one: the calling frame, or the frame around an inline one. */
export function holderOf(state: RunState, frame: FrameState): FrameState | null {
  return frame.caller !== null || frame.join === 'inline' ? frameAround(state, frame) : null;
}

/** Whether the parent step waits for the frame to close. */
export function isAwaited({ join }: Pick<FrameState, 'join'>): boolean {
  return join === 'loose' || join === 'answer' || failsOwner({ join });
}

/** Whether an unhandled failure in the frame fails the parent step. */
export function failsOwner({ join }: Pick<FrameState, 'join'>): boolean {
  return join === 'wait' || join === 'check';
}

/** The round of a loop that began last; after its end, the last one that was more than a check. Null if none began. */
export function presentRound(step: StepState): number | null {
  if (step.definition.act.kind !== 'loop') return null;
  const ended = isFinished(step);
  const last = step.children.findLast(({ join, round }) => round !== undefined && (join === 'wait' || !ended));
  return last?.round ?? null;
}

/** Key of a gate request. A gate step asks once per attempt; a command asks once for all attempts of its step. */
export function requesterOf(step: StepState): string {
  const { act } = step.definition;
  return act.kind === 'effect' && act.effect.kind === 'gate' ? effectId(step.id, step.attempt) : step.id;
}

/** Whether a request waits for a verdict, or a non-blocking gate is undecided. */
export function isOpenGate(state: RunState, gate: GateState): boolean {
  for (const [step] of undecidedRequests(state, gate)) {
    const { act } = step.definition;
    if (act.kind === 'effect' && act.effect.kind === 'gate' && !act.effect.blocks) return true;
    if (step.status === 'running' || (state.end === 'paused' && step.status === 'pending')) return true;
  }
  return false;
}

/** Requests that have neither a verdict nor expired, with their steps. */
export function* undecidedRequests(state: RunState, { requests }: GateState): Generator<[StepState, GateRequest]> {
  for (const [requester, request] of requests) {
    if (request.verdict !== null || request.expired) continue;
    const step =
      state.inFlight.get(requester) ?? state.steps.get(requester) ?? state.steps.get(requester.replace(/#\d+$/, ''));
    if (step !== undefined) yield [step, request];
  }
}

export function isFinished(step: StepState): boolean {
  return step.status === 'done' || step.status === 'failed' || step.status === 'skipped';
}

// Absences: periods in which neither an engine nor a process of the run was there. One begins with the last record of an
// engine, since nobody records its death, and ends with the resume. An effect that continued meanwhile shortens it.

/** In milliseconds since 1970. */
export interface Absence {
  readonly from: number;
  readonly to: number;
}

/** Whether an effect continues without an engine. */
export function outlivesEngine(effect: EffectSpec<unknown> | null): boolean {
  return effect?.kind === 'command' || effect?.kind === 'turn' || effect?.kind === 'prompt';
}

/** When the effect ended, if it ran while no engine was there and the end of its step would not show that. */
export function endWithoutEngine(
  { absences, end }: RunState,
  { startedAt }: StepState,
  outcome: Outcome,
  at: number,
): number | null {
  const absentUntil = absences.at(-1)?.to ?? 0;
  if (startedAt === null || startedAt >= absentUntil) return null;
  const { endedAt } = outcome;
  if (endedAt !== undefined && endedAt < absentUntil) return Math.max(endedAt, startedAt);
  // A step that is stopped is skipped, like one that never ran.
  const wasStopped = outcome.kind === 'failure' && ['stopped', 'signal'].includes(outcome.failure.kind);
  return wasStopped && end !== null ? (endedAt ?? at) : null;
}

/** Whether something began on another machine than the one that drives the run. If no machine is known, it did not. */
export function isElsewhere({ machine }: RunState, began: string | null): boolean {
  return began !== null && machine !== null && began !== machine;
}

export function withAbsence(absences: readonly Absence[], from: number, to: number): readonly Absence[] {
  return from < to ? [...absences, { from, to }] : absences;
}

/** Without the time in which an effect ran, `from` its start. */
export function shortened(absences: readonly Absence[], from: number, until: number): readonly Absence[] {
  if ((absences.at(-1)?.to ?? 0) < from) return absences;
  return absences
    .map((absence) => (from > absence.from ? absence : { ...absence, from: Math.max(absence.from, until) }))
    .filter((absence) => absence.from < absence.to);
}

/** Milliseconds between two moments, without absences. */
export function presentTime(absences: readonly Absence[], from: number, to: number): number {
  const absent = absences.map((absence) => Math.min(to, absence.to) - Math.max(from, absence.from));
  return to - from - absent.reduce((sum, ms) => sum + Math.max(0, ms), 0);
}
