// What the engine makes of a planner's status: what has happened in the run can make it graver, and nothing that a planner
// says undoes that. All of it follows from the visits so far.
//
// S1  A violation of a policy that no rollback has put back forces `unsafe`.
// S2  Golden snapshots that were proposed, and that nobody has approved since, force `needs_human`. Only a gate that was
//     approved discharges them: not one that was rejected or timed out, nor one that nobody waits for.
// S3  `partial` too often in a row becomes `needs_human`.
//
// `unsafe` is graver than `needs_human`.

import type { Json } from '../../base/json.ts';
import type { EvaluationStatus } from '../../ir/conducted.ts';
import { plainText } from '../../ir/text.ts';
import type { Visit } from './context.ts';

export interface Facts {
  /** Ids of visits (S1). */
  readonly violations: readonly string[];
  readonly goldens: readonly string[];
  /** How many `partial` came before this one. */
  readonly partials: number;
  readonly partialMax: number;
}

export interface Escalated {
  readonly status: EvaluationStatus;
  /** Why it is not what the planner said, or would not have been: sentences. */
  readonly escalations: readonly string[];
}

export function escalate(planned: EvaluationStatus, { violations, goldens, partials, partialMax }: Facts): Escalated {
  const escalations: string[] = [];
  if (violations.length > 0) {
    escalations.push(
      `the policy was violated in ${violations.join(', ')}, and that was not rolled back: the status is unsafe`,
    );
  }
  if (goldens.length > 0) {
    escalations.push(
      `golden snapshots were proposed and nobody approved them (${listed(goldens)}): the status is needs_human or graver`,
    );
  }
  const isStuck = planned === 'partial' && partials + 1 >= partialMax;
  if (isStuck) escalations.push(`partial ${partials + 1} times in a row: the status is needs_human or graver`);
  if (planned === 'unsafe' || violations.length > 0) return { status: 'unsafe', escalations };
  return { status: goldens.length > 0 || isStuck ? 'needs_human' : planned, escalations };
}

/** Visits whose violations are still in the tree. */
export function openViolations(history: readonly Visit[]): readonly Visit[] {
  let open: readonly Visit[] = [];
  /** How many of them were there before the latest turn of an agent: what `pre_step` does not put back. */
  let before = 0;
  for (const visit of history) {
    if (visit.kind === 'work') before = open.length;
    if (visit.kind === 'rollback' && visit.outcome === 'completed') {
      open = visit.outputs['target'] === 'pre_run' ? [] : open.slice(0, before);
    } else if (hasViolated(visit)) {
      open = [...open, visit];
    }
  }
  return open;
}

export function hasViolated({ failure, outputs }: Visit): boolean {
  const { violations } = outputs;
  return failure?.kind === 'policy' || (Array.isArray(violations) && violations.length > 0);
}

/** Paths that were proposed since a gate was last approved. */
export function pendingGoldens(history: readonly Visit[]): readonly string[] {
  const since = history.slice(
    history.findLastIndex(({ outcome, kind }) => kind === 'gate' && outcome === APPROVED) + 1,
  );
  const proposed = since.flatMap(({ kind, outputs }): readonly Json[] => {
    const { proposed_goldens: paths } = outputs;
    return kind === 'validate' && Array.isArray(paths) ? paths : [];
  });
  return [...new Set(proposed.map(plainText))];
}

const APPROVED = 'gate_approved';

/** How many evaluations of a step have come to `partial`, one after the other, up to now. Those that failed say nothing. */
export function partialsInARow(history: readonly Visit[], step: string): number {
  const statuses = history.filter(
    (visit) => visit.kind === 'evaluate' && visit.step === step && visit.failure === null,
  );
  return statuses.length - 1 - statuses.findLastIndex(({ outputs }) => outputs['status'] !== 'partial');
}

const LISTED_MAX = 5;

export function listed(names: readonly string[]): string {
  const more = names.length - LISTED_MAX;
  return [...names.slice(0, LISTED_MAX), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}
