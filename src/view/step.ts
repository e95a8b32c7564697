// Everything about one step, or about a run, for `meow show`. Data only; `step-lines.ts` prints it.

import type { Json } from '../base/json.ts';
import { formatMoment } from '../base/time.ts';
import type { GitOperation, Inspection } from '../ir/conducted.ts';
import type { EffectSpec } from '../ir/effect.ts';
import { errorType } from '../ir/failure.ts';
import type { Failure } from '../ir/failure.ts';
import type { Limits, OnError, Retry } from '../ir/program.ts';
import { writtenText } from '../ir/text.ts';
import type { FilledText, Text } from '../ir/text.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import type { RunState, StepState, StepStatus } from '../kernel/state.ts';
import { resolveNeeds } from './needed.ts';
import {
  countSteps,
  filledText,
  moment,
  runError,
  runStatus,
  shownSteps,
  shownVariables,
  stepStatusView,
} from './status.ts';
import type { Counts, RunErrorView, RunStatus, StepErrorView, StepStatusView } from './status.ts';

export interface StepView extends StepStatusView {
  readonly id: string;
  /** Its effect: as last started, or as written if it never started. */
  readonly asks: AskedView | null;
  readonly needed: readonly { readonly need: string; readonly steps: Readonly<Record<string, StepStatus>> }[];
  readonly timeout: string | null;
  readonly retry: RetryView | null;
  readonly on_error: string;
  readonly attempts: readonly AttemptView[];
}

export interface AskedView {
  readonly kind: EffectSpec<Text>['kind'];
  /** The script, the prompt, or the question. */
  readonly text: string;
  readonly workdir: string | null;
  readonly env: Readonly<Record<string, string>>;
  /** Name of the gate or the adapter. */
  readonly name: string | null;
  /** False if placeholders are not filled. */
  readonly filled: boolean;
}

export interface RetryView {
  readonly attempts: number;
  readonly delay_ms: number;
  readonly backoff: string;
}

export interface AttemptView {
  readonly attempt: number;
  readonly status: Attempt['status'];
  readonly agent: string | null;
  readonly started_at: string;
  readonly finished_at: string | null;
  readonly duration_ms: number | null;
  readonly error: StepErrorView | null;
}

export interface RunView {
  readonly id: string | null;
  readonly language: string;
  readonly source: string;
  readonly status: RunStatus;
  /** Why it ended or is ending; null if no reason was given. */
  readonly reason: string | null;
  readonly error: RunErrorView | null;
  readonly started_at: string | null;
  readonly ended_at: string | null;
  readonly duration_ms: number | null;
  readonly folder: string | null;
  readonly vars: Readonly<Record<string, Json>>;
  readonly meta: Readonly<Record<string, string>>;
  readonly result: Json;
  readonly counts: Counts;
  readonly cleanup: CleanupView;
  readonly limits: LimitsView;
  readonly warnings: readonly string[];
}

/** Scripts as written; null if absent. */
export interface CleanupView {
  readonly on_success: string | null;
  readonly on_failure: string | null;
  readonly on_stop: string | null;
}

export interface LimitsView {
  readonly expansion_depth: number;
  readonly steps: number;
  readonly state_file_bytes: number;
  readonly recovery_depth: number;
}

/** Null if the run has no such step. */
export function stepView(state: RunState, stepId: string, records: readonly JournalRecord[]): StepView | null {
  const step = state.steps.get(stepId);
  return step === undefined ? null : viewOf(state, step, attemptsIn(records));
}

/** All steps, reading the journal once. */
export function stepViews(state: RunState, records: readonly JournalRecord[]): readonly StepView[] {
  const attempts = attemptsIn(records);
  return shownSteps(state).map((step) => viewOf(state, step, attempts));
}

export function runView(state: RunState): RunView {
  const { request, program, startedAt, endedAt } = state;
  const { success, failure, stop } = program.cleanup;
  return {
    id: request?.id ?? null,
    language: program.source.language,
    source: program.source.name,
    status: runStatus(state),
    reason: state.reason,
    error: runError(state),
    started_at: moment(startedAt),
    ended_at: moment(endedAt),
    duration_ms: startedAt === null || endedAt === null ? null : endedAt - startedAt,
    folder: request?.cwd ?? null,
    vars: shownVariables(request?.variables ?? {}),
    meta: request?.meta ?? {},
    result: state.result,
    counts: countSteps(state),
    cleanup: {
      on_success: success === null ? null : writtenText(success.script),
      on_failure: failure === null ? null : writtenText(failure.script),
      on_stop: stop === null ? null : writtenText(stop.script),
    },
    limits: limitsView(program.limits),
    warnings: [...state.warnings],
  };
}

