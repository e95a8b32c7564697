// What runs and steps cost, as agents reported it.

import type { Cost } from '../kernel/decision.ts';
import { NO_COST, type StepState } from '../kernel/state.ts';

/** As in `meow status --json`. */
export interface CostView {
  readonly usd: number | null;
  readonly tokens: number | null;
  readonly unknown_turns: number;
}

/** Tokens as reported. One unknown price makes the total unknown. */
export function costView({ usd, tokens, unpriced }: Cost): CostView {
  const isSilent = tokens === 0 && unpriced > 0;
  return { usd: unpriced > 0 ? null : usd, tokens: isSilent ? null : tokens, unknown_turns: unpriced };
}

/** Null if nothing was reported. */
export function reportedCost(cost: Cost): CostView | null {
  return cost.tokens === 0 && cost.usd === 0 && cost.unpriced === 0 ? null : costView(cost);
}

/** Of all attempts, with the parts that perform the step; null if nothing was reported. */
export function stepCost(step: StepState): Cost | null {
  const parts = step.children.filter(({ join }) => join === 'answer').flatMap(({ steps }) => steps.map(stepCost));
  const known = [step.cost, ...parts].filter((cost) => cost !== null);
  return known.length === 0 ? null : known.reduce(sum, NO_COST);
}

/** `$0.42`, or `1.2k tokens` if the price is unknown; empty if nothing is known. */
export function costText(cost: Cost): string {
  return costViewText(costView(cost));
}

export function costViewText({ usd, tokens }: CostView): string {
  if (usd !== null && usd > 0) return `$${usd < 0.01 ? usd.toPrecision(1) : usd.toFixed(2)}`;
  return tokens ? `${shortNumber(tokens)} tokens` : '';
}

function shortNumber(count: number): string {
  if (count < 1_000) return String(count);
  return count < 1e6 ? `${(count / 1e3).toFixed(1)}k` : `${(count / 1e6).toFixed(1)}M`;
}

function sum(a: Cost, b: Cost): Cost {
  return { usd: a.usd + b.usd, tokens: a.tokens + b.tokens, unpriced: a.unpriced + b.unpriced };
}
