// The evidence for an evaluator: one document from the journal and from the engine's own observations. Statements of
// agents are included as claims, and contradictions to them as facts.
//
// A contradiction is a statement about recorded outcomes, never about the meaning of a text: a completed turn without
// changes; a completed turn whose validation failed; a report without failures from a failed validator, or the reverse.
//
// The same history can make a planner's status more severe, and no planner can undo that:
//
// escalation/1  A policy violation that no rollback has undone forces `unsafe`. Changes to git's own hooks and settings
//               are in no snapshot, so no rollback undoes them.
// escalation/2  Proposed golden snapshots without a later approval force `needs_human`. Only an approved gate
//               discharges them, not a rejection, a timeout, or a gate that nobody waits for.
// escalation/3  Too many `partial` in a row become `needs_human`.
//
// `unsafe` is more severe than `needs_human`.

import { isJsonMap, type Json, type JsonMap, own } from '../../base/json.ts';
import { formatMoment } from '../../base/time.ts';
import type { EvaluationStatus, Hints } from '../../ir/conductor.ts';
import { errorType } from '../../ir/failure.ts';
import { plainText } from '../../ir/text.ts';
import { mapsIn, type Visit } from './context.ts';

interface EvidenceRequest {
  readonly runId: string;
  /** The requesting visit: `evaluate#2`. */
  readonly visit: string;
  readonly allowedNext: readonly string[];
  readonly hints: Hints;
  readonly history: readonly Visit[];
  /** All changes of the run so far; null without git. */
  readonly diff: JsonMap | null;
  /** The latest harness report; null if there is none. */
  readonly report: Json;
}

export function evidenceOf({ runId, visit, allowedNext, hints, history, diff, report }: EvidenceRequest) {
  const open = new Set(openViolations(history));
  return {
    run_id: runId,
    visit,
    allowed_next_steps: allowedNext,
    component_kind: hints.componentKind,
    eval_profile: hints.evalProfile,
    last_steps: history.slice(-STEPS_SHOWN).map(recordOf),
    diff,
    validation: latestValidations(history).map(validationOf),
    harness_report: report,
    policy_events: history.filter(hasViolated).map((each) => ({
      visit: each.id,
      message: each.failure?.message ?? null,
      violations: own(each.outputs, 'violations') ?? [],
      is_rolled_back: !open.has(each),
    })),
    pending_goldens: pendingGoldens(history),
    contradictions: contradictionsIn(history),
  };
}

const STEPS_SHOWN = 3;

/** The latest visit of each validation step, in order. */
export function latestValidations(history: readonly Visit[]): readonly Visit[] {
  const validations = history.filter(({ kind, outcome }) => kind === 'validate' && outcome !== null);
  const latest = new Map(validations.map((visit) => [visit.step, visit]));
  return validations.filter((visit) => latest.get(visit.step) === visit);
}

export function validationOf(visit: Visit): JsonMap {
  const { validators, harness_report, report_summary, proposed_goldens, artifacts } = visit.outputs;
  return {
    visit: visit.id,
    outcome: visit.outcome,
    message: visit.failure?.message ?? null,
    validators: validators ?? [],
    logs: mapsIn(artifacts).flatMap(({ role, path }) => (LOGS.has(role) && path !== undefined ? [path] : [])),
    harness_report: harness_report ?? null,
    report_summary: report_summary ?? null,
    proposed_goldens: proposed_goldens ?? [],
  };
}

const LOGS: ReadonlySet<Json | undefined> = new Set(['validation_stdout', 'validation_stderr']);

export function contradictionsIn(history: readonly Visit[]): readonly string[] {
  const recent = history.slice(history.findLastIndex(({ kind }) => kind === 'evaluate') + 1);
  const idle = recent.filter(claimsWork).filter(hasNothingToShow);
  const worker = history.findLast(({ kind }) => kind === 'work');
  const after = worker !== undefined && claimsWork(worker) ? history.slice(history.indexOf(worker) + 1) : [];
  const validations = latestValidations(history);
  const failed = validations.filter((visit) => after.includes(visit)).flatMap(failures);
  return [
    ...idle.map(({ id }) => `${id} ended as completed, and has changed nothing`),
    ...failed.map((failure) => `${worker?.id} ended as completed, and ${failure}`),
    ...validations.flatMap(contradictionsOfReport),
  ];
}

export function contradictionsTo(status: EvaluationStatus, history: readonly Visit[]): readonly string[] {
  const failed = status === 'success' ? latestValidations(history).flatMap(failures) : [];
  return failed.map((failure) => `the planner says success, and ${failure}`);
}

