// A run as one object, printed by `meow status ID --json`, the same for every language. Its keys are a contract with
// scripts: all are always present, and unknown values are null. The face adds the engine, which is not in the state.

import type { Json } from '../base/json.ts';
import { formatMoment } from '../base/time.ts';
import { errorType } from '../ir/failure.ts';
import { plainPath } from '../ir/machine.ts';
import type { Outputs } from '../ir/output.ts';
import { LANE_VARIABLES } from '../ir/answer-transitions.ts';
import type { Program } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import { verdictFor } from '../kernel/gates.ts';
import type { AgentState, FrameState, GateState, RunState, StepState, StepStatus } from '../kernel/state.ts';
import { frameOf, isOpenGate } from '../kernel/state.ts';
import { outcomeOf } from './visits.ts';

export type RunStatus = 'pending' | 'running' | 'waiting' | 'paused' | 'cleaning_up' | 'done' | 'failed' | 'stopped';

export interface StatusView {
  readonly id: string | null;
  readonly language: string;
  readonly source: string;
  readonly status: RunStatus;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly result: Json;
  readonly error: RunErrorView | null;
  readonly vars: Readonly<Record<string, Json>>;
  readonly meta: Readonly<Record<string, string>>;
  readonly steps: Readonly<Record<string, StepStatusView>>;
  readonly agents: readonly AgentView[];
  readonly gates: readonly GateView[];
  readonly counts: Counts;
  readonly cost: CostView;
  readonly warnings: readonly string[];
}

/** Why a run failed: the first failed step, or only a reason if no step caused it. */
export interface RunErrorView {
  readonly type: string | null;
  readonly message: string;
  readonly step: string | null;
}

export interface StepStatusView {
  readonly executor: string;
  /** A step that waits for its next attempt is pending, and shows the error of the last one. */
  readonly status: StepStatus;
  /** Outcome of a visit, in the workflow's own terms; null if its language has none. */
  readonly outcome: string | null;
  readonly attempt: number;
  /** Step ids, or patterns of them. */
  readonly needs: readonly string[];
  readonly agent: string | null;
  /** Delivery status of its prompt, independent of the work; null if it has none. */
  readonly delivery: string | null;
  readonly outputs: Outputs;
  /** The agent's remarks beside its outputs. */
  readonly notes: string | null;
  readonly error: StepErrorView | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly expanded_from: string | null;
  readonly expanded_into: readonly string[];
}

export interface StepErrorView {
  readonly type: string;
  readonly message: string;
  readonly code: number | null;
  readonly output: string | null;
  /** 0 if nothing could be started. */
  readonly attempt: number;
}

export interface AgentView {
  readonly id: string;
  /** `active`: works on a step. */
  readonly status: 'starting' | 'active' | 'idle' | 'stopped' | 'gone';
  readonly adapter: string | null;
  readonly session: string | null;
  readonly terminal: string | null;
  readonly workdir: string | null;
  readonly current_step: string | null;
  readonly state: string | null;
  readonly stack: readonly { readonly session: string | null; readonly state: string | null }[];
}

export interface GateView {
  readonly id: string;
  /** Null if it was decided before a step requested it. */
  readonly step: string | null;
  readonly status: 'open' | 'approved' | 'rejected';
  /** Whether it asks for yes or no, or for a text. */
  readonly kind: 'approval' | 'question';
  readonly prompt: string | null;
  readonly opened_at: string | null;
  readonly decided_by: string | null;
  readonly notes: string | null;
}

export type Counts = Readonly<Record<Exclude<StepStatus, 'completing'>, number>>;

export interface CostView {
  readonly usd: number | null;
  readonly tokens: number | null;
  readonly unknown_turns: number;
}

/** `id` is used if the run has not started and its state has none. */
export function statusView(state: RunState, { id = null }: { readonly id?: string | null } = {}): StatusView {
  const { request, program } = state;
  return {
    id: request?.id ?? id,
    language: program.source.language,
    source: program.source.name,
    status: runStatus(state),
    started_at: moment(state.startedAt),
    ended_at: moment(state.endedAt),
    result: state.result,
    error: runError(state),
    vars: shownVariables(request?.variables ?? {}),
    meta: request?.meta ?? {},
    steps: Object.fromEntries(shownSteps(state).map((step) => [step.id, stepStatusView(step)])),
    agents: [...agentViews(state), ...laneViews(state)],
    gates: gateViews(state),
    counts: countSteps(state),
    cost: costView(state),
    warnings: [...state.warnings],
  };
}

/** `waiting`: everything in progress waits for a gate. */
export function runStatus(state: RunState): RunStatus {
  switch (state.phase) {
    case 'new':
      return 'pending';
    case 'running':
      return isWaitingForPerson(state) ? 'waiting' : 'running';
    case 'ending':
      return 'running';
    case 'cleaning':
      return 'cleaning_up';
    case 'ended':
      return state.end ?? 'stopped';
  }
}