function viewOf(state: RunState, step: StepState, attempts: Attempts): StepView {
  const { definition } = step;
  const effect = attempts.effectOf(step.id);
  const written = definition.act.kind === 'effect' ? asWritten(definition.act.effect) : null;
  return {
    id: step.id,
    ...stepStatusView(step),
    asks: effect === null ? written : asAsked(effect),
    needed: resolveNeeds(state, step).map(({ need, steps }) => ({
      need,
      steps: Object.fromEntries(steps.map(({ id, status }) => [id, status])),
    })),
    timeout: definition.timeout === null ? null : writtenText(definition.timeout),
    retry: retryView(definition.retry),
    on_error: onErrorText(definition.onError),
    attempts: attempts.of(step.id).map(attemptView),
  };
}

function attemptsIn(records: readonly JournalRecord[]): Attempts {
  const attempts = new Attempts();
  for (const record of records) attempts.read(record);
  return attempts;
}

function attemptView({ attempt, status, agent, startedAt, finishedAt, failure }: Attempt): AttemptView {
  return {
    attempt,
    status,
    agent,
    started_at: formatMoment(startedAt),
    finished_at: moment(finishedAt),
    duration_ms: finishedAt === null ? null : finishedAt - startedAt,
    error: failure === null ? null : errorView(failure, attempt),
  };
}

function errorView({ kind, message, code, output }: Failure, attempt: number): StepErrorView {
  return { type: errorType(kind), message, code, output, attempt };
}

function asAsked(effect: EffectSpec<FilledText>): AskedView {
  return asks(effect, filledText, true);
}

function asWritten(effect: EffectSpec<Text>): AskedView {
  return asks(effect, writtenText, false);
}

function asks<T>(effect: EffectSpec<T>, show: (text: T) => string, filled: boolean): AskedView {
  const plain = { workdir: null, env: {}, name: null, filled };
  switch (effect.kind) {
    case 'command': {
      const env = Object.fromEntries(Object.entries(effect.env).map(([name, text]) => [name, show(text)]));
      const workdir = effect.cwd === null ? null : show(effect.cwd);
      return { ...plain, kind: 'command', text: show(effect.script), workdir, env };
    }
    case 'turn':
      return { ...plain, kind: 'turn', text: show(effect.prompt), name: show(effect.adapter) };
    case 'spawn': {
      const env = Object.fromEntries(Object.entries(effect.env).map(([name, text]) => [name, show(text)]));
      const workdir = effect.cwd === null ? null : show(effect.cwd);
      return {
        ...plain,
        kind: 'spawn',
        text: `by the adapter ${show(effect.adapter)}`,
        name: show(effect.agent),
        workdir,
        env,
      };
    }
    case 'attend':
      return { ...plain, kind: 'attend', text: '', name: effect.agent };
    case 'prompt':
      return { ...plain, kind: 'prompt', text: show(effect.prompt), name: show(effect.agent) };
    case 'kill':
      return { ...plain, kind: 'kill', text: effect.graceful ? 'gracefully' : 'at once', name: show(effect.agent) };
    case 'read':
      return { ...plain, kind: 'read', text: show(effect.path) };
    case 'gate':
      return { ...plain, kind: 'gate', text: show(effect.prompt), name: show(effect.gate) };
    case 'git':
      return { ...plain, kind: 'git', text: gitText(effect.operation) };
    case 'inspect':
      return { ...plain, kind: 'inspect', text: INSPECTIONS[effect.inspection.kind] };
    default:
      // Of a run of an earlier version.
      return { ...plain, kind: (effect as EffectSpec<T>).kind, text: '' };
  }
}

function gitText(operation: GitOperation): string {
  switch (operation.kind) {
    case 'snapshot':
      return 'snapshot the worktree';
    case 'changes':
      return `see what the ${operation.by} has changed`;
    case 'rollback':
      return `roll back to ${operation.target}`;
  }
}

const INSPECTIONS: Readonly<Record<Inspection['kind'], string>> = {
  prompt: 'fill the prompt of the agent',
  policy: 'judge the turn by its policy and its limits',
  witness: 'judge the outcome by its witness',
  evidence: 'gather the evidence for the evaluator',
  decision: 'read the answer of the evaluator and decide',
  prepare: 'find out how the validator is run',
  collect: 'collect what the validator has left',
  report: 'judge the validators',
  end: 'see whether the run may end',
};

function retryView({ attemptsMax, delayMs, backoff }: Retry): RetryView | null {
  return attemptsMax <= 1 ? null : { attempts: attemptsMax, delay_ms: delayMs, backoff };
}

function onErrorText(onError: OnError): string {
  return onError.kind === 'recover' ? `recover by ${writtenText(onError.target.block)}` : onError.kind;
}

function limitsView({ expansionDepthMax, stepsMax, stateFileBytesMax, recoveryDepthMax }: Limits): LimitsView {
  return {
    expansion_depth: expansionDepthMax,
    steps: stepsMax,
    state_file_bytes: stateFileBytesMax,
    recovery_depth: recoveryDepthMax,
  };
}

// The attempts of each step with their spans of time, read from the journal: the state knows only the latest attempt.

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
class Attempts {
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
