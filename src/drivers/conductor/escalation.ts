// How the engine escalates a planner's status: the history of the run can make it more severe, and no planner can undo
// that. Derived from the visits so far.
//
// escalation/1  A policy violation that no rollback has undone forces `unsafe`. Changes to git's own hooks and settings
//               are in no snapshot, so no rollback undoes them.
// escalation/2  Proposed golden snapshots without a later approval force `needs_human`. Only an approved gate
//               discharges them, not a rejection, a timeout, or a gate that nobody waits for.
// escalation/3  Too many `partial` in a row become `needs_human`.
//
// `unsafe` is more severe than `needs_human`.

import type { Json } from '../../base/json.ts';
import type { EvaluationStatus } from '../../ir/conductor.ts';
import { plainText } from '../../ir/text.ts';
import { mapsIn, type Visit } from './context.ts';

export interface Facts {
  /** Ids of visits (escalation/1). */
  readonly violations: readonly string[];
  readonly goldens: readonly string[];
  /** Number of `partial` before this one. */
  readonly partials: number;
  readonly partialMax: number;
}

export interface Escalated {
  readonly status: EvaluationStatus;
  /** Why the status differs, or would differ, from the planner's: sentences. */
  readonly escalations: readonly string[];
}

export function escalate(planned: EvaluationStatus, { violations, goldens, partials, partialMax }: Facts): Escalated {
  const escalations: string[] = [];
  if (violations.length > 0) {
    const visits = violations.join(', ');
    escalations.push(`the policy was violated in ${visits}, and that was not rolled back: the status is unsafe`);
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
  /** Violations before the latest agent turn: `pre_step` restores a state that contains them. */
  let before: readonly Visit[] = [];
  for (const visit of history) {
    if (visit.kind === 'work') before = open;
    if (visit.kind === 'rollback' && visit.outcome === 'completed') {
      const restored = visit.outputs['target'] === 'pre_run' ? [] : before;
      open = [...restored, ...open.filter((each) => hasTampered(each) && !restored.includes(each))];
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

/** The file that points to the repository is restored at once (worktree/2). */
function hasTampered({ outputs: { violations } }: Visit): boolean {
  return mapsIn(violations).some(({ rule, path }) => rule === 'git_tampering' && path !== '.git');
}

/** Paths proposed since the last approved gate. */
export function pendingGoldens(history: readonly Visit[]): readonly string[] {
  const approvedAt = history.findLastIndex(({ outcome, kind }) => kind === 'gate' && outcome === 'gate_approved');
  const proposed = history.slice(approvedAt + 1).flatMap(({ kind, outputs }): readonly Json[] => {
    const { proposed_goldens: paths } = outputs;
    return kind === 'validate' && Array.isArray(paths) ? paths : [];
  });
  return [...new Set(proposed.map(plainText))];
}

/** Length of the current series of `partial` evaluations of a step. Failed evaluations do not count. */
export function partialsInARow(history: readonly Visit[], step: string): number {
  const statuses = history.filter((one) => one.kind === 'evaluate' && one.step === step && one.failure === null);
  return statuses.length - 1 - statuses.findLastIndex(({ outputs }) => outputs['status'] !== 'partial');
}

const LISTED_MAX = 5;

export function listed(names: readonly string[]): string {
  const more = names.length - LISTED_MAX;
  return [...names.slice(0, LISTED_MAX), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}