export function stepStatusView(step: StepState): StepStatusView {
  return {
    executor: step.definition.executor,
    status: step.status,
    outcome: outcomeOf(step),
    attempt: step.attempt,
    needs: needsOf(step),
    agent: step.agent,
    delivery: step.delivery?.replaceAll('-', '_') ?? null,
    outputs: step.outputs,
    notes: step.notes,
    error: stepError(step),
    started_at: moment(step.startedAt),
    finished_at: moment(step.finishedAt),
    expanded_from: step.frame.owner,
    expanded_into: expandedInto(step),
  };
}

export function stepError({ failure, attempt }: StepState): StepErrorView | null {
  if (failure === null) return null;
  const { kind, message, code, output } = failure;
  return { type: errorType(kind), message, code, output, attempt };
}

/** Null unless the run has failed or is certain to. */
export function runError(state: RunState): RunErrorView | null {
  if (state.end !== 'failed') return null;
  const step = failedFirst(state);
  if (step?.failure) return { type: errorType(step.failure.kind), message: step.failure.message, step: step.id };
  if (state.reason !== null) return { type: null, message: state.reason, step: null };
  // A workflow may end the run as failed after a failure that it handled.
  const last = shownSteps(state).findLast(({ failure }) => failure !== null);
  if (!last?.failure) return { type: null, message: 'the run failed', step: null };
  return { type: errorType(last.failure.kind), message: last.failure.message, step: last.id };
}

/** A completing step counts as running. */
export function countSteps(state: RunState): Counts {
  const counts = { pending: 0, running: 0, done: 0, failed: 0, skipped: 0 };
  for (const { status } of shownSteps(state)) counts[status === 'completing' ? 'running' : status] += 1;
  return counts;
}

/** All steps, except those that perform another step: these are folded into it. */
export function shownSteps({ steps }: RunState): readonly StepState[] {
  return [...steps.values()].filter(({ frame }) => !frame.isInner);
}

/** Step ids, or patterns of them. */
export function needsOf(step: StepState): readonly string[] {
  return step.definition.needs.map((need) => `${step.frame.prefix}${need}`);
}

/** Steps below it; for a foreach, its iterations (`each.0`). */
export function expandedInto(step: StepState): readonly string[] {
  const iterates = step.definition.act.kind === 'each';
  // What performs the step is a part of it.
  const children = step.children.filter(({ join }) => join !== 'answer');
  return children.flatMap(({ prefix, join, steps }) =>
    iterates && join !== 'recover' ? [prefix.slice(0, -1)] : steps.map(({ id }) => id),
  );
}

/** Undecided gates, oldest first. */
export function openGates(state: RunState): readonly GateView[] {
  return [...state.gates.values()].filter((gate) => isOpenGate(state, gate)).map((gate) => gateView(state, gate));
}

/** Only variables that an author could have written. */
export function shownVariables(variables: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !name.startsWith('@')));
}

/** The command that decides a gate. */
export function gateCommand(run: string, { kind, id }: Pick<GateView, 'kind' | 'id'>): string {
  return kind === 'question' ? `meow answer ${run} ${id} TEXT` : `meow approve ${run} ${id}`;
}

/** A filled text for display: parts stored in files are shown by name. */
export function filledText(text: FilledText): string {
  if (typeof text === 'string') return text;
  return text.map((piece) => (typeof piece === 'string' ? piece : `[${piece.file}]`)).join('');
}

export function moment(at: number | null): string | null {
  return at === null ? null : formatMoment(at);
}

/** Tokens as reported. One unknown price makes the total unknown. */
function costView({ cost: { usd, tokens, unpriced } }: RunState): CostView {
  const isSilent = tokens === 0 && unpriced > 0;
  return { usd: unpriced > 0 ? null : usd, tokens: isSilent ? null : tokens, unknown_turns: unpriced };
}

function isWaitingForPerson(state: RunState): boolean {
  if (state.inFlight.size === 0) return false;
  for (const step of state.inFlight.values()) if (step.gate === null || verdictFor(state, step) !== null) return false;
  for (const { kind } of state.timers.values()) if (kind === 'retry') return false;
  return true;
}

/** The first unhandled failure. A step that failed by itself comes before one that failed through its children. */
function failedFirst(state: RunState): StepState | null {
  let found: StepState | null = null;
  for (const step of shownSteps(state)) {
    if (step.status !== 'failed' || step.settlement !== 'broken') continue;
    if (found === null || blameOrder(step, found) < 0) found = step;
  }
  return found;
}

function blameOrder(a: StepState, b: StepState): number {
  const inherits = ({ failure }: StepState): number => (failure?.kind === 'child-failed' ? 1 : 0);
  return inherits(a) - inherits(b) || (a.finishedAt ?? 0) - (b.finishedAt ?? 0);
}

