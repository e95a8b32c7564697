// `limits: { timeout, idle_timeout, max_tokens, max_cost_usd }`, of a step or of the workflow.

import type { WorkLimits } from '../../ir/conductor.ts';
import { namesOf } from '../keys.ts';
import type { Report } from '../report.ts';
import { countAt, durationAt, mapAt, wrongType } from '../yaml-fields.ts';
import type { YamlMap } from '../yaml-tree.ts';
import { strictKeys } from './fields.ts';
import { COST_LIMITS, TIME_LIMITS } from './limit-keys.ts';

/** Null if absent; 0: no limit. */
export type LimitsSyntax = WorkLimits & { readonly timeoutMs: number | null };

const NO_LIMITS: LimitsSyntax = { timeoutMs: null, idleMs: null, tokensMax: null, usdMax: null };

/** `costs`: whether it can cost money. */
export function readLimits(report: Report, map: YamlMap, owner: string, costs: boolean): LimitsSyntax {
  const limits = mapAt(report, map, 'limits', 'For example limits: { timeout: 30m, max_cost_usd: 5 }.');
  if (limits === null) return NO_LIMITS;
  const elsewhere = (key: string): string | null =>
    namesOf(COST_LIMITS).includes(key) ? 'Only turns of agents cost tokens and money.' : null;
  const known = costs ? [...TIME_LIMITS, ...COST_LIMITS] : TIME_LIMITS;
  strictKeys(report, limits, namesOf(known), `"limits" of ${owner}`, elsewhere);
  return {
    timeoutMs: durationAt(report, limits, 'timeout'),
    idleMs: durationAt(report, limits, 'idle_timeout'),
    tokensMax: costs ? countAt(report, limits, 'max_tokens', 1) : null,
    usdMax: costs ? amountAt(report, limits, 'max_cost_usd') : null,
  };
}

/** The first overrides the second; a time of 0 becomes null, no limit. */
export function overLimits(first: LimitsSyntax, second: LimitsSyntax): LimitsSyntax {
  return {
    timeoutMs: (first.timeoutMs ?? second.timeoutMs) || null,
    idleMs: first.idleMs ?? second.idleMs,
    tokensMax: first.tokensMax ?? second.tokensMax,
    usdMax: first.usdMax ?? second.usdMax,
  };
}

/** An agent that is silent this long counts as hanging, unless the workflow sets another limit. */
const IDLE_MS = 600_000;

/** For an agent's turn; the step has the limit of the whole time. */
export function turnLimits({ idleMs, tokensMax, usdMax }: LimitsSyntax): WorkLimits {
  return { idleMs: (idleMs ?? IDLE_MS) || null, tokensMax, usdMax };
}

function amountAt(report: Report, map: YamlMap, key: string): number | null {
  const value = map.entries.get(key)?.value;
  if (value === undefined || value.kind === 'nothing') return null;
  const amount = value.kind === 'number' ? Number(value.text) : Number.NaN;
  if (Number.isFinite(amount) && amount > 0) return amount;
  return wrongType(report, value, `"${key}" must be an amount`, `For example ${key}: 2.50.`);
}
