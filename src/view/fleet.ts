// All runs of several projects, with what they need from people and the agents that work on them: what `meow top --json`
// prints, and what the server of the page sends. Its keys are a contract with scripts, as those of `meow status --json`:
// all are always present, and unknown values are null. Data only.

import { formatMoment } from '../base/time.ts';
import type { Allowance } from '../ir/program.ts';
import type { Decision } from '../kernel/decision.ts';
import { NO_COST, retryTimer, type RunState } from '../kernel/state.ts';
import { shownSteps } from './cause.ts';
import { gateConsequences, type GateConsequences } from './consequences.ts';
import { nowText } from './now.ts';
import { isWaitingStep, parkedSteps, type ShownRunStatus, shownRunStatus } from './shown-status.ts';
import type { StateHead } from './state-head.ts';
import {
  agentsOf,
  type AgentView,
  type Counts,
  countsOf,
  filledText,
  type GateView,
  moment,
  openGates,
  runError,
  runStatus,
  type RunStatus,
} from './status.ts';
import { type Cost, type CostView, costView, runDuration } from './usage.ts';

export interface FleetView {
  /** Those that matter most to a person come first. */
  readonly runs: readonly FleetRun[];
  /** The one that has waited longest comes first. */
  readonly needs: readonly FleetNeed[];
  /** Of runs that have not ended. */
  readonly agents: readonly FleetAgent[];
}

/** `usd` is null if the price of a turn is unknown; `known_usd` sums the others. */
export interface FleetCost extends CostView {
  readonly known_usd: number;
}

export interface FleetRun {
  /** Name of the project's folder, with `~2`, `~3` … if several have it. */
  readonly project: string;
  readonly id: string;
  /** As in `meow status`; null if the run cannot be read. */
  readonly status: RunStatus | null;
  /** The status that page and terminal show. */
  readonly shown: ShownRunStatus;
  readonly language: string | null;
  readonly source: string | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  /** Time of the last record. */
  readonly active_at: string | null;
  /** Null while its clock runs: it has taken the time since `clock_from`. Both null: unknown. */
  readonly duration_ms: number | null;
  readonly clock_from: string | null;
  /** Null if unknown. */
  readonly counts: Counts | null;
  /** A sentence that names the step under way; null if there is none. */
  readonly now: string | null;
  /** Why it failed: the step that caused it, and a message. */
  readonly error: { readonly step: string | null; readonly message: string } | null;
  readonly cost: FleetCost | null;
  readonly budget: Pick<Allowance, 'usd' | 'tokens'> | null;
  /** Null if no engine works on it. */
  readonly engine: { readonly pid: number } | null;
  /** It should be running, but has no engine. */
  readonly interrupted: boolean;
  /** The usage limit that steps of it wait for; null if none does. */
  readonly limit: FleetLimit | null;
  /** Why it cannot be read, and what to do; null if it can. */
  readonly problem: { readonly message: string; readonly hint: string | null } | null;
}

export interface FleetLimit {
  /** Of the agents that have reached it; null if unknown. */
  readonly adapter: string | null;
  /** When they may go on, ISO 8601; null if unknown. */
  readonly until: string | null;
}

export interface FleetNeed {
  readonly project: string;
  readonly run: string;
  readonly gate: string;
  readonly kind: 'gate' | 'dialog' | 'question';
  readonly prompt: string | null;
  readonly opened_at: string | null;
  /** Null if it was decided before a step requested it. */
  readonly step: string | null;
  /** The agent that asks; null unless it is a dialog. */
  readonly agent: string | null;
  /** Only these may decide it; null: any person. */
  readonly approvers: readonly string[] | null;
  /** The run has no engine: a decision takes effect when it is resumed. */
  readonly interrupted: boolean;
  /** Null if they are unknown. */
  readonly consequences: GateConsequences | null;
}

