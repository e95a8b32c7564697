// Admission of turns: what a turn reserves before it starts, and whether the budgets allow it.
//
//   budget/1  A turn starts only if, for every budget, spent + reserved + its reservation is at most the limit.
//   budget/2  Its reservation is the median of the last turns of the same adapter, model and step whose cost is known,
//             else a fixed amount. If that is 0, half of what turns of other steps with the same adapter and model cost:
//             it may reach its budget, but not start with next to nothing left.
//   budget/3  A turn of unknown price is charged its reservation.
//   budget/4  If nothing is reserved for an unknown turn, and others like it are in flight, it waits for one of them
//             unless the budget would allow `ASSUMED_USD` for each: two turns side by side do not both spend the rest.
//   budget/5  Figures about other runs arrive with an input and count for the decisions of that input only.
//   budget/6  A turn may cost what its budgets allow, or its reservation and the share `overrun` of it if that is more.

import { isSameJson, own } from '../base/json.ts';
import type { EffectSpec } from '../ir/effect.ts';
import type { Budgets } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import type { Decision, PreparedStep } from './decision.ts';
import type { Input } from './input.ts';
import {
  charge,
  chargedSince,
  type Extra,
  hasRunBudget,
  type KnownCost,
  KNOWN_MAX,
  modelOf,
  type OthersSpending,
  type PauseCause,
  type Reservation,
  reserve,
  type Spending,
  sumOf,
} from './spending.ts';
import type { RunState, StepState } from './state.ts';

/** Of a turn about which nothing is known, if nothing is reserved for it. */
const ASSUMED_USD = 0.5;
/** Sums of dollars are not exact. */
const TOLERANCE = 1e-9;

/** What another run spends, from the decisions of its journal in order, without the rest of its state. */
export function noteSpending(spending: Spending, decision: Decision, at: number): void {
  switch (decision.kind) {
    case 'usage-reserved':
      return reserve(spending, decision, at);
    case 'usage-counted':
      return charge(spending, decision.step, decision.usage, at);
    case 'step-answered':
    case 'step-failed-once':
    case 'step-parked':
    case 'step-lost':
    case 'step-done':
    case 'step-failed':
      return void spending.reservations.delete(decision.step);
    case 'steps-skipped':
      for (const step of decision.steps) spending.reservations.delete(step);
      return;
    default:
      return;
  }
}

export type Admission =
  | { readonly kind: 'go'; readonly reservation: Reservation | null }
  /** A turn in flight may show what this one will cost. */
  | { readonly kind: 'wait' }
  /** Figures about other runs are needed, and what such turns have cost there. */
  | { readonly kind: 'ask'; readonly turn: string }
  | { readonly kind: 'refused'; readonly pause: PauseCause };

/** Nothing is reserved. */
export const ADMITTED: Admission = { kind: 'go', reservation: null };

/** For a run with a budget. `others`: null if nobody has read them for this input. */
export function admitTurn(
  state: RunState,
  step: StepState,
  prepared: PreparedStep,
  others: OthersSpending | null,
): Admission {
  const turn = turnOf(state, step, prepared);
  if (turn === null) return ADMITTED;
  if (others === null && othersCount(state)) return { kind: 'ask', turn: turn.turn };
  const known = estimate(state, turn.turn, others);
  const reserved = known ?? { usd: state.budgets?.reserveUsd ?? 0, tokens: 0 };
  const limits = limitsOf(state, turn.agent, others);
  for (const limit of limits) {
    const needed = limit.unit === 'usd' ? reserved.usd : reserved.tokens;
    const total = limit.spent + limit.reserved + needed;
    if (total <= limit.limit + TOLERANCE && limit.spent < limit.limit - TOLERANCE) continue;
    return { kind: 'refused', pause: causeOf(limit, needed) };
  }
  if (reserved.usd === 0 && known === null && mustWait(state, limits)) return { kind: 'wait' };
  const most = mostOf(state, limits, reserved.usd);
  return { kind: 'go', reservation: { step: step.id, attempt: step.attempt + 1, ...reserved, ...most, ...turn } };
}

/** budget/6 */
function mostOf(
  { budgets }: RunState,
  limits: readonly BudgetFigures[],
  reserved: number,
): Pick<Reservation, 'mostUsd'> {
  const left = limits.flatMap((each) => (each.unit === 'usd' ? [each.limit - each.spent - each.reserved] : []));
  const overrun = budgets?.overrun;
  if (overrun === undefined || left.length === 0) return {};
  return { mostUsd: sumOf(Math.max(Math.min(...left), reserved * (1 + overrun)), 0) };
}

function othersCount(state: RunState): boolean {
  const { budgets, request } = state;
  const hasRelatives = budgets?.relatives === true || request?.origin !== undefined;
  return budgets?.days === true || (hasRelatives && hasRunBudget(state));
}

/** budget/4 */
function mustWait({ spending }: RunState, limits: readonly BudgetFigures[]): boolean {
  const alike = [...spending.reservations.values()].filter(({ usd }) => usd === 0).length;
  if (alike === 0) return false;
  return limits.some(
    ({ unit, limit, spent, reserved }) => unit === 'usd' && spent + reserved + (alike + 1) * ASSUMED_USD > limit,
  );
}

interface BudgetFigures {
  readonly budget: PauseCause['budget'];
  readonly unit: 'usd' | 'tokens';
  readonly limit: number;
  readonly spent: number;
  readonly reserved: number;
}

