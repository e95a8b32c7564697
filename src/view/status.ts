// A run as one object, printed by `meow status ID --json`, the same for every language. Its keys are a contract with
// scripts: all are always present, and unknown values are null. The face adds the engine, which is not in the state.

import type { Json } from '../base/json.ts';
import { formatMoment } from '../base/time.ts';
import { LANE_VARIABLES } from '../ir/answer-transitions.ts';
import { errorType } from '../ir/failure.ts';
import { plainPath } from '../ir/machine.ts';
import type { Outputs } from '../ir/output.ts';
import type { Program } from '../ir/program.ts';
import type { EffectSpec } from '../ir/effect.ts';
import { type FilledText, plainText } from '../ir/text.ts';
import { approversOf, verdictFor } from '../kernel/gates.ts';
import type { GateVerdict } from '../kernel/input.ts';
import type { PauseCause } from '../kernel/spending.ts';
import {
  type AgentState,
  frameOf,
  type FrameState,
  type GateState,
  isFinished,
  isOpenGate,
  type RunState,
  type StepState,
  type StepStatus,
  undecidedRequests,
} from '../kernel/state.ts';
import { failedSteps, isHandled, shownSteps } from './cause.ts';
import { type CostView, costView } from './usage.ts';
import { outcomeOf, visitKind } from './visits.ts';

export type RunStatus = 'pending' | 'running' | 'waiting' | 'paused' | 'cleaning_up' | 'done' | 'failed' | 'stopped';

export interface StatusView {
  readonly id: string | null;
  readonly language: string;
  readonly source: string;
  readonly status: RunStatus;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  /** The run that it is a fork of. */
  readonly forked_from: string | null;
  readonly result: Json;
  readonly error: RunErrorView | null;
  readonly vars: Readonly<Record<string, Json>>;
  readonly meta: Readonly<Record<string, string>>;
  readonly steps: Readonly<Record<string, StepStatusView>>;
  readonly agents: readonly AgentView[];
  readonly gates: readonly GateView[];
  readonly counts: Counts;
  readonly cost: CostView;
  /** Why it is paused, if a budget is the reason. */
  readonly pause: PauseView | null;
  readonly warnings: readonly string[];
}

export interface PauseView {
  readonly reason: 'budget';
  readonly budget: string;
  readonly limit: number;
  readonly spent: number;
  readonly reserved: number;
  /** For the turn that did not start. */
  readonly needed: number;
  /** Resumes the run with just enough. */
  readonly command: string;
}

/** Why a run failed: the step that caused it, or only a reason if none did. */
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
  /** Why its next attempt waits; null if it does not, or only for its retry. */
  readonly waiting_for: WaitingForView | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** The run whose result it keeps; null if it ran here. */
  readonly kept_from: string | null;
  readonly expanded_from: string | null;
  readonly expanded_into: readonly string[];
}

export interface WaitingForView {
  readonly kind: 'limit' | 'quiet';
  readonly until: string | null;
  /** Adapter and credential. */
  readonly account: string | null;
  /** The run whose agent reported the limit. */
  readonly reported_by: string | null;
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
  /** `approval`: yes or no. `question`: a text. `dialog`: a question of an agent in its terminal, yes or no. */
  readonly kind: 'approval' | 'question' | 'dialog';
  readonly prompt: string | null;
  readonly opened_at: string | null;
  /** Only these may decide it; null: any person. */
  readonly approvers: readonly string[] | null;
  readonly decided_by: string | null;
  readonly notes: string | null;
}

export type Counts = Readonly<Record<Exclude<StepStatus, 'completing'>, number>>;

/** `id` is used if the run has not started and its state has none. */
export function statusView(state: RunState, { id = null }: { readonly id?: string | null } = {}): StatusView {
  const { counts, cost, pause, warnings, ...facts } = runFacts(state);
  return {
    ...facts,
    id: facts.id ?? id,
    steps: Object.fromEntries(shownSteps(state).map((step) => [step.id, stepStatusView(step)])),
    agents: agentsOf(state),
    gates: gatesOf(state),
    counts,
    cost,
    pause,
    warnings,
  };
}

/** What every view of a whole run contains. */
export function runFacts(state: RunState): Omit<StatusView, 'steps' | 'agents' | 'gates'> {
  const { request, program } = state;
  return {
    id: request?.id ?? null,
    language: program.source.language,
    source: program.source.name,
    status: runStatus(state),
    started_at: moment(state.startedAt),
    ended_at: moment(state.endedAt),
    forked_from: state.fork?.from ?? null,
    result: resultOf(state),
    error: runError(state),
    vars: shownVariables(request?.variables ?? {}),
    meta: request?.meta ?? {},
    counts: countsOf(shownSteps(state)),
    cost: costView(state.cost),
    pause: pauseView(state),
    warnings: [...state.warnings],
  };
}

