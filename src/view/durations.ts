// How long runs and steps took. Durations leave out the time in which neither an engine nor a process was there
// (kernel/absences.ts).

import { type Absence, outlivesEngine, presentTime, shortened, withAbsence } from '../kernel/absences.ts';
import type { Decision } from '../kernel/decision.ts';
import type { RunState, StepState } from '../kernel/state.ts';

/** Null before its start. `now`: in milliseconds since 1970, for a run that has not ended. */
export function runDuration(state: RunState, now: number): number | null {
  const { startedAt, endedAt } = state;
  return startedAt === null ? null : presentTime(absencesOf(state), startedAt, endedAt ?? now);
}

/** Of the latest attempt; null if it neither runs nor has finished. */
export function stepDuration(state: RunState, step: StepState, now: number): number | null {
  const { attempt, status, startedAt } = step;
  const end = step.finishedAt ?? (status === 'running' || status === 'completing' ? now : null);
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
      default:
        break;
    }
  }

  /** Of an attempt that ends now; null if it never started. */
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