function claimsWork({ kind, outcome }: Visit): boolean {
  return kind === 'work' && outcome === 'completed';
}

/** Changed neither the worktree nor the run directory, although it was allowed to. */
function hasNothingToShow({ outputs }: Visit): boolean {
  const { changes, run_files: files, policy } = outputs;
  const effective = isJsonMap(policy) ? policy['effective'] : undefined;
  const isToChange = !isJsonMap(effective) || effective['execution'] !== 'read_only';
  return isToChange && isJsonMap(changes) && changes['files'] === 0 && Array.isArray(files) && files.length === 0;
}

/** One sentence for each validator that did not complete. */
function failures(visit: Visit): readonly string[] {
  return mapsIn(visit.outputs['validators']).flatMap(({ id, outcome, exit_code: code }) => {
    if (outcome === 'completed') return [];
    const how = `${plainText(outcome ?? null)}${typeof code === 'number' ? `, exit code ${code}` : ''}`;
    return [`the validator ${plainText(id ?? null)} failed in ${visit.id} (${how})`];
  });
}

function contradictionsOfReport(visit: Visit): readonly string[] {
  const { report_summary: report, validators } = visit.outputs;
  if (!isJsonMap(report)) return [];
  const { summary, statuses } = report;
  const counted = isJsonMap(summary) ? summary['failed'] : undefined;
  if (typeof counted !== 'number') return [];
  const cases = isJsonMap(statuses) ? (statuses['failed'] ?? 0) : counted;
  const scripts = mapsIn(validators).filter(({ kind }) => kind === 'script');
  const failed = scripts.filter(({ exit_code: code }) => typeof code === 'number' && code !== 0);
  const says = `the harness report of ${visit.id} counts ${counted === 0 ? 'no failure' : `${counted} failed`}`;
  const facts: string[] = [];
  for (const { id = null, exit_code: code = null } of counted === 0 ? failed : []) {
    facts.push(`the validator ${plainText(id)} ended with exit code ${plainText(code)}`);
  }
  if (counted > 0 && scripts.length > 0 && failed.length === 0) facts.push('every script ended with exit code 0');
  if (cases !== counted) facts.push(`${plainText(cases)} of its cases are failed`);
  return facts.map((fact) => `${says}, and ${fact}`);
}

function recordOf(visit: Visit): JsonMap {
  const { id, step, kind, outcome, failure, outputs, startedAt, endedAt } = visit;
  const shown = Object.entries(outputs).filter(([name]) => !LEFT_OUT.has(name));
  return {
    visit: id,
    step,
    opcode: OPCODES[kind],
    outcome,
    error: failure === null ? null : { type: errorType(failure.kind), message: failure.message },
    started_at: startedAt === null ? null : formatMoment(startedAt),
    ended_at: endedAt === null ? null : formatMoment(endedAt),
    outputs: Object.fromEntries(shown.map(([name, value]) => [name, shortened(value)])),
  };
}

const OPCODES: Readonly<Record<Visit['kind'], string>> = {
  work: 'RUN_AGENT',
  validate: 'RUN_VALIDATION',
  evaluate: 'EVALUATE',
  gate: 'GATE',
  rollback: 'ROLLBACK',
  halt: 'STOP',
};

/** Parts that are elsewhere in the evidence, or irrelevant to a planner. */
const LEFT_OUT: ReadonlySet<string> = new Set(['validators', 'artifacts', 'policy', 'session_id']);
const TEXT_MAX = 8_000;

function shortened(value: Json): Json {
  if (typeof value !== 'string' || value.length <= TEXT_MAX) return value;
  return `${value.slice(0, TEXT_MAX / 2)}\n… (${value.length - TEXT_MAX} characters are left out)\n${value.slice(-TEXT_MAX / 2)}`;
}

interface Facts {
  /** Ids of visits (escalation/1). */
  readonly violations: readonly string[];
  readonly goldens: readonly string[];
  /** Number of `partial` before this one. */
  readonly partials: number;
  readonly partialMax: number;
}

/** `escalations`: why the status differs, or would differ, from the planner's, as sentences. */
export function escalate(planned: EvaluationStatus, { violations, goldens, partials, partialMax }: Facts) {
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
  const isUnsafe = planned === 'unsafe' || violations.length > 0;
  const status: EvaluationStatus = isUnsafe ? 'unsafe' : goldens.length > 0 || isStuck ? 'needs_human' : planned;
  return { status, escalations };
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

function hasViolated({ failure, outputs }: Visit): boolean {
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
