// Outcomes of Conductor's own steps: git operations and inspections. A step that only prepares has one outcome. A step
// that judges has the outcomes that its evidence allows.
//
// conducted/1  The verdict about a turn, a validator or a witness follows the failure of its command or turn.
// conducted/2  A turn that completed may have violated its policy.
// conducted/3  An evaluation has every status; but `partial` at most as often in a row as the workflow allows, and only
//              `unsafe` while a violation has not been rolled back.
// conducted/4  The program and the folder of a validator may turn out not to be allowed.
// conducted/5  Nobody proposes golden snapshots.

import type { ConductedSpec, DecisionInspection, GitOperation, Inspection } from '../ir/conductor.ts';
import { STATUSES } from '../ir/conductor.ts';
import { type Outcome, success } from '../ir/effect.ts';
import { failure, type Failure, type FailureKind } from '../ir/failure.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { beyondTests, type Cause, caused, GOES_ON } from './causes.ts';
import { visitsOf, type VisitView } from '../view/visits.ts';

export function conductedOutcomes(state: RunState, step: StepState, spec: ConductedSpec): readonly Outcome[] {
  return spec.kind === 'git' ? gitOutcomes(spec.operation) : inspected(state, step, spec.inspection);
}

function gitOutcomes(operation: GitOperation): readonly Outcome[] {
  const folder = 'worktree';
  switch (operation.kind) {
    case 'snapshot':
      return [success({ folder, before: null })];
    case 'changes':
      return [success({ folder, after: null, patch: null, status: null })];
    case 'rollback':
      return [
        success({ target: operation.target }, { route: 'completed' }),
        failed('refused', 'the run cannot be rolled back'),
      ];
  }
}

function inspected(state: RunState, step: StepState, inspection: Inspection): readonly Outcome[] {
  const beside = (id: string): StepState | undefined => state.steps.get(`${step.frame.prefix}${id}`);
  switch (inspection.kind) {
    case 'prompt':
      return [success({ prompt: 'prompt' })];
    case 'policy': {
      const turn = beside('turn');
      const violated = failed('policy', 'the policy was violated');
      if (turn?.failure) return [again(turn.failure), violated];
      return [success({ ...turn?.outputs, witness: null }, { route: 'completed' }), violated];
    }
    case 'witness': {
      const of = beside(inspection.of);
      if (beside(inspection.run)?.failure) return [failed('unproven', 'the witness contradicts the outcome')];
      return [success({ ...of?.outputs, witness: 'witness' }, { route: of?.route ?? 'completed' })];
    }
    case 'evidence':
      return [success({ file: 'evidence.json', evidence: 'evidence.json', prompt: 'prompt', contradictions: [] })];
    case 'decision':
      return decisions(state, step, inspection, beside('ask')?.failure ?? null);
    case 'prepare': {
      const { kind, cwd } = inspection.validator;
      const prepared = success({ script: 'validator', cwd: '.', home: '.', tmpdir: '.' });
      if (kind === 'builtin' && cwd === null) return [prepared];
      return [prepared, failed('policy', 'its program or its folder is not allowed')];
    }
    case 'collect': {
      const problem = beside('run')?.failure ?? null;
      return [problem === null ? success() : again(problem)];
    }
    case 'report': {
      const problems = inspection.validators.flatMap((id) => beside(id)?.failure ?? []);
      const worst = problems.toSorted((a, b) => gravity(b.kind) - gravity(a.kind))[0];
      return [worst === undefined ? success({}, { route: 'completed' }) : again(worst)];
    }
    case 'end':
      return [success()];
  }
}

function decisions(
  state: RunState,
  step: StepState,
  { agent, partialMax }: DecisionInspection,
  problem: Failure | null,
): readonly Outcome[] {
  if (problem !== null) return [again(problem)];
  const history = visitsOf(state.steps.values());
  const evaluated = state.steps.get(step.frame.owner ?? '')?.definition.id ?? '';
  const isStuck = partialsInARow(history, evaluated) + 1 >= partialMax;
  const statuses = hasOpenViolation(history)
    ? ['unsafe']
    : STATUSES.filter((status) => status !== 'partial' || !isStuck);
  const reprompt = agent === null ? null : 'answer again';
  return [
    ...statuses.map((status) =>
      success(
        { status, planner_status: status, next_step: null, fix_instructions: 'fix', blockers: [], risk_flags: [] },
        { route: status },
      ),
    ),
    failed('protocol', 'the answer is not valid', { reprompt }),
  ];
}

/** What the engine will make of the next evaluations: part of what can still happen. */
export function conductedHistory(state: RunState): string {
  const history = visitsOf(state.steps.values());
  if (history.length === 0) return '';
  const evaluations = new Set(history.flatMap(({ kind, step }) => (kind === 'evaluate' ? [step] : [])));
  const partials = [...evaluations].toSorted().map((step) => `${step}=${String(partialsInARow(history, step))}`);
  return `${hasOpenViolation(history) ? 'violated' : ''} ${partials.join(' ')}`;
}

function partialsInARow(history: readonly VisitView[], step: string): number {
  const all = history.filter(
    (one) => one.kind === 'evaluate' && one.step === step && one.outcome !== null && one.failure === null,
  );
  return all.length - 1 - all.findLastIndex(({ outputs }) => outputs['status'] !== 'partial');
}

/** A rollback to the state before the run removes all violations; one to the step before, that of the last turn. */
function hasOpenViolation(history: readonly VisitView[]): boolean {
  let [open, before] = [false, false];
  for (const { kind, outcome, outputs, failure: problem } of history) {
    if (kind === 'work') before = open;
    if (kind === 'rollback' && outcome === 'completed') open = outputs['target'] === 'pre_run' ? false : before;
    else if (problem?.kind === 'policy') open = true;
  }
  return open;
}

/** What an agent or a program must have done, so that the engine judges it like this. */
export function conductedCause(state: RunState, step: StepState, spec: ConductedSpec, outcome: Outcome): Cause {
  const problem = outcome.kind === 'failure' ? outcome.failure.kind : null;
  if (spec.kind === 'git') return problem === null ? GOES_ON : beyondTests('a rollback is refused');
  const { inspection } = spec;
  if (inspection.kind === 'prepare') return problem === null ? GOES_ON : beyondTests('a validator is not allowed');
  const to = caused(state, step);
  if (inspection.kind === 'policy' && problem === 'policy')
    return { kind: 'judged', answer: null, violates: true, ...to };
  if (inspection.kind !== 'decision') return GOES_ON;
  if (problem === 'protocol') return { kind: 'judged', answer: 'no decision', violates: false, ...to };
  if (outcome.kind === 'failure') return GOES_ON;
  const status = outcome.outputs['status'] ?? null;
  const decision = { status, next_step: null, fix_instructions: null, blockers: [], risk_flags: [] };
  return { kind: 'judged', answer: JSON.stringify(decision), violates: false, ...to };
}

function failed(kind: FailureKind, message: string, more: Partial<Failure> = {}): Outcome {
  return { kind: 'failure', failure: failure(kind, message, more) };
}

/** Its cost and its retries have already been counted. */
function again(problem: Failure): Outcome {
  return { kind: 'failure', failure: { ...problem, usage: null, retryAt: null, reprompt: null } };
}

/** The worst outcome is that of the validation. */
function gravity(kind: FailureKind): number {
  return ['policy', 'idle', 'timeout'].indexOf(kind);
}