export interface FleetAgent {
  readonly project: string;
  readonly run: string;
  readonly id: string;
  readonly status: AgentView['status'];
  /** The status that page and terminal show. */
  readonly shown: AgentView['status'] | 'waiting' | 'parked';
  readonly adapter: string | null;
  /** The step that it works on. */
  readonly step: string | null;
}

/** What the fleet shows of one run. */
export interface FleetEntry {
  readonly run: FleetRun;
  readonly needs: readonly FleetNeed[];
  readonly agents: readonly FleetAgent[];
}

export interface FoldedRun {
  readonly project: string;
  readonly id: string;
  readonly state: RunState;
  readonly engine: { readonly pid: number } | null;
  readonly interrupted: boolean;
  /** In milliseconds since 1970. That of an interrupted run stands still. */
  readonly now: number;
  /** If no engine works on the run, its state does not know which agents are still there. */
  readonly agents?: readonly AgentView[];
}

export function fleetEntry(folded: FoldedRun): FleetEntry {
  const { project, id, state } = folded;
  const ended = hasEnded(runStatus(state));
  const gates = openGates(state);
  const agents = ended ? [] : (folded.agents ?? agentsOf(state));
  return {
    run: fleetRun(folded),
    needs: gates.map((gate) => fleetNeed(folded, gate)),
    agents: agents.map((agent) => ({
      project,
      run: id,
      id: agent.id,
      status: agent.status,
      shown: shownAgentStatus(state, agent),
      adapter: agent.adapter,
      step: agent.current_step,
    })),
  };
}

function fleetRun({ project, id, state, engine, interrupted, now }: FoldedRun): FleetRun {
  const { program, request, startedAt, endedAt, recordedAt, phase } = state;
  const stands = interrupted || phase === 'ended';
  const duration = runDuration(state, now);
  const error = runError(state);
  return {
    project,
    id,
    status: runStatus(state),
    shown: shownRunStatus(state, interrupted),
    language: program.source.language,
    source: program.source.name,
    started_at: moment(startedAt),
    ended_at: moment(endedAt),
    active_at: moment(recordedAt),
    duration_ms: stands ? duration : null,
    clock_from: stands || duration === null ? null : formatMoment(now - duration),
    counts: countsOf(shownSteps(state)),
    now: nowText(state, interrupted),
    error: error && { step: error.step, message: error.message },
    cost: fleetCost(state.cost),
    budget: request && { usd: state.allowance.usd, tokens: state.allowance.tokens },
    engine,
    interrupted,
    limit: phase === 'ended' ? null : limitOf(state),
    problem: null,
  };
}

/** The one that ends first. */
function limitOf(state: RunState): FleetLimit | null {
  const limits = parkedSteps(state).map(({ id, agent, effect }): FleetLimit => {
    const { at = null } = state.timers.get(retryTimer(id)) ?? {};
    const ofTurn = effect?.kind === 'turn' ? filledText(effect.adapter) : null;
    return { adapter: ofTurn ?? state.agents.get(agent ?? '')?.info?.adapter ?? null, until: moment(at) };
  });
  return limits.toSorted((a, b) => ((a.until ?? '~') < (b.until ?? '~') ? -1 : 1))[0] ?? null;
}

function fleetNeed({ project, id, state, interrupted }: FoldedRun, gate: GateView): FleetNeed {
  const { kind, step, prompt, opened_at, approvers } = gate;
  return {
    project,
    run: id,
    gate: gate.id,
    kind: kind === 'approval' ? 'gate' : kind,
    prompt,
    opened_at,
    step,
    agent: kind === 'dialog' ? (state.steps.get(step ?? '')?.agent ?? null) : null,
    approvers,
    interrupted,
    consequences: gateConsequences(state, gate.id),
  };
}

function shownAgentStatus(state: RunState, { id, status, current_step }: AgentView): FleetAgent['shown'] {
  const step = state.steps.get(current_step ?? '');
  if (step !== undefined && isWaitingStep(state, step)) return 'waiting';
  return status === 'idle' && parkedSteps(state).some(({ agent }) => agent === id) ? 'parked' : status;
}

