// What the turns of a run have cost, and may still cost: as it counts against budgets.

import { priceOf, type Usage } from '../ir/output.ts';
import type { Allowance, Budgets } from '../ir/program.ts';
import { getOrAdd } from './collections.ts';

/** What the turns of a run have cost and may still cost, as it counts against budgets. */
export interface Spending {
  usd: number;
  tokens: number;
  readonly usdByAgent: Map<string, number>;
  /** In order of time. */
  readonly charges: Charge[];
  /** By the id of the step whose turn is in flight. */
  readonly reservations: Map<string, OpenReservation>;
  /** The last known costs by `turn` of a reservation, and by adapter and model. */
  readonly known: Map<string, KnownCost[]>;
}

export interface OpenReservation extends Reservation {
  /** In milliseconds since 1970. */
  readonly at: number;
}

export interface Charge {
  readonly at: number;
  readonly usd: number;
  readonly tokens: number;
}

export interface KnownCost {
  readonly usd: number;
  readonly tokens: number;
}

export function emptySpending(): Spending {
  return { usd: 0, tokens: 0, usdByAgent: new Map(), charges: [], reservations: new Map(), known: new Map() };
}

/** What a run may spend. */
interface SpendingLimits {
  readonly budgets: Budgets | null;
  readonly allowance: Allowance;
}

export function hasBudget(limits: SpendingLimits): boolean {
  const { budgets } = limits;
  return hasRunBudget(limits) || (budgets !== null && (budgets.agentUsd !== null || budgets.days));
}

export function hasRunBudget({ budgets, allowance }: SpendingLimits): boolean {
  return allowance.usd !== null || allowance.tokens !== null || (budgets !== null && budgets.runUsd !== null);
}

export const KNOWN_MAX = 20;
export function reserve(
  spending: Spending,
  { step, attempt, usd, tokens, mostUsd, agent, turn }: Reservation,
  at: number,
): void {
  spending.reservations.set(step, {
    step,
    attempt,
    usd,
    tokens,
    ...(mostUsd === undefined ? {} : { mostUsd }),
    agent,
    turn,
    at,
  });
}

/** The cost of the step's turn is known, or known to be unknown. */
export function charge(spending: Spending, step: string, usage: Usage, at: number): void {
  const reservation = spending.reservations.get(step);
  spending.reservations.delete(step);
  const { usd, tokens } = chargeOf(usage, reservation);
  spending.usd = sumOf(spending.usd, usd);
  spending.tokens += tokens;
  spending.charges.push({ at, usd, tokens });
  if (reservation === undefined) return;
  const { agent, turn } = reservation;
  spending.usdByAgent.set(agent, sumOf(spending.usdByAgent.get(agent) ?? 0, usd));
  if (priceOf(usage) === null) return;
  for (const key of [turn, modelOf(turn)]) {
    const known = getOrAdd(spending.known, key, () => []);
    known.push({ usd, tokens });
    if (known.length > KNOWN_MAX) known.shift();
  }
}

/** budget/3 */
function chargeOf(usage: Usage, reservation: KnownCost | undefined): KnownCost {
  return { usd: priceOf(usage) ?? reservation?.usd ?? 0, tokens: usage.tokens ?? reservation?.tokens ?? 0 };
}

/** Rounded, so that ten times $0.20 is exactly $2. */
export function sumOf(a: number, b: number): number {
  return Math.round((a + b) * 1e9) / 1e9;
}

export function chargedSince({ charges }: Spending, since: number): KnownCost {
  const first = charges.findLastIndex(({ at }) => at < since) + 1;
  let [usd, tokens] = [0, 0];
  for (const one of charges.slice(first)) {
    usd = sumOf(usd, one.usd);
    tokens += one.tokens;
  }
  return { usd, tokens };
}

/** What a run has spent and reserved. Nothing is needed for a turn if the budget is spent without it. */
export function spentOf(
  spending: Spending,
  unit: PauseCause['unit'],
): Pick<PauseCause, 'spent' | 'reserved' | 'needed'> {
  const reserved = [...spending.reservations.values()].reduce((sum, each) => sumOf(sum, each[unit]), 0);
  return { spent: spending[unit], reserved, needed: 0 };
}

/** Adapter and model of a turn. */
export function modelOf(turn: string): string {
  return JSON.stringify((JSON.parse(turn) as readonly unknown[]).slice(0, 2));
}

/** By how much all budgets of a run are raised. */
export interface Extra {
  readonly usd: number;
  readonly tokens: number;
}

/** What a turn may cost, until its cost is known. */
export interface Reservation {
  readonly step: string;
  readonly attempt: number;
  readonly usd: number;
  readonly tokens: number;
  /** The turn is stopped if its program reports more dollars while it runs. Absent: it never is. */
  readonly mostUsd?: number;
  /** The agent, or the lane of a turn without one. */
  readonly agent: string;
  /** Adapter, model, workflow and step: turns with the same text cost about the same. */
  readonly turn: string;
}

/** The budget that a turn did not fit in. Dollars, or tokens. */
export interface PauseCause {
  readonly budget: 'run_usd' | 'run_tokens' | 'agent_usd' | 'day_usd' | 'day_tokens';
  readonly unit: 'usd' | 'tokens';
  readonly limit: number;
  readonly spent: number;
  readonly reserved: number;
  /** For the turn that did not start. */
  readonly needed: number;
}

/** What counts against the budgets of a run besides its own turns. */
export interface OthersSpending {
  /** Of runs with the same origin: that one and its forks. */
  readonly tree: {
    readonly usd: number;
    readonly tokens: number;
    readonly reservedUsd: number;
    readonly reservedTokens: number;
  };
  /** `since`: when the day began, in milliseconds since 1970. */
  readonly days: readonly {
    readonly budget: 'day_usd' | 'day_tokens';
    readonly limit: number;
    readonly since: number;
    readonly spent: number;
    readonly reserved: number;
  }[];
  /** Known costs of recent turns, by `turn` of their reservation; the newest last. */
  readonly known: Readonly<Record<string, readonly { readonly usd: number; readonly tokens: number }[]>>;
}