function limitsOf(state: RunState, agent: string, others: OthersSpending | null): readonly BudgetFigures[] {
  const { budgets, allowance, spending, extra } = state;
  const reservations = [...spending.reservations.values()];
  const reservedUsd = reservations.reduce((sum, { usd }) => sumOf(sum, usd), 0);
  const reservedTokens = reservations.reduce((sum, { tokens }) => sum + tokens, 0);
  const tree = others?.tree ?? { usd: 0, tokens: 0, reservedUsd: 0, reservedTokens: 0 };
  const found: BudgetFigures[] = [];
  const usd = (budget: PauseCause['budget'], limit: number | null, spent: number, reserved: number): void => {
    if (limit !== null) found.push({ budget, unit: 'usd', limit: sumOf(limit, extra.usd), spent, reserved });
  };
  const tokens = (budget: PauseCause['budget'], limit: number, spent: number, reserved: number): void => {
    found.push({ budget, unit: 'tokens', limit: limit + extra.tokens, spent, reserved });
  };
  const runUsd = sumOf(spending.usd, tree.usd);
  usd('run_usd', allowance.usd, runUsd, sumOf(reservedUsd, tree.reservedUsd));
  usd('run_usd', budgets?.runUsd ?? null, runUsd, sumOf(reservedUsd, tree.reservedUsd));
  if (allowance.tokens !== null) {
    const spent = spending.tokens + tree.tokens;
    const reserved = reservedTokens + tree.reservedTokens;
    tokens('run_tokens', allowance.tokens, spent, reserved);
  }
  const ofAgent = reservations.filter((each) => each.agent === agent).reduce((sum, each) => sumOf(sum, each.usd), 0);
  usd('agent_usd', budgets?.agentUsd ?? null, spending.usdByAgent.get(agent) ?? 0, ofAgent);
  for (const { budget, limit, since, spent, reserved } of others?.days ?? []) {
    const charged = chargedSince(spending, since);
    if (budget === 'day_usd') usd(budget, limit, sumOf(spent, charged.usd), sumOf(reserved, reservedUsd));
    else tokens(budget, limit, spent + charged.tokens, reserved + reservedTokens);
  }
  return found;
}

/** budget/2. Null if nothing is known. */
function estimate({ spending, budgets }: RunState, turn: string, others: OthersSpending | null): KnownCost | null {
  const elsewhere = own(others?.known ?? {}, turn) ?? [];
  const same = [...elsewhere, ...(spending.known.get(turn) ?? [])].slice(-KNOWN_MAX);
  if (same.length > 0) return medianOf(same);
  const alike = spending.known.get(modelOf(turn)) ?? [];
  if (alike.length === 0 || (budgets?.reserveUsd ?? 0) > 0) return null;
  const { usd, tokens } = medianOf(alike);
  return { usd: usd / 2, tokens: Math.floor(tokens / 2) };
}

function medianOf(costs: readonly KnownCost[]): KnownCost {
  return { usd: median(costs.map(({ usd }) => usd)), tokens: median(costs.map(({ tokens }) => tokens)) };
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const [low = 0, high = 0] = [sorted[Math.ceil(half) - 1], sorted[Math.floor(half)]];
  return sumOf((low + high) / 2, 0);
}

function causeOf({ budget, unit, limit, spent, reserved }: BudgetFigures, needed: number): PauseCause {
  return { budget, unit, limit, spent, reserved, needed };
}

export function pauseText({ budget, unit, limit, spent, reserved, needed }: PauseCause): string {
  const amount = (count: number): string => (unit === 'usd' ? `$${count.toFixed(2)}` : `${count} tokens`);
  const held = reserved === 0 ? '' : `, ${amount(reserved)} reserved`;
  return `the budget ${budget} of ${amount(limit)} allows no further turn: ${amount(spent)} spent${held}, ${amount(needed)} needed`;
}

/** Who takes the turn, and what turns cost about the same. Null if the step is no turn. */
function turnOf(
  state: RunState,
  step: StepState,
  { effect, agent }: PreparedStep,
): Pick<Reservation, 'agent' | 'turn'> | null {
  const program = programOf(state, effect, agent);
  if (program === null) return null;
  const { source } = state.program;
  const { definition, frame } = step;
  return { agent: agent ?? frame.lane, turn: JSON.stringify([...program, source.name, definition.id]) };
}

/** Adapter and model; null if the effect is no turn. */
function programOf(
  { agents }: RunState,
  effect: EffectSpec<FilledText> | null,
  agent: string | null,
): readonly [string, string | null] | null {
  switch (effect?.kind) {
    case 'turn':
      return [textOf(effect.adapter), effect.model === null ? null : textOf(effect.model)];
    case 'prompt':
      return [agents.get(agent ?? '')?.info?.adapter ?? '', null];
    default:
      return null;
  }
}

function textOf(text: FilledText): string {
  return typeof text === 'string' ? text : JSON.stringify(text);
}

/** The next input tries again. */
export function postpone(
  { agenda }: RunState,
  step: StepState,
  why: Extract<Admission, { kind: 'wait' | 'ask' }>,
): void {
  agenda.ready.delete(step);
  agenda.readyForAgent.delete(step);
  agenda.unadmitted.add(step);
  if (why.kind === 'ask') agenda.askedTurns.add(why.turn);
}

/** What a resume changes. */
export function resumedBudgets(
  state: RunState,
  { budgets, extra }: Extract<Input, { kind: 'run-resumed' }>,
): Partial<Extract<Decision, { kind: 'run-resumed' }>> {
  return {
    ...(budgets === undefined || isSameBudgets(budgets, state.budgets) ? {} : { budgets }),
    ...(extra === undefined ? {} : { extra: raised(state.extra, extra) }),
  };
}

function raised(now: Extra, { usd = 0, tokens = 0 }: Partial<Extra>): Extra {
  return { usd: sumOf(now.usd, usd), tokens: now.tokens + tokens };
}

function isSameBudgets(a: Budgets | null, b: Budgets | null): boolean {
  return a === null || b === null ? a === b : isSameJson({ ...a }, { ...b });
}