/** A run that cannot be read: damaged, of another version, or another user's. */
export function unreadableEntry(run: Pick<FleetRun, 'project' | 'id' | 'engine' | 'problem'>): FleetEntry {
  const unknown = { status: null, language: null, source: null, started_at: null, ended_at: null, active_at: null };
  const none = {
    duration_ms: null,
    clock_from: null,
    counts: null,
    now: null,
    error: null,
    cost: null,
    budget: null,
    limit: null,
  };
  return {
    run: { ...run, ...unknown, ...none, shown: 'unreadable', interrupted: false },
    needs: [],
    agents: [],
  };
}

/** A run that has ended, from its last record and the head of its state file, without its steps. */
export interface EndedRun extends Pick<FleetRun, 'project' | 'id' | 'source' | 'language'> {
  readonly startedAt: number;
  readonly endedAt: number;
  readonly end: Extract<Decision, { kind: 'run-ended' }>;
  readonly head: Pick<StateHead, 'counts' | 'error'>;
}

export function endedEntry({ project, id, source, language, startedAt, endedAt, end, head }: EndedRun): FleetEntry {
  const ended = formatMoment(endedAt);
  const run: FleetRun = {
    project,
    id,
    status: end.end,
    shown: end.end,
    language,
    source,
    started_at: formatMoment(startedAt),
    ended_at: ended,
    active_at: ended,
    duration_ms: end.lasted ?? endedAt - startedAt,
    clock_from: null,
    counts: head.counts,
    now: null,
    error: end.end === 'failed' ? head.error : null,
    limit: null,
    cost: fleetCost(end.cost ?? NO_COST),
    budget: null,
    engine: null,
    interrupted: false,
    problem: null,
  };
  return { run, needs: [], agents: [] };
}

/** Done, failed or stopped. A paused run continues when it is resumed. */
export function hasEnded(status: RunStatus | null): boolean {
  return status === 'done' || status === 'failed' || status === 'stopped';
}

/** How long an ended run stays in the fleet. */
const ENDED_SHOWN_MS = 24 * 3_600_000;

/** Runs that have not ended, or ended not long before `now`, and those that still need somebody. */
export function fleetView(entries: Iterable<FleetEntry>, now: number): FleetView {
  const shown = [...entries].filter(({ run, needs }) => needs.length > 0 || isRecent(run, now));
  const waiting = new Set(shown.flatMap((entry) => (entry.needs.length > 0 ? [entry.run] : [])));
  const rank = (run: FleetRun): number => (waiting.has(run) ? 0 : (RANKS[run.shown] ?? RANKS_REST));
  const byTime = (a: string | null, b: string | null): number => ((a ?? '') < (b ?? '') ? -1 : a === b ? 0 : 1);
  return {
    runs: shown
      .map(({ run }) => run)
      .toSorted((a, b) => rank(a) - rank(b) || byTime(b.started_at, a.started_at) || byTime(a.id, b.id)),
    needs: shown.flatMap(({ needs }) => needs).toSorted((a, b) => byTime(a.opened_at, b.opened_at)),
    agents: shown.flatMap(({ agents }) => agents),
  };
}

function isRecent({ status, ended_at }: FleetRun, now: number): boolean {
  return !hasEnded(status) || ended_at === null || ended_at > formatMoment(now - ENDED_SHOWN_MS);
}

/** After runs with an open gate. */
const RANKS: Readonly<Partial<Record<ShownRunStatus, number>>> = {
  failed: 1,
  unreadable: 1,
  running: 2,
  waiting: 2,
  cleaning_up: 2,
  parked: 3,
};
const RANKS_REST = 4;

function fleetCost(cost: Cost): FleetCost {
  return { ...costView(cost), known_usd: cost.usd };
}
