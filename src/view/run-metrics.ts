// What happened in runs, as counters for a monitoring system: a fold of records, from a moment on. Data only.

import type { EffectSpec } from '../ir/effect.ts';
import { priceOf, type Usage } from '../ir/output.ts';
import type { FilledText } from '../ir/text.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';

export type StepOutcome = 'done' | 'failed' | 'skipped';
export type TokenKind = 'total' | 'input' | 'output';

export interface RunCounts {
  readonly steps: Readonly<Record<StepOutcome, number>>;
  /** By adapter. */
  readonly turns: ReadonlyMap<string, number>;
  readonly tokens: Readonly<Record<TokenKind, number>>;
  readonly usd: number;
  /** Turns without a known price. */
  readonly unknownCostTurns: number;
}

interface Turn {
  readonly adapter: string;
  isPriced: boolean;
}

/** Counts what was recorded at `since` or later. Milliseconds since 1970. */
export function countRecords(records: readonly JournalRecord[], since: number): RunCounts {
  const counter = new Counter();
  for (const { at, decisions } of records) for (const decision of decisions) counter.note(decision, at >= since);
  return counter.counts();
}

export function sumCounts(all: Iterable<RunCounts>): RunCounts {
  const steps = { done: 0, failed: 0, skipped: 0 };
  const tokens = { total: 0, input: 0, output: 0 };
  const turns = new Map<string, number>();
  let usd = 0;
  let unknownCostTurns = 0;
  for (const counts of all) {
    for (const outcome of ['done', 'failed', 'skipped'] as const) steps[outcome] += counts.steps[outcome];
    for (const kind of ['total', 'input', 'output'] as const) tokens[kind] += counts.tokens[kind];
    for (const [adapter, count] of counts.turns) turns.set(adapter, (turns.get(adapter) ?? 0) + count);
    usd += counts.usd;
    unknownCostTurns += counts.unknownCostTurns;
  }
  return { steps, turns, tokens, usd, unknownCostTurns };
}

class Counter {
  readonly #steps = { done: 0, failed: 0, skipped: 0 };
  readonly #turns = new Map<string, number>();
  readonly #tokens = { total: 0, input: 0, output: 0 };
  #usd = 0;
  #unknownCostTurns = 0;
  readonly #adapterOf = new Map<string, string>();
  /** By step. */
  readonly #open = new Map<string, Turn>();

  /** `counts`: false for what happened before. */
  note(decision: Decision, counts: boolean): void {
    switch (decision.kind) {
      case 'agent-opened':
        this.#adapterOf.set(decision.agent.name, decision.agent.adapter);
        break;
      case 'step-started': {
        const adapter = this.#adapterFor(decision.effect);
        if (adapter !== null) this.#open.set(decision.step, { adapter, isPriced: false });
        break;
      }
      case 'usage-counted':
        this.#usage(decision.step, decision.usage, counts);
        break;
      case 'step-failed-once':
      case 'step-parked':
      case 'step-lost':
        this.#turnEnded(decision.step, counts);
        break;
      case 'step-done':
      case 'step-failed':
        this.#turnEnded(decision.step, counts);
        if (counts) this.#steps[decision.kind === 'step-done' ? 'done' : 'failed'] += 1;
        break;
      case 'steps-skipped':
        for (const step of decision.steps) this.#turnEnded(step, counts);
        if (counts) this.#steps.skipped += decision.steps.length;
        break;
      default:
        break;
    }
  }

  counts(): RunCounts {
    return {
      steps: this.#steps,
      turns: this.#turns,
      tokens: this.#tokens,
      usd: this.#usd,
      unknownCostTurns: this.#unknownCostTurns,
    };
  }

  /** Null if the effect is not a turn of an agent. */
  #adapterFor(effect: EffectSpec<FilledText> | null): string | null {
    if (effect?.kind === 'turn') return nameIn(effect.adapter);
    return effect?.kind === 'prompt' ? (this.#adapterOf.get(nameIn(effect.agent)) ?? 'unknown') : null;
  }

  #usage(step: string, usage: Usage, counts: boolean): void {
    const turn = this.#open.get(step);
    const price = priceOf(usage);
    const { parts } = usage;
    if (turn !== undefined && price !== null) turn.isPriced = true;
    if (!counts) return;
    this.#usd += price ?? 0;
    this.#tokens.total += usage.tokens ?? 0;
    this.#tokens.input += parts === undefined ? 0 : parts.input + parts.cached;
    this.#tokens.output += parts?.output ?? 0;
  }

  #turnEnded(step: string, counts: boolean): void {
    const turn = this.#open.get(step);
    if (turn === undefined) return;
    this.#open.delete(step);
    if (!counts) return;
    this.#turns.set(turn.adapter, (this.#turns.get(turn.adapter) ?? 0) + 1);
    if (!turn.isPriced) this.#unknownCostTurns += 1;
  }
}

function nameIn(text: FilledText): string {
  return typeof text === 'string' ? text : text.filter((part) => typeof part === 'string').join('');
}
