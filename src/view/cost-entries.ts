// What each turn of a run cost, as agents reported it, from the records: with step, attempt, agent and lane, so that costs can be
// summed by any of them, at any record. Data only.

import { priceOf, type Usage } from '../ir/output.ts';
import type { Cost, Decision, JournalRecord } from '../kernel/decision.ts';
import { filledText, namedModel } from './status.ts';

export interface CostEntry {
  readonly seq: number;
  readonly at: number;
  readonly step: string;
  readonly attempt: number;
  /** Null for turns without a named agent. */
  readonly agent: string | null;
  readonly lane: string;
  /** Null if unknown. */
  readonly adapter: string | null;
  /** As the step or the program names it; null if neither does. */
  readonly model: string | null;
  /** How long the attempt took. */
  readonly ms: number;
  readonly usage: Usage;
  readonly cost: Cost;
}

export class CostEntries {
  readonly all: CostEntry[] = [];
  readonly #attempts = new Map<string, Attempt>();
  readonly #adapterOfAgent = new Map<string, string>();
  readonly #laneOfFrame = new Map<string, string>();
  readonly #laneOfStep = new Map<string, string>();

  note({ seq, at, decisions }: Pick<JournalRecord, 'seq' | 'at' | 'decisions'>): void {
    for (const decision of decisions) this.#decided(decision, seq, at);
  }

  /** Up to the record `seq`. */
  until(seq: number): readonly CostEntry[] {
    const after = this.all.findIndex((entry) => entry.seq > seq);
    return after < 0 ? this.all : this.all.slice(0, after);
  }

  #decided(decision: Decision, seq: number, at: number): void {
    switch (decision.kind) {
      case 'frame-opened':
        this.#laneOfFrame.set(decision.frame.id, decision.frame.lane);
        break;
      case 'steps-added': {
        const lane = this.#laneOfFrame.get(decision.frame) ?? '';
        for (const step of decision.steps) this.#laneOfStep.set(step, lane);
        break;
      }
      case 'agent-opened':
        this.#adapterOfAgent.set(decision.agent.name, decision.agent.adapter);
        break;
      case 'step-started': {
        const { step, attempt, agent, effect } = decision;
        const adapter =
          effect?.kind === 'turn' ? filledText(effect.adapter) : (this.#adapterOfAgent.get(agent ?? '') ?? null);
        const model = namedModel(effect);
        this.#attempts.set(step, { attempt, agent, adapter, model, startedAt: at, endedAt: null });
        break;
      }
      case 'effect-ended': {
        const attempt = this.#attempts.get(decision.step);
        if (attempt !== undefined) attempt.endedAt = decision.endedAt;
        break;
      }
      case 'usage-counted': {
        const { step, usage } = decision;
        const found = this.#attempts.get(step) ?? { ...UNKNOWN_ATTEMPT, startedAt: at };
        const { attempt, agent, adapter, startedAt, endedAt } = found;
        const model = found.model ?? usage.model ?? null;
        const ms = Math.max(0, (endedAt ?? at) - startedAt);
        const usd = priceOf(usage);
        const cost = { usd: usd ?? 0, tokens: usage.tokens ?? 0, unpriced: usd === null ? 1 : 0 };
        const lane = this.#laneOfStep.get(step) ?? '';
        this.all.push({ seq, at, step, attempt, agent, lane, adapter, model, ms, usage, cost });
        break;
      }
      default:
        break;
    }
  }
}

const UNKNOWN_ATTEMPT = { attempt: 1, agent: null, adapter: null, model: null, endedAt: null };

interface Attempt {
  readonly attempt: number;
  readonly agent: string | null;
  readonly adapter: string | null;
  readonly model: string | null;
  readonly startedAt: number;
  endedAt: number | null;
}

export interface CostSum {
  readonly name: string;
  readonly cost: Cost;
  readonly turns: number;
}

/** By the name that `of` gives to an entry; the most expensive first, and what has an unknown price before what costs nothing. */
export function costsBy(entries: readonly CostEntry[], of: (entry: CostEntry) => string): readonly CostSum[] {
  const sums = new Map<string, { cost: Cost; turns: number }>();
  for (const entry of entries) {
    const name = of(entry);
    const { cost, turns } = sums.get(name) ?? { cost: { usd: 0, tokens: 0, unpriced: 0 }, turns: 0 };
    sums.set(name, {
      cost: {
        usd: cost.usd + entry.cost.usd,
        tokens: cost.tokens + entry.cost.tokens,
        unpriced: cost.unpriced + entry.cost.unpriced,
      },
      turns: turns + 1,
    });
  }
  return [...sums]
    .map(([name, sum]) => ({ name, ...sum }))
    .toSorted((a, b) => b.cost.usd - a.cost.usd || b.cost.tokens - a.cost.tokens || b.cost.unpriced - a.cost.unpriced);
}