function pauseView({ pause, request, end, phase }: RunState): PauseView | null {
  if (pause === null || request === null || end !== 'paused' || phase !== 'ended') return null;
  const { budget, limit, spent, reserved, needed } = pause;
  const command = `meow resume ${resumeArguments(request.id, raiseFlag(pause))}`;
  return { reason: 'budget', budget, limit, spent, reserved, needed, command };
}

/** What raises every budget by what the next turn needs; by a guess if that is unknown. */
export function raiseFlag({ unit, limit, spent, reserved, needed }: PauseCause): string {
  const least = unit === 'usd' ? 0.5 : 100_000;
  const missing = spent + reserved + (needed === 0 ? least : needed) - limit;
  // Rounded up to cents, but not because sums of dollars are not exact.
  return unit === 'usd'
    ? `--extra-usd ${(Math.ceil(missing * 100 - 1e-6) / 100).toFixed(2)}`
    : `--extra-tokens ${Math.ceil(missing)}`;
}

/** An id with a leading dash would be read as a flag. Flags come before `--`. */
export function resumeArguments(id: string, ...flags: readonly string[]): string {
  return (id.startsWith('-') ? [...flags, `-- ${id}`] : [id, ...flags]).join(' ');
}

/** Whether a run should be running, but has no engine. */
export function isInterrupted({ phase }: RunState, hasEngine: boolean): boolean {
  return phase !== 'ended' && !hasEngine;
}

export function statusText(status: RunStatus, interrupted: boolean): string {
  return interrupted ? 'interrupted' : status.replace('_', ' ');
}

/** `waiting`: everything in progress waits for a gate. */
export function runStatus(state: RunState): RunStatus {
  const { phase } = state;
  if (phase === 'ended') return state.end ?? 'stopped';
  if (phase === 'running' && isWaitingForPerson(state)) return 'waiting';
  return ({ new: 'pending', running: 'running', ending: 'running', cleaning: 'cleaning_up' } as const)[phase];
}

/** What the run returned; otherwise the output `result` of the last step that has one. Null until it is done. */
export function resultOf(state: RunState): Json {
  if (state.end !== 'done' || state.result !== null) return state.result;
  const ended = shownSteps(state).filter(
    ({ frame, definition, outputs }) =>
      frame.owner === null && visitKind(definition) === null && outputs['result'] !== undefined,
  );
  return ended.toSorted((a, b) => (a.finishedAt ?? 0) - (b.finishedAt ?? 0)).at(-1)?.outputs['result'] ?? null;
}

/** Whether its condition was false, or a person rejected its gate; null for other steps. */
export function refusalOf(state: RunState, step: StepState): 'rejected' | 'false' | null {
  if (step.status !== 'done' && step.status !== 'failed') return null;
  const { act } = step.definition;
  // A permission that a person refuses an agent is not a decision about its step.
  const asks = act.kind === 'effect' && (act.effect.kind === 'gate' || act.effect.kind === 'command');
  if (asks && verdictFor(state, step)?.approved === false) return 'rejected';
  const isCondition = act.kind === 'effect' && act.effect.kind === 'command' && act.effect.verdict === 'condition';
  return isCondition && step.status === 'done' && step.outputs['outcome'] === 'false' ? 'false' : null;
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
    waiting_for: waitingForView(step),
    started_at: moment(step.startedAt),
    finished_at: moment(step.finishedAt),
    kept_from: step.keptFrom,
    expanded_from: step.frame.owner,
    expanded_into: expandedInto(step),
  };
}

function waitingForView(step: StepState): WaitingForView | null {
  const [found] = [step, ...innerSteps(step)].flatMap(({ status, failure }) =>
    status === 'pending' && failure?.waitingFor !== undefined ? [failure.waitingFor] : [],
  );
  if (found === undefined) return null;
  const { kind, until, account, reportedBy } = found;
  return { kind, until: moment(until), account, reported_by: reportedBy };
}

/** What performs a step, at any depth. */
function innerSteps({ children }: StepState): readonly StepState[] {
  const inner = children.filter(({ join }) => join === 'answer').flatMap(({ steps }) => steps);
  return inner.flatMap((each) => [each, ...innerSteps(each)]);
}

export function stepError({ failure, attempt }: Pick<StepState, 'failure' | 'attempt'>): StepErrorView | null {
  if (failure === null) return null;
  const { kind, message, code, output } = failure;
  return { type: errorType(kind), message, code, output, attempt };
}

/** Null unless the run has failed or is certain to. */
export function runError(state: RunState): RunErrorView | null {
  if (state.end !== 'failed') return null;
  const [blamed] = failedSteps(state);
  // A workflow that ends the run as failed may say why.
  if (blamed === undefined || (state.reason !== null && isHandled(state, blamed)))
    return { type: null, message: state.reason ?? 'the run failed', step: null };
  return { ...describeCause(state, blamed), step: blamed.id };
}

