// How performers ask other drivers, and how they answer.

import type { Driver, StopHow } from '../../engine/ports.ts';
import type { Effect, Outcome } from '../../ir/effect.ts';
import { failure } from '../../ir/failure.ts';
import type { Failure, FailureKind } from '../../ir/failure.ts';
import { OUTCOME_OF } from '../../ir/conducted.ts';
import type { Mechanical, ConductedSpec } from '../../ir/conducted.ts';
import type { Outputs } from '../../ir/output.ts';
import type { OpcodeContext, Performance, Visit } from './context.ts';

export interface Answered {
  readonly outcome: Outcome;
  /** How it was stopped; null where nobody did. */
  readonly stop: StopHow | null;
}

/** What was begun in an earlier life of the engine is waited for, or has left its result; a stop is passed on. */
export async function ask(
  driver: Driver,
  effect: Effect,
  { asked, note }: Pick<Performance<ConductedSpec>, 'asked' | 'note'>,
): Promise<Answered> {
  let stop: StopHow | null = null;
  const outcome = new Promise<Outcome>((resolve) => driver.find(effect, resolve, note));
  void asked.stopped.then((how) => {
    stop = how;
    driver.stop(effect.id, how);
  });
  void asked.forced.then(() => driver.stop(effect.id, { force: true, why: stop?.why ?? 'run-ending' }));
  return { outcome: await outcome, stop };
}

/** It is asked for again, as another attempt, or nobody waits for it any more: nothing is to be made of it. */
export function isUnfinished({ outcome, stop }: Answered): boolean {
  if (outcome.kind === 'success' || stop?.why === 'timeout') return false;
  // One that was stopped in an earlier life of the engine may be out of time.
  return outcome.failure.kind === 'lost' || (outcome.failure.kind === 'stopped' && stop !== null);
}

/** The word for it in manifests. */
export function mechanical(outcome: Outcome, stop: StopHow | null): Mechanical {
  if (outcome.kind === 'success') return 'completed';
  if (stop?.why === 'timeout' && CUT_OFF.has(outcome.failure.kind)) return 'killed_timeout';
  return OUTCOME_OF[outcome.failure.kind] ?? 'error';
}

const CUT_OFF: ReadonlySet<FailureKind> = new Set(['stopped', 'lost', 'signal']);

export function failed(kind: FailureKind, message: string, more: Partial<Failure> = {}): Outcome {
  return { kind: 'failure', failure: failure(kind, message, more) };
}

/** What a step hands on, however it ended. */
export function withOutputs(outcome: Outcome, more: Outputs): Outcome {
  if (outcome.kind === 'success') return { ...outcome, outputs: { ...outcome.outputs, ...more } };
  const { failure: problem } = outcome;
  return { kind: 'failure', failure: { ...problem, outputs: { ...problem.outputs, ...more } } };
}

/** Whoever asks is under way, and not among them. */
export function earlierVisits({ history }: OpcodeContext, { step }: Effect): readonly Visit[] {
  return history().filter(({ id }) => id !== step);
}
