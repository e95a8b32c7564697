// Everything about one step, or about the run as a whole: what `meow show` prints. A step's attempts are read from the
// journal, for the state knows only the latest.

import type { Json } from '../base/json.ts';
import { formatDuration, formatMoment, parseDuration } from '../base/time.ts';
import type { EffectSpec } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import { errorType } from '../ir/failure.ts';
import type { Validator } from '../ir/conducted.ts';
import type { Limits, OnError, Retry } from '../ir/program.ts';
import { plainText } from '../ir/text.ts';
import type { FilledText, Text } from '../ir/text.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import type { RunState, StepState, StepStatus } from '../kernel/state.ts';
import { countsText } from './summary.ts';
import { neededBy } from './needed.ts';
import type { Paint } from './paint.ts';
import { tame } from './row.ts';
import type { Counts, RunErrorView, RunStatus, StepErrorView, StepStatusView } from './status.ts';
import { countSteps, filledText, moment, runError, runStatus, shownVariables, stepStatusView } from './status.ts';
import { writtenText } from '../ir/text.ts';

export interface StepView extends StepStatusView {
  readonly id: string;
  /** What it asks of the world: as last asked, or as written where it never started. */
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
  /** The name of the gate, or of the adapter. */
  readonly name: string | null;
  /** False: its holes are still open. */
  readonly filled: boolean;
}

export interface RetryView {
  readonly attempts: number;
  readonly delay_ms: number;
  readonly backoff: string;
}

