// How long runs and steps took, and what they cost as agents reported it. Durations leave out the time in which neither an
// engine nor a process was there.

import type { Cost, Decision } from '../kernel/decision.ts';
import {
  type Absence,
  NO_COST,
  outlivesEngine,
  presentTime,
  type RunState,
  shortened,
  type StepState,
  withAbsence,
} from '../kernel/state.ts';

export type { Cost };

/** Null before its start. `now`: in milliseconds since 1970, for a run that has not ended. */
export function runDuration(state: RunState, now: number): number | null {
  const { startedAt, endedAt } = state;
  return startedAt === null ? null : presentTime(absencesOf(state), startedAt, endedAt ?? now);
}

/** Time from a moment until now, or until the run was paused. */
export function timeSince(state: RunState, from: number, now: number): number {
  return presentTime(absencesOf(state), from, state.end === 'paused' ? (state.endedAt ?? now) : now);
}

/** Duration of the latest attempt; null if it neither runs nor has finished. */
export function stepDuration(state: RunState, step: StepState, now: number): number | null {
  const { attempt, status, startedAt } = step;
  // A step that waits for a person in a paused run is still running.
  const end = step.finishedAt ?? (status === 'running' || status === 'completing' ? (state.endedAt ?? now) : null);
  if (attempt === 0 || status === 'pending' || startedAt === null || end === null) return null;
  return presentTime(isProcess(step) ? [] : absencesOf(state), startedAt, end);
}

/** The process of such a step is all there is of it. */
function isProcess({ definition: { act }, children }: StepState): boolean {
  return act.kind === 'effect' && outlivesEngine(act.effect) && children.length === 0;
}

/** Without the time in which effects ran that have not ended yet. */
function absencesOf({ absences, inFlight }: RunState): readonly Absence[] {
  let left = absences;
  if (left.length === 0) return left;
  for (const { effect, startedAt } of inFlight.values()) {
    if (startedAt !== null && outlivesEngine(effect)) left = shortened(left, startedAt, Infinity);
  }
  return left;
}

/** The same from the decisions of a journal, in order. */
export class Durations {
  #recordedAt = 0;
  #absences: readonly Absence[] = [];
  readonly #attempts = new Map<
    string,
    { readonly startedAt: number; isProcess: boolean; effectEndedAt: number | null }
  >();
  #startedAt: number | null = null;

  note(decision: Decision, at: number): void {
    const before = this.#recordedAt;
    this.#recordedAt = at;
    switch (decision.kind) {
      case 'run-started':
        this.#startedAt = at;
        break;
      case 'engine-replaced':
      case 'run-resumed':
        this.#absences = withAbsence(this.#absences, before, at);
        break;
      case 'step-started': {
        const { step, effect } = decision;
        this.#attempts.set(step, { startedAt: at, isProcess: outlivesEngine(effect), effectEndedAt: null });
        break;
      }
      case 'effect-ended': {
        const attempt = this.#attempts.get(decision.step);
        if (attempt !== undefined) attempt.effectEndedAt = decision.endedAt;
        break;
      }
      case 'step-answered':
      case 'step-failed-once':
      case 'step-done':
      case 'step-failed': {
        const attempt = this.#attempts.get(decision.step);
        if (attempt?.isProcess !== true) break;
        this.#absences = shortened(this.#absences, attempt.startedAt, attempt.effectEndedAt ?? at);
        // The steps below it, if any, take their own time.
        if (decision.kind === 'step-answered') attempt.isProcess = false;
        break;
      }
      case 'steps-skipped':
        for (const id of decision.steps) {
          const attempt = this.#attempts.get(id);
          if (attempt?.isProcess === true && attempt.effectEndedAt !== null)
            this.#absences = shortened(this.#absences, attempt.startedAt, attempt.effectEndedAt);
        }
        break;
      default:
        break;
    }
  }

  /** Duration of an attempt that ends now; null if it never started. */
  step(id: string, at: number): number | null {
    const attempt = this.#attempts.get(id);
    if (attempt === undefined) return null;
    const { startedAt, isProcess, effectEndedAt } = attempt;
    return isProcess ? (effectEndedAt ?? at) - startedAt : presentTime(this.#absences, startedAt, at);
  }

  /** When the attempt that ends now really ended. */
  endOf(id: string, at: number): number {
    return this.#attempts.get(id)?.effectEndedAt ?? at;
  }

  run(at: number): number | null {
    return this.#startedAt === null ? null : presentTime(this.#absences, this.#startedAt, at);
  }
}

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

/** Cost of all attempts, with the parts that perform the step; null if nothing was reported. */
export function stepCost(step: StepState): Cost | null {
  const parts = step.children.filter(({ join }) => join === 'answer').flatMap(({ steps }) => steps.map(stepCost));
  const known = [step.cost, ...parts].filter((cost) => cost !== null);
  return known.length === 0 ? null : known.reduce(sum, NO_COST);
}

/** `$0.42`; `≥ $0.42, 1.2k tokens` or `1.2k tokens` if some prices or all are unknown; empty if nothing is known. */
export function costText({ usd, tokens, unpriced }: Cost): string {
  const price = usd > 0 ? `$${usd < 0.01 ? usd.toPrecision(1) : usd.toFixed(2)}` : '';
  if (unpriced === 0 && price !== '') return price;
  const parts = [price === '' ? '' : `≥ ${price}`, tokens > 0 ? `${shortNumber(tokens)} tokens` : ''];
  return parts.filter((part) => part !== '').join(', ');
}

function shortNumber(count: number): string {
  if (count < 1_000) return String(count);
  return count < 1e6 ? `${(count / 1e3).toFixed(1)}k` : `${(count / 1e6).toFixed(1)}M`;
}

function sum(a: Cost, b: Cost): Cost {
  return { usd: a.usd + b.usd, tokens: a.tokens + b.tokens, unpriced: a.unpriced + b.unpriced };
}