/** Why the run failed: a failure, a rejected gate, or an outcome that the workflow ends the run for. */
export function describeCause(
  state: RunState,
  step: StepState,
): { readonly type: string | null; readonly message: string } {
  const { failure, status, finishedAt } = step;
  if (status === 'failed' && failure !== null) return { type: errorType(failure.kind), message: failure.message };
  const verdict = verdictFor(state, step);
  if (verdict?.approved === false && finishedAt !== null)
    return { type: errorType('gate-rejected'), message: verdictText(verdict, formatMoment(finishedAt)) };
  const type = outcomeOf(step);
  return { type, message: state.reason ?? `the run failed after ${step.id}` };
}

/** A completing step counts as running. */
export function countsOf(steps: readonly StepState[]): Counts {
  const counts = { pending: 0, running: 0, done: 0, failed: 0, skipped: 0 };
  for (const { status } of steps) counts[status === 'completing' ? 'running' : status] += 1;
  return counts;
}

/** Step ids, or patterns of them. */
export function needsOf(step: StepState): readonly string[] {
  return step.definition.needs.map((need) => `${step.frame.prefix}${need}`);
}

/** Steps below it; for a foreach or a loop, its iterations (`each.0`) or rounds. */
export function expandedInto(step: StepState): readonly string[] {
  const { kind } = step.definition.act;
  const iterates = kind === 'each' || kind === 'loop';
  // What performs the step is a part of it.
  const children = step.children.filter(({ join }) => join !== 'answer');
  const ids = children.flatMap(({ prefix, join, steps }) =>
    iterates && join !== 'recover' ? [prefix.slice(0, -1)] : steps.map(({ id }) => id),
  );
  // A round and its check share a prefix.
  return [...new Set(ids)];
}

/** Those that wait, then those that were decided. Undecided gates without a waiting request are left out. */
export function gatesOf(state: RunState): readonly GateView[] {
  const decided = [...state.gates.values()].filter(({ verdict }) => verdict !== null);
  return [...openGates(state), ...decided.map((gate) => gateView(state, gate))];
}

/** Undecided gates, oldest first. */
export function openGates(state: RunState): readonly GateView[] {
  return [...state.gates.values()].filter((gate) => isOpenGate(state, gate)).map((gate) => gateView(state, gate));
}

/** Decisions that the steps which asked for them have not acted on. */
export function pendingVerdicts(state: RunState): readonly { readonly gate: string; readonly verdict: GateVerdict }[] {
  return [...state.gates.values()].flatMap(({ name, verdict, requests }) => {
    const isPending = verdict !== null && [...requests.keys()].some((requester) => stillWaits(state, requester));
    return isPending ? [{ gate: name, verdict }] : [];
  });
}

function stillWaits(state: RunState, requester: string): boolean {
  const step = state.inFlight.get(requester) ?? state.steps.get(requester.replace(/#\d+$/, ''));
  return step?.status === 'running' || (state.end === 'paused' && step?.status === 'pending');
}

/** `approved by ada: looks good`, with `when` it was decided if that is known. */
export function verdictText({ approved, by, notes, answer }: GateVerdict, when: string | null = null): string {
  const how = answer !== null ? 'answered' : approved ? 'approved' : 'rejected';
  const said = answer ?? notes ?? '';
  return `${how} by ${by}${when === null ? '' : ` at ${when}`}${said === '' ? '' : `: ${said}`}`;
}

/** Only variables that an author could have written. */
export function shownVariables(variables: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !name.startsWith('@')));
}

export function gateCommand(run: string, { kind, id }: Pick<GateView, 'kind' | 'id'>): string {
  return kind === 'question' ? `meow answer ${run} ${id} TEXT` : `meow approve ${run} ${id}`;
}

/** A filled text for display: parts stored in files are shown by name. */
export function filledText(text: FilledText): string {
  if (typeof text === 'string') return text;
  return text
    .map((piece) =>
      typeof piece === 'string' ? piece : 'secret' in piece ? plainText(piece.secret) : `[${piece.file}]`,
    )
    .join('');
}

/** The model that a turn names; null if it takes that of its adapter: an empty name in a state machine. */
export function namedModel(spec: EffectSpec<FilledText> | null): string | null {
  if (spec?.kind !== 'turn' || spec.model === null) return null;
  const name = filledText(spec.model);
  return name === '' ? null : name;
}

export function moment(at: number | null): string | null {
  return at === null ? null : formatMoment(at);
}