function agentViews(state: RunState): readonly AgentView[] {
  const known = [...state.agents.values()].map(({ name, status, info, busy }) => ({
    id: name,
    status: agentStatus(status, busy !== null),
    adapter: info?.adapter ?? (busy?.effect?.kind === 'turn' ? filledText(busy.effect.adapter) : null),
    session: info?.session ?? (busy?.frame.nextSession.kind === 'resume' ? busy.frame.nextSession.id : null),
    terminal: info?.terminal ?? null,
    workdir: info?.workdir ?? null,
    current_step: busy?.id ?? null,
    state: null,
    stack: [],
  }));
  return [...known, ...startingViews(state)];
}

/** Agents that are being started for the first time, which no step has used yet. */
function startingViews(state: RunState): readonly AgentView[] {
  return [...state.inFlight.values()].flatMap(({ id, effect }) => {
    if (effect?.kind !== 'spawn' || state.agents.has(filledText(effect.agent))) return [];
    const nothing = { session: null, terminal: null, workdir: null, state: null, stack: [] };
    const [name, adapter] = [filledText(effect.agent), filledText(effect.adapter)];
    return [{ id: name, status: 'starting', adapter, current_step: id, ...nothing }];
  });
}

/** Lanes whose steps are turns count as agents without a name of their own. */
function laneViews(state: RunState): readonly AgentView[] {
  if (Object.keys(state.program.machines).length === 0) return [];
  const names = stateNames(state.program);
  const views: AgentView[] = [];
  for (const [name, { frame }] of state.lanes) {
    if (frame === null) continue;
    const [step] = frame.steps;
    const adapter = frame.visibleVariables[LANE_VARIABLES.adapter];
    views.push({
      id: name,
      status: frame.closed || state.phase === 'ended' ? 'stopped' : step?.status === 'running' ? 'active' : 'idle',
      adapter: typeof adapter === 'string' ? adapter : null,
      session: sessionOf(frame),
      terminal: null,
      workdir: workdirOf(state, frame),
      current_step: frame.closed ? null : (step?.id ?? null),
      state: frame.closed || step === undefined ? null : (names.get(step.definition.id) ?? step.definition.id),
      stack: frame.closed ? [] : stackOf(state, frame, names),
    });
  }
  return views;
}

/** Pending returns, outermost first: the caller's session, and the state where it continues. */
function stackOf(state: RunState, frame: FrameState, names: ReadonlyMap<string, string>): AgentView['stack'] {
  const stack: AgentView['stack'][number][] = [];
  for (let at: FrameState = frame; at.caller !== null; ) {
    const caller = frameOf(state, at.caller);
    const back = at.returnTo?.block ?? null;
    stack.unshift({ session: sessionOf(caller), state: typeof back === 'string' ? (names.get(back) ?? back) : null });
    at = caller;
  }
  return stack;
}

/** A session that has not started or been forked yet has no id. */
function sessionOf({ nextSession }: FrameState): string | null {
  return nextSession.kind === 'resume' ? nextSession.id : null;
}

/** Block names of states, and how tags name them: `REVIEW.md`. */
function stateNames({ machines }: Program): ReadonlyMap<string, string> {
  const named = Object.values(machines).flatMap(({ states }) => Object.entries(states));
  return new Map(named.map(([name, block]) => [block, name]));
}

function workdirOf({ request }: RunState, { visibleVariables }: FrameState): string | null {
  const cwd = visibleVariables[LANE_VARIABLES.cwd];
  if (request === null || typeof cwd !== 'string' || cwd === '') return request?.cwd ?? null;
  return plainPath(cwd.startsWith('/') ? cwd : `${request.cwd}/${cwd}`);
}

export function agentStatus(status: AgentState['status'], busy: boolean): AgentView['status'] {
  switch (status) {
    case 'named':
    case 'active':
      return busy ? 'active' : 'idle';
    case 'opening':
      return 'starting';
    case 'closing':
    case 'closed':
    case 'ended':
      return 'stopped';
    case 'gone':
    case 'lost':
      return 'gone';
  }
}

/** Open gates first, then decided ones. Undecided gates without a waiting request are left out. */
function gateViews(state: RunState): readonly GateView[] {
  const decided = [...state.gates.values()].filter(({ verdict }) => verdict !== null);
  return [...openGates(state), ...decided.map((gate) => gateView(state, gate))];
}

function gateView(state: RunState, gate: GateState): GateView {
  const { verdict } = gate;
  const requests = [...gate.requests];
  // The request that waits, or the last one.
  const [requester] =
    requests.find(([, { verdict: told, expired }]) => told === null && !expired) ?? requests.at(-1) ?? [];
  const step = requester === undefined ? null : (state.inFlight.get(requester)?.id ?? requester.replace(/#\d+$/, ''));
  return {
    id: gate.name,
    step,
    status: verdict === null ? 'open' : verdict.approved ? 'approved' : 'rejected',
    kind: state.steps.get(step ?? '')?.definition.executor === 'ask' ? 'question' : 'approval',
    prompt: gate.prompt === '' ? null : gate.prompt,
    opened_at: moment(gate.openedAt),
    decided_by: verdict?.by ?? null,
    notes: verdict?.notes ?? null,
  };
}
