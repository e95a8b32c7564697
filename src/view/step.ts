// Everything about one step, or about a run, for `meow show`. Data only; `step-lines.ts` prints it.

import { formatMoment } from '../base/time.ts';
import type { Delivery, EffectSpec } from '../ir/effect.ts';
import { type FilledText, writtenText } from '../ir/text.ts';
import type { Decision } from '../kernel/decision.ts';
import type { AppliedRecord } from '../kernel/decision.ts';
import { isFinished, presentRound, type RunState, type StepState, type StepStatus } from '../kernel/state.ts';
import { resolveNeeds } from './needed.ts';
import { counted } from './row.ts';
import type { StatusView, StepErrorView, StepStatusView } from './status.ts';
import { shownSteps } from './cause.ts';
import { runFacts, stepError, stepStatusView } from './status.ts';
import { type EffectView, stepEffect } from './step-effect.ts';
import { type CostView, costView, Durations, runDuration, stepCost } from './usage.ts';

export interface StepView extends StepStatusView {
  readonly id: string;
  /** Its effect: as last started, or as written if it never started. */
  readonly asks: EffectView | null;
  readonly needed: readonly { readonly need: string; readonly steps: Readonly<Record<string, StepStatus>> }[];
  readonly timeout: string | null;
  readonly retry: { readonly attempts: number; readonly delay_ms: number; readonly backoff: string } | null;
  readonly on_error: string;
  readonly attempts: readonly AttemptView[];
  /** Cost of all attempts; null if none was reported. */
  readonly cost: CostView | null;
}

interface AttemptView {
  readonly attempt: number;
  readonly status: 'running' | 'done' | 'failed' | 'lost' | 'stopped';
  readonly agent: string | null;
  readonly started_at: string;
  readonly finished_at: string | null;
  readonly duration_ms: number | null;
  readonly error: StepErrorView | null;
}

export interface RunView extends Omit<StatusView, 'steps' | 'agents' | 'gates'> {
  /** Why it ended or is ending; null if no reason was given. */
  readonly reason: string | null;
  readonly duration_ms: number | null;
  readonly folder: string | null;
  /** Scripts as written; null if absent. */
  readonly cleanup: Readonly<Record<'on_success' | 'on_failure' | 'on_stop', string | null>>;
  readonly limits: Readonly<Record<'expansion_depth' | 'steps' | 'state_file_bytes' | 'recovery_depth', number>>;
}

export function stepView(state: RunState, stepId: string, records: readonly AppliedRecord[]): StepView | null {
  const step = state.steps.get(stepId);
  return step === undefined ? null : viewOf(state, step, historyIn(records));
}

export function stepViews(state: RunState, records: readonly AppliedRecord[]): readonly StepView[] {
  const history = historyIn(records);
  return shownSteps(state).map((step) => viewOf(state, step, history));
}

export function runView(state: RunState): RunView {
  const { request, limits, endedAt } = state;
  const { cleanup } = state.program;
  return {
    ...runFacts(state),
    reason: state.reason,
    duration_ms: endedAt === null ? null : runDuration(state, endedAt),
    folder: request?.cwd ?? null,
    cleanup: {
      on_success: cleanup.success && writtenText(cleanup.success.script),
      on_failure: cleanup.failure && writtenText(cleanup.failure.script),
      on_stop: cleanup.stop && writtenText(cleanup.stop.script),
    },
    limits: {
      expansion_depth: limits.expansionDepthMax,
      steps: limits.stepsMax,
      state_file_bytes: limits.stateFileBytesMax,
      recovery_depth: limits.recoveryDepthMax,
    },
  };
}

function viewOf(state: RunState, step: StepState, { attempts, effects }: History): StepView {
  const { timeout, retry, onError } = step.definition;
  const cost = stepCost(step);
  return {
    id: step.id,
    ...stepStatusView(step),
    asks: stepEffect(step, effects.get(step.id)),
    needed: resolveNeeds(state, step).map(({ need, steps }) => ({
      need,
      steps: Object.fromEntries(steps.map(({ id, status }) => [id, status])),
    })),
    timeout: timeout === null ? null : writtenText(timeout),
    retry:
      retry.attemptsMax <= 1 ? null : { attempts: retry.attemptsMax, delay_ms: retry.delayMs, backoff: retry.backoff },
    on_error: onError.kind === 'recover' ? `recover by ${writtenText(onError.target.block)}` : onError.kind,
    attempts: attempts.get(step.id) ?? [],
    cost: cost && costView(cost),
  };
}

interface History {
  /** All attempts of each step: the state knows only the latest. */
  readonly attempts: ReadonlyMap<string, readonly AttemptView[]>;
  /** The effect of the latest attempt that had one. */
  readonly effects: ReadonlyMap<string, EffectSpec<FilledText>>;
}

function historyIn(records: readonly AppliedRecord[]): History {
  const attempts = new Map<string, AttemptView[]>();
  const effects = new Map<string, EffectSpec<FilledText>>();
  const durations = new Durations();
  const start = ({ step, attempt, agent, effect }: Extract<Decision, { kind: 'step-started' }>, at: number): void => {
    if (effect !== null) effects.set(step, effect);
    const ofStep = attempts.get(step) ?? [];
    attempts.set(step, ofStep);
    const unknown = { finished_at: null, duration_ms: null, error: null };
    ofStep.push({ attempt, status: 'running', agent, started_at: formatMoment(at), ...unknown });
  };
  const end = (step: string, decision: Decision, at: number): void => {
    const ofStep = attempts.get(step) ?? [];
    const last = ofStep.at(-1);
    if (last?.status !== 'running') return;
    ofStep[ofStep.length - 1] = {
      ...last,
      status: STATUS_AFTER[decision.kind] ?? last.status,
      finished_at: formatMoment(durations.endOf(step, at)),
      duration_ms: durations.step(step, at),
      error: 'failure' in decision ? stepError({ failure: decision.failure, attempt: last.attempt }) : null,
    };
  };
  for (const { at, decisions } of records) {
    for (const decision of decisions) {
      durations.note(decision, at);
      if (decision.kind === 'step-started') start(decision, at);
      else for (const step of stepsEndedBy(decision)) end(step, decision, at);
    }
  }
  return { attempts, effects };
}

/** Status of a running attempt after a decision that ends it. */
const STATUS_AFTER: Readonly<Partial<Record<Decision['kind'], AttemptView['status']>>> = {
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

/** `round 7 of 20`, and `7 rounds` after its end; null if it is not a loop, or has not begun. */
export function roundsText(step: StepState): string | null {
  const ended = isFinished(step);
  const isLoop = step.definition.act.kind === 'loop' && step.attempt > 0;
  const round = presentRound(step) ?? (isLoop && ended ? 0 : null);
  if (round === null) return null;
  if (ended) return counted(round, 'round');
  return `round ${Math.min(round, step.roundsAllowed)} of ${step.roundsAllowed}`;
}

/** Used after a step's name, or alone. */
export const DELIVERY_TEXTS: Readonly<Record<Delivery, string>> = {
  sending: 'prompt is being sent',
  accepted: 'prompt accepted',
  queued: 'prompt queued until the agent is free',
  'draft-stuck': 'prompt not delivered: nothing shows that its agent has it',
  'blocked-on-dialog': 'prompt waits: its agent asks a question',
  'not-ready': 'prompt waits: its agent is not ready',
  dead: 'prompt not delivered: its agent has exited',
};

export function isDelivered(delivery: Delivery): boolean {
  return delivery === 'accepted' || delivery === 'queued';
}