function isWaitingForPerson(state: RunState): boolean {
  if (state.inFlight.size === 0) return false;
  for (const step of state.inFlight.values()) if (step.gate === null || verdictFor(state, step) !== null) return false;
  for (const { kind } of state.timers.values()) if (kind === 'retry' || kind === 'round') return false;
  return true;
}

/** Agents of all kinds: started ones, those that are being started, and lanes. */
export function agentsOf(state: RunState): readonly AgentView[] {
  return [...namedAgents(state), ...startingViews(state), ...laneViews(state)];
}

function namedAgents(state: RunState): readonly AgentView[] {
  return [...state.agents.values()].map(({ name, status, info, busy }) => ({
    id: name,
    status: agentStatus(status, busy !== null),
    adapter: info?.adapter ?? (busy?.effect?.kind === 'turn' ? filledText(busy.effect.adapter) : null),
    session: info?.session ?? (busy && sessionOf(busy.frame)),
    terminal: info?.terminal ?? null,
    workdir: info?.workdir ?? null,
    current_step: busy?.id ?? null,
    state: null,
    stack: [],
  }));
}

/** Agents that are being started for the first time, which no step has used yet. */
function startingViews(state: RunState): readonly AgentView[] {
  return [...state.inFlight.values()].flatMap(({ id, effect }) => {
    if (effect?.kind !== 'spawn' || state.agents.has(filledText(effect.agent))) return [];
    const name = filledText(effect.agent);
    const unknown = { session: null, terminal: null, workdir: null, state: null, stack: [] };
    return [{ id: name, status: 'starting', adapter: filledText(effect.adapter), current_step: id, ...unknown }];
  });
}

/** Lanes whose steps are turns count as agents without a name of their own. */
function laneViews(state: RunState): readonly AgentView[] {
  if (Object.keys(state.program.machines).length === 0) return [];
  const names = stateNames(state.program);
  const views: AgentView[] = [];
  for (const [name, { frame }] of state.lanes) {
    if (frame === null) continue;
    const step = frame.closed ? undefined : frame.steps[0];
    const adapter = frame.visibleVariables[LANE_VARIABLES.adapter];
    views.push({
      id: name,
      status: frame.closed || state.phase === 'ended' ? 'stopped' : step?.status === 'running' ? 'active' : 'idle',
      adapter: typeof adapter === 'string' ? adapter : null,
      session: sessionOf(frame),
      terminal: null,
      workdir: workdirOf(state, frame),
      current_step: step?.id ?? null,
      state: step === undefined ? null : stateName(state, step, names),
      stack: frame.closed ? [] : stackOf(state, frame, names),
    });
  }
  return views;
}

/** While a question is open, the state that asked it. */
function stateName(state: RunState, { definition, frame }: StepState, names: ReadonlyMap<string, string>): string {
  const asking = definition.executor === 'ask' && frame.replaces !== null ? frameOf(state, frame.replaces) : null;
  const { id } = asking?.steps[0]?.definition ?? definition;
  return names.get(id) ?? id;
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

function gateView(state: RunState, gate: GateState): GateView {
  const { verdict } = gate;
  const requests = [...gate.requests];
  const waiting = requests.find(([, request]) => request.verdict === null && !request.expired);
  const [requester] = waiting ?? requests.at(-1) ?? [];
  const step = requester === undefined ? null : (state.inFlight.get(requester)?.id ?? requester.replace(/#\d+$/, ''));
  return {
    id: gate.name,
    step,
    status: verdict === null ? 'open' : verdict.approved ? 'approved' : 'rejected',
    kind: gateKind(state.steps.get(step ?? ''), gate.name),
    prompt: promptOf(state, gate),
    opened_at: moment(gate.openedAt),
    approvers: approversOf(state, gate.name),
    decided_by: verdict?.by ?? null,
    notes: verdict?.notes ?? null,
  };
}

/** The engine opens the gate of a dialog under a name that it derives from the step (kernel/gates.ts). */
function gateKind(step: StepState | undefined, gate: string): GateView['kind'] {
  if (step?.definition.executor === 'ask') return 'question';
  const dialog = step === undefined ? '' : `${step.id}.dialog.`;
  return dialog !== '' && gate.startsWith(dialog) && /^\d+$/.test(gate.slice(dialog.length)) ? 'dialog' : 'approval';
}

/** All questions that one decision answers: the last one must not hide the others. */
function promptOf(state: RunState, gate: GateState): string | null {
  const waiting = [...undecidedRequests(state, gate)].filter(([step]) => !isFinished(step));
  const questions = new Map(waiting.map(([{ id }, { prompt }]) => [prompt ?? '', id]));
  if (questions.size < 2) return gate.prompt === '' ? null : gate.prompt;
  return [...questions].map(([prompt, step]) => `${step}: ${prompt === '' ? 'no question' : prompt}`).join('\n');
}
