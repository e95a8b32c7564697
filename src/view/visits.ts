// The visits of Conductor steps, in order, each with its outcome in the workflow's terms.

import { own } from '../base/json.ts';
import { OUTCOME_OF } from '../ir/conductor.ts';
import type { Failure, FailureKind } from '../ir/failure.ts';
import type { Outputs } from '../ir/output.ts';
import type { Step } from '../ir/program.ts';
import type { StepState } from '../kernel/state.ts';

export interface VisitView {
  /** `fix#2`. */
  readonly id: string;
  /** `fix`. */
  readonly step: string;
  readonly visit: number;
  readonly kind: VisitKind;
  /** Null while it is in progress, or if it never ended. */
  readonly outcome: string | null;
  readonly failure: Failure | null;
  readonly outputs: Outputs;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

export type VisitKind = 'work' | 'validate' | 'evaluate' | 'rollback' | 'halt' | 'gate';

export function visitsOf(steps: Iterable<StepState>): readonly VisitView[] {
  const visits: VisitView[] = [];
  for (const step of steps) {
    const { id, definition, failure, outputs, startedAt, finishedAt: endedAt } = step;
    const kind = visitKind(definition);
    if (kind === null || startedAt === null) continue;
    visits.push({
      id,
      step: definition.id,
      visit: visitNumber(id),
      kind,
      outcome: outcomeOf(step),
      failure,
      outputs: { ...outputs, ...failure?.outputs },
      startedAt,
      endedAt,
    });
  }
  return visits;
}

/** Outcome in the workflow's own terms; null if there is none, or none yet. */
export function outcomeOf({ definition, status, failure, outputs }: EndedStep): string | null {
  const kind = visitKind(definition);
  if (kind === null) return null;
  if (status === 'failed') return kind === 'gate' ? 'gate_timed_out' : failure && failureOutcome(failure);
  if (status !== 'done') return null;
  if (kind === 'evaluate' && typeof outputs['status'] === 'string') return outputs['status'];
  const { act } = definition;
  const isDecided = act.kind === 'effect' && act.effect.kind === 'gate' && act.effect.blocks;
  const { outcome } = outputs;
  return isDecided && (outcome === 'approved' || outcome === 'rejected') ? `gate_${outcome}` : 'completed';
}

type EndedStep = Pick<StepState, 'definition' | 'status' | 'failure' | 'outputs'>;

export function failureOutcome({ kind }: Failure): string {
  return OUTCOME_OF[kind] ?? 'error';
}

/** Null if it is not a step of a Conductor workflow. */
export function visitKind({ act, executor }: Step): VisitKind | null {
  // Other languages have gates under another executor.
  if (executor === 'gate') return act.kind === 'effect' && act.effect.kind === 'gate' ? 'gate' : null;
  return own(KINDS, executor) ?? null;
}

const KINDS: Readonly<Record<string, VisitKind>> = {
  run_agent: 'work',
  run_validation: 'validate',
  evaluate: 'evaluate',
  rollback: 'rollback',
  stop: 'halt',
};

/** The workflow's name for an outcome that a step has a route for. */
export function routeWord(step: Step, route: string): string {
  const kind = visitKind(step);
  if (kind === null) return route;
  if (kind === 'gate') return GATE_WORDS[route] ?? route;
  return (kind === 'evaluate' ? EVALUATOR_WORDS[route] : undefined) ?? OUTCOME_OF[route as FailureKind] ?? route;
}

const GATE_WORDS: Readonly<Record<string, string>> = {
  approved: 'gate_approved',
  rejected: 'gate_rejected',
  timeout: 'gate_timed_out',
};

/** Failures of an evaluator itself have two routes. */
const EVALUATOR_WORDS: Readonly<Record<string, string>> = { idle: 'killed_timeout', policy: 'error', budget: 'error' };

export function visitNumber(id: string): number {
  return Number(/#(\d+)$/.exec(id)?.[1] ?? 1);
}
