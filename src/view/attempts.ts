// The attempts of each step with their spans of time, read from the journal: the state knows only the latest attempt.

import type { EffectSpec } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import type { FilledText } from '../ir/text.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';

export interface Attempt {
  readonly attempt: number;
  readonly status: 'running' | 'done' | 'failed' | 'lost' | 'stopped';
  readonly agent: string | null;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly finishedAt: number | null;
  readonly failure: Failure | null;
}

/** Reads records one after another, so that following a run costs only what is new. */
export class Attempts {
  readonly #ofStep = new Map<string, Attempt[]>();
  readonly #effects = new Map<string, EffectSpec<FilledText>>();

  read({ at, decisions }: JournalRecord): void {
    for (const decision of decisions) {
      if (decision.kind === 'step-started') this.#start(decision, at);
      else for (const step of stepsEndedBy(decision)) this.#end(step, decision, at);
    }
  }

  of(step: string): readonly Attempt[] {
    return this.#ofStep.get(step) ?? [];
  }

  /** The effect of the latest attempt that had one. */
  effectOf(step: string): EffectSpec<FilledText> | null {
    return this.#effects.get(step) ?? null;
  }

  #start({ step, attempt, agent, effect }: Extract<Decision, { kind: 'step-started' }>, at: number): void {
    if (effect !== null) this.#effects.set(step, effect);
    const attempts = this.#ofStep.get(step) ?? [];
    this.#ofStep.set(step, attempts);
    attempts.push({ attempt, status: 'running', agent, startedAt: at, finishedAt: null, failure: null });
  }

  #end(step: string, decision: Decision, at: number): void {
    const attempts = this.#ofStep.get(step);
    const last = attempts?.at(-1);
    if (attempts === undefined || last?.status !== 'running') return;
    attempts[attempts.length - 1] = {
      ...last,
      status: STATUS_AFTER[decision.kind] ?? last.status,
      finishedAt: at,
      failure: 'failure' in decision ? decision.failure : null,
    };
  }
}

/** Status of a running attempt after a decision that ends it. */
const STATUS_AFTER: Readonly<Partial<Record<Decision['kind'], Attempt['status']>>> = {
  'step-done': 'done',
  'step-lost': 'lost',
  'step-failed-once': 'failed',
  'step-failed': 'failed',
  'steps-skipped': 'stopped',
};

function stepsEndedBy(decision: Decision): readonly string[] {
  if (STATUS_AFTER[decision.kind] === undefined) return [];
  return 'steps' in decision ? decision.steps : 'step' in decision ? [decision.step] : [];
}