export interface AttemptView {
  readonly attempt: number;
  readonly status: 'running' | 'done' | 'failed' | 'lost' | 'stopped';
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
  /** Why it ended, or is ending, where somebody or something said why. */
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

/** The scripts as written; null where there is none. */
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

/** Null where the run has no such step. */
export function stepView(state: RunState, stepId: string, records: readonly JournalRecord[]): StepView | null {
  const step = state.steps.get(stepId);
  return step === undefined ? null : viewOf(state, step, historiesIn(records).get(stepId));
}

/** Of all steps, with one reading of the journal. */
export function stepViews(state: RunState, records: readonly JournalRecord[]): readonly StepView[] {
  const histories = historiesIn(records);
  return [...state.steps.values()].map((step) => viewOf(state, step, histories.get(step.id)));
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

/** As lines for people. */
export function stepLines(view: StepView, paint: Paint): readonly string[] {
  const facts = new Facts(paint);
  facts.title(view.id);
  facts.add('status', view.status + (view.attempt > 1 ? ` (attempt ${view.attempt})` : ''));
  facts.add('executor', view.executor);
  facts.add('agent', view.agent);
  facts.add('delivery', view.delivery);
  facts.add('started', view.started_at);
  facts.add('finished', view.finished_at);
  for (const { need, steps } of view.needed) {
    const named = Object.entries(steps).map(([id, status]) => (id === need ? status : `${id} ${status}`));
    facts.add('needs', `${need}${named.length === 0 ? '' : ` (${named.join(', ')})`}`);
  }
  facts.add('timeout', view.timeout === null ? null : durationText(view.timeout));
  if (view.retry !== null) {
    const { attempts, delay_ms, backoff } = view.retry;
    facts.add('retry', `up to ${attempts} attempts, ${formatDuration(delay_ms)} apart, backoff ${backoff}`);
  }
  if (view.on_error !== 'fail') facts.add('on_error', view.on_error);
  facts.add('grew from', view.expanded_from);
  if (view.expanded_into.length > 0) facts.add('grew into', view.expanded_into.join(', '));
  if (view.asks !== null) {
    facts.add('folder', view.asks.workdir);
    for (const [name, value] of Object.entries(view.asks.env)) facts.add('env', `${name}=${value}`);
    const label = TEXT_LABELS[view.asks.kind] ?? view.asks.kind;
    const owner = NAME_LABELS[view.asks.kind];
    if (view.asks.name !== null && owner !== undefined) facts.add(owner, view.asks.name);
    if (view.asks.text !== '') facts.block(view.asks.filled ? label : `${label} (as written)`, view.asks.text);
  }
  for (const [name, value] of Object.entries(view.outputs)) facts.block(`output ${name}`, plainText(value));
  if (view.notes !== null) facts.block('notes', view.notes);
  for (const attempt of view.attempts) {
    const { attempt: number, status, agent, started_at, duration_ms, error } = attempt;
    const took = duration_ms === null ? '' : ` after ${formatDuration(duration_ms)}`;
    const who = agent === null ? '' : ` by ${agent}`;
    const what = error === null ? '' : `: ${error.message}`;
    facts.add(`attempt ${number}`, `${started_at}${who} ${status}${took}${what}`);
  }
  if (view.error !== null) {
    const { type, message, code, output } = view.error;
    facts.add('error', `${type}${code === null ? '' : ` (exit ${code})`}: ${message}`);
    if (output !== null && output !== '') facts.block('said last', output);
  }
  return facts.lines;
}

/** A duration as it is written in a Program, for people: one that still has holes is left as it is. */
export function durationText(written: string): string {
  const ms = parseDuration(written);
  return ms === null ? written : formatDuration(ms);
}

/** As lines for people. */
export function runLines(view: RunView, paint: Paint): readonly string[] {
  const facts = new Facts(paint);
  facts.title(view.id ?? 'run');
  facts.add('workflow', `${view.source} (${view.language})`);
  facts.add('status', view.status);
  facts.add('reason', view.reason);
  facts.add('started', view.started_at);
  facts.add('ended', view.ended_at);
  if (view.duration_ms !== null) facts.add('lasted', formatDuration(view.duration_ms));
  facts.add('folder', view.folder);
  facts.add('steps', countsText(view.counts));
  for (const [name, value] of Object.entries(view.vars)) facts.block(`var ${name}`, plainText(value));
  for (const [name, value] of Object.entries(view.meta)) facts.add(`meta ${name}`, value);
  if (view.result !== null) facts.block('result', plainText(view.result));
  if (view.error !== null) {
    const { type, step, message } = view.error;
    facts.add('error', [step, type, message].filter((part) => part !== null).join(': '));
  }
  for (const [when, script] of Object.entries(view.cleanup))
    if (script !== null) facts.block(`cleanup ${when}`, script);
  for (const warning of view.warnings) facts.add('warning', warning);
  return facts.lines;
}

/** Named facts, one below the other; a value of several lines stands indented below its name. */
class Facts {
  readonly lines: string[] = [];
  readonly #paint: Paint;

  constructor(paint: Paint) {
    this.#paint = paint;
  }

  title(text: string): void {
    this.lines.push(this.#paint.bold(tame(text)));
  }

  add(name: string, value: string | null): void {
    if (value === null) return;
    this.lines.push(`  ${this.#paint.dim(`${tame(name)}:`.padEnd(NAME_WIDTH))} ${tame(value)}`);
  }

  block(name: string, value: string): void {
    const lines = value.replace(/\n+$/, '').split('\n');
    if (lines.length === 1) return this.add(name, value);
    this.lines.push(`  ${this.#paint.dim(`${tame(name)}:`)}`);
    const shown = lines.slice(0, BLOCK_LINES_MAX);
    for (const line of shown) this.lines.push(`    ${tame(line.replaceAll('\t', '    '))}`.trimEnd());
    if (lines.length > shown.length)
      this.lines.push(this.#paint.dim(`    … ${lines.length - shown.length} more lines`));
  }
}

const NAME_WIDTH = 10;
const BLOCK_LINES_MAX = 60;

interface History {
  readonly attempts: AttemptView[];
  startedAt: number;
  /** As last asked for. */
  effect: EffectSpec<FilledText> | null;
}

function viewOf(state: RunState, step: StepState, history: History | undefined): StepView {
  const { definition } = step;
  const written = definition.act.kind === 'effect' ? asWritten(definition.act.effect) : null;
  return {
    id: step.id,
    ...stepStatusView(step),
    asks: history?.effect ? asAsked(history.effect) : written,
    needed: neededBy(state, step).map(({ need, steps }) => ({
      need,
      steps: Object.fromEntries(steps.map(({ id, status }) => [id, status])),
    })),
    timeout: definition.timeout === null ? null : writtenText(definition.timeout),
    retry: retryView(definition.retry),
    on_error: onErrorText(definition.onError),
    attempts: history?.attempts ?? [],
  };
}

function historiesIn(records: readonly JournalRecord[]): ReadonlyMap<string, History> {
  const histories = new Map<string, History>();
  for (const { at, decisions } of records) {
    for (const decision of decisions) {
      if (decision.kind === 'step-started') begin(histories, decision, at);
      else for (const id of endedBy(decision)) end(histories.get(id), decision, at);
    }
  }
  return histories;
}

function begin(
  histories: Map<string, History>,
  decision: Extract<Decision, { kind: 'step-started' }>,
  at: number,
): void {
  const { step, attempt, agent, effect } = decision;
  const history = histories.get(step) ?? { attempts: [], startedAt: at, effect: null };
  histories.set(step, history);
  history.startedAt = at;
  history.effect = effect ?? history.effect;
  history.attempts.push({
    attempt,
    status: 'running',
    agent,
    started_at: formatMoment(at),
    finished_at: null,
    duration_ms: null,
    error: null,
  });
}

function end(history: History | undefined, decision: Decision, at: number): void {
  const last = history?.attempts.at(-1);
  if (history === undefined || last?.status !== 'running') return;
  history.attempts[history.attempts.length - 1] = {
    ...last,
    status: ENDS[decision.kind] ?? last.status,
    finished_at: formatMoment(at),
    duration_ms: at - history.startedAt,
    error: 'failure' in decision ? errorView(decision.failure, last.attempt) : null,
  };
}

/** What each decision makes of an attempt that is under way. */
const ENDS: Readonly<Partial<Record<Decision['kind'], AttemptView['status']>>> = {
  'step-done': 'done',
  'step-lost': 'lost',
  'step-failed-once': 'failed',
  'step-failed': 'failed',
  'steps-skipped': 'stopped',
};

function endedBy(decision: Decision): readonly string[] {
  if (ENDS[decision.kind] === undefined) return [];
  return 'steps' in decision ? decision.steps : 'step' in decision ? [decision.step] : [];
}

const NAME_LABELS: Partial<Record<AskedView['kind'], string>> = {
  gate: 'gate',
  turn: 'adapter',
  work: 'adapter',
  evaluate: 'adapter',
};

/** What its text is, where that is not what it asks for. */
const TEXT_LABELS: Partial<Record<AskedView['kind'], string>> = {
  turn: 'prompt',
  work: 'prompt',
  evaluate: 'evaluator',
};

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
    case 'work':
      return { ...plain, kind: 'work', text: effect.brief.text, name: effect.adapter };
    case 'validate':
      return { ...plain, kind: 'validate', text: effect.validators.map(validatorText).join('\n') };
    case 'evaluate': {
      const { evaluator } = effect;
      return evaluator.kind === 'command'
        ? { ...plain, kind: 'evaluate', text: evaluator.command }
        : { ...plain, kind: 'evaluate', text: evaluator.prompt.text, name: evaluator.adapter };
    }
    case 'rollback':
      return { ...plain, kind: 'rollback', text: `to ${effect.target}` };
    case 'halt':
      return { ...plain, kind: 'halt', text: effect.reason ?? effect.verdict };
  }
}

function validatorText(validator: Validator): string {
  return validator.kind === 'builtin'
    ? `${validator.id}: ${validator.command}`
    : [`${validator.id}: ${validator.entrypoint}`, ...validator.args].join(' ');
}

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
