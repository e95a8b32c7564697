// A run as spans of a distributed trace: run → step → attempt → agent, as data. Steps below other steps are below their spans, so the
// tree of spans is that of the run. Ids derive from the run (base/trace-ids.ts).
//
// Names of attributes are those of docs/operating.md; those that begin with `gen_ai` are conventions of OpenTelemetry.

import {
  agentSpanId,
  attemptSpanId,
  readTraceparent,
  runSpanId,
  stepSpanId,
  type TracedRun,
  traceIdOf,
  type TraceParent,
} from '../base/trace-ids.ts';
import type { EffectSpec } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import { priceOf, type Usage } from '../ir/output.ts';
import type { Program, RunRequest } from '../ir/program.ts';
import type { FilledText } from '../ir/text.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import type { RunState, StepState } from '../kernel/state.ts';
import { Spans } from './spans.ts';
import { namedModel, runStatus } from './status.ts';

export type Attributes = Readonly<Record<string, string | number>>;

export interface TraceEvent {
  readonly name: 'gate.opened' | 'gate.decided';
  /** Milliseconds since 1970, as all times here. */
  readonly at: number;
  readonly attributes: Attributes;
}

export interface TraceSpan {
  readonly spanId: string;
  /** Null for a run that nobody has started as a part of a trace. */
  readonly parentId: string | null;
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly attributes: Attributes;
  /** Null unless it failed. */
  readonly error: string | null;
  readonly events: readonly TraceEvent[];
  /** Spans of other traces. */
  readonly links: readonly TraceParent[];
}

export interface Trace {
  readonly traceId: string;
  /** The run first, and each span after its parent. */
  readonly spans: readonly TraceSpan[];
}

export interface TracedRecords {
  readonly id: string;
  readonly program: Program;
  readonly state: RunState;
  readonly records: readonly JournalRecord[];
}

/** `origin`: the run that a fork comes from, if it is known. What has not ended ends with the last record. */
export function traceOf({ id, program, state, records }: TracedRecords, origin: TracedRun | null): Trace {
  const run = tracedRun(id, state.request);
  const facts = new Facts(records);
  const at = { from: state.startedAt ?? 0, to: facts.lastAt };
  const runSpan: TraceSpan = {
    spanId: runSpanId(run),
    parentId: readTraceparent(run.traceparent ?? '')?.spanId ?? null,
    name: `run ${program.source.name}`,
    from: at.from,
    to: state.endedAt ?? at.to,
    attributes: {
      'meow.run.id': id,
      'meow.language': program.source.language,
      'meow.workflow': program.source.name,
      'meow.status': runStatus(state),
    },
    error: state.end === 'failed' ? (state.reason ?? 'the run failed') : null,
    events: [],
    links: origin === null ? [] : [{ traceId: traceIdOf(origin), spanId: runSpanId(origin) }],
  };
  const spans = [...state.steps.values()].flatMap((step) => stepSpans(run, state, step, facts));
  return { traceId: traceIdOf(run), spans: [runSpan, ...spans] };
}

export function tracedRun(id: string, request: RunRequest | null): TracedRun {
  return { id, mark: request?.mark ?? '', traceparent: request?.traceparent ?? null };
}

/** None for a step that has neither started nor been skipped. */
function stepSpans(run: TracedRun, state: RunState, step: StepState, facts: Facts): readonly TraceSpan[] {
  const attempts = facts.attemptsOf(step.id);
  const from = attempts[0]?.from ?? facts.settledAt(step.id);
  if (from === null) return [];
  const spanId = stepSpanId(run, step.id);
  const { owner } = step.frame;
  const isOver = step.status !== 'running' && step.status !== 'completing' && step.status !== 'pending';
  const span: TraceSpan = {
    spanId,
    parentId: owner === null ? runSpanId(run) : stepSpanId(run, owner),
    name: `step ${step.id}`,
    from,
    to: Math.max(from, isOver ? (step.finishedAt ?? facts.settledAt(step.id) ?? facts.lastAt) : facts.lastAt),
    attributes: { 'meow.step.id': step.id, 'meow.step.status': step.status },
    error: step.status === 'failed' ? messageOf(step.failure) : null,
    events: facts.gateEventsOf(step.id),
    links: [],
  };
  return [span, ...attempts.flatMap((attempt) => attemptSpans(run, state, step, attempt, facts))];
}

interface Attempt {
  readonly attempt: number;
  readonly from: number;
  readonly to: number | null;
  readonly isFailed: boolean;
}

function attemptSpans(
  run: TracedRun,
  state: RunState,
  { id }: StepState,
  { attempt, from, to, isFailed }: Attempt,
  facts: Facts,
): readonly TraceSpan[] {
  const error = isFailed ? messageOf(facts.failureOf(id, attempt)) : null;
  const spanId = attemptSpanId(run, id, attempt);
  const time = { from, to: to ?? Math.max(from, facts.lastAt) };
  const common = { ...time, error, events: [], links: [] };
  const span: TraceSpan = {
    ...common,
    spanId,
    parentId: stepSpanId(run, id),
    name: `attempt ${attempt}`,
    attributes: { 'meow.attempt': attempt },
  };
  const agent = agentOf(state, facts, id, attempt);
  if (agent === null) return [span];
  const usage = facts.usageOf(id, attempt);
  const model = agent.model ?? usage?.model ?? null;
  const invoked: TraceSpan = {
    ...common,
    spanId: agentSpanId(run, id, attempt),
    parentId: spanId,
    name: `invoke_agent ${agent.name}`,
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.provider.name': agent.adapter,
      'gen_ai.agent.name': agent.name,
      ...(model === null ? {} : { 'gen_ai.request.model': model }),
      ...usageAttributes(usage),
    },
  };
  return [span, invoked];
}

interface InvokedAgent {
  readonly name: string;
  readonly adapter: string;
  readonly model: string | null;
}

/** Null if the attempt sends nothing to an agent. */
function agentOf(state: RunState, facts: Facts, step: string, attempt: number): InvokedAgent | null {
  const { effect, agent } = facts.startOf(step, attempt) ?? { effect: null, agent: null };
  if (effect === null) return null;
  if (effect.kind === 'turn') {
    const adapter = shownText(effect.adapter);
    return { name: agent ?? adapter, adapter, model: namedModel(effect) };
  }
  if (effect.kind !== 'prompt') return null;
  const name = shownText(effect.agent);
  return { name, adapter: state.agents.get(name)?.info?.adapter ?? 'unknown', model: null };
}

/** Tokens of input and output are absent if the agent reported only their sum. */
function usageAttributes(usage: UsageSum | null): Attributes {
  if (usage === null) return {};
  return {
    ...(usage.input === null ? {} : { 'gen_ai.usage.input_tokens': usage.input }),
    ...(usage.output === null ? {} : { 'gen_ai.usage.output_tokens': usage.output }),
    ...(usage.tokens === null ? {} : { 'meow.tokens': usage.tokens }),
    ...(usage.usd === null ? {} : { 'meow.cost.usd': usage.usd }),
  };
}

/** Large parts are stored in files, and left out. */
function shownText(text: FilledText): string {
  return typeof text === 'string' ? text : text.map((part) => (typeof part === 'string' ? part : '…')).join('');
}

function messageOf(failure: Failure | null): string {
  return failure?.message ?? 'failed';
}

interface UsageSum {
  readonly usd: number | null;
  readonly tokens: number | null;
  readonly input: number | null;
  readonly output: number | null;
  /** As the agent's program names it. */
  readonly model: string | null;
}

/** What spans need of the records, by step and attempt. */
class Facts {
  /** Time of the last record. */
  lastAt = 0;
  readonly #spans = new Spans();
  #lastSeq = 0;
  readonly #starts = new Map<
    string,
    { readonly effect: EffectSpec<FilledText> | null; readonly agent: string | null }
  >();
  readonly #failures = new Map<string, Failure>();
  readonly #usages = new Map<string, UsageSum>();
  readonly #attempts = new Map<string, number>();
  readonly #settled = new Map<string, number>();
  readonly #gateEvents = new Map<string, TraceEvent[]>();
  readonly #askedBy = new Map<string, Set<string>>();

  constructor(records: readonly JournalRecord[]) {
    for (const record of records) {
      this.lastAt = Math.max(this.lastAt, record.at);
      this.#lastSeq = record.seq;
      this.#spans.note(record);
      for (const decision of record.decisions) this.#note(decision, record.at);
    }
  }

  attemptsOf(step: string): readonly Attempt[] {
    const all = this.#spans.of(step, this.#lastSeq).filter(({ kind }) => kind === 'attempt');
    return all.map(({ attempt, from, to, end }) => ({ attempt, from, to, isFailed: end === 'failed' }));
  }

  startOf(step: string, attempt: number) {
    return this.#starts.get(`${step}#${attempt}`) ?? null;
  }

  failureOf(step: string, attempt: number): Failure | null {
    return this.#failures.get(`${step}#${attempt}`) ?? null;
  }

  usageOf(step: string, attempt: number): UsageSum | null {
    return this.#usages.get(`${step}#${attempt}`) ?? null;
  }

  /** When it was skipped or has ended; null if neither. */
  settledAt(step: string): number | null {
    return this.#settled.get(step) ?? null;
  }

  gateEventsOf(step: string): readonly TraceEvent[] {
    return this.#gateEvents.get(step) ?? [];
  }

  #note(decision: Decision, at: number): void {
    switch (decision.kind) {
      case 'step-started': {
        const { step, attempt, effect, agent } = decision;
        this.#attempts.set(step, attempt);
        this.#starts.set(`${step}#${attempt}`, { effect, agent });
        break;
      }
      case 'step-failed-once':
      case 'step-parked':
      case 'step-failed':
        this.#failures.set(this.#attemptKey(decision.step), decision.failure);
        this.#settled.set(decision.step, at);
        break;
      case 'step-done':
      case 'step-recovered':
        this.#settled.set(decision.step, at);
        break;
      case 'steps-skipped':
        for (const step of decision.steps) this.#settled.set(step, at);
        break;
      case 'usage-counted':
        this.#count(this.#attemptKey(decision.step), decision.usage);
        break;
      case 'gate-asked':
        this.#opened(decision.gate, decision.step, at);
        break;
      case 'step-progressed': {
        const gate = decision.progress.dialog?.gate;
        if (gate !== undefined) this.#opened(gate, decision.step, at);
        break;
      }
      case 'gate-expired':
        this.#addEvent(decision.step, 'gate.decided', decision.gate, at, 'expired');
        this.#askedBy.get(decision.gate)?.delete(decision.step);
        break;
      case 'gate-decided': {
        const { gate, verdict } = decision;
        const { answer, approved } = verdict;
        const outcome = answer !== null ? 'answered' : approved ? 'approved' : 'rejected';
        for (const step of this.#askedBy.get(gate) ?? []) this.#addEvent(step, 'gate.decided', gate, at, outcome);
        this.#askedBy.delete(gate);
        break;
      }
      default:
        break;
    }
  }

  #attemptKey(step: string): string {
    return `${step}#${this.#attempts.get(step) ?? 1}`;
  }

  /** An attempt may have several turns. */
  #count(key: string, usage: Usage): void {
    const before = this.#usages.get(key) ?? { usd: null, tokens: null, input: null, output: null, model: null };
    const { parts } = usage;
    const sum = (a: number | null, b: number | null | undefined): number | null =>
      a === null ? (b ?? null) : a + (b ?? 0);
    this.#usages.set(key, {
      usd: sum(before.usd, priceOf(usage)),
      tokens: sum(before.tokens, usage.tokens),
      // The convention counts cached tokens as input.
      input: sum(before.input, parts === undefined ? null : parts.input + parts.cached),
      output: sum(before.output, parts?.output),
      model: usage.model ?? before.model,
    });
  }

  #opened(gate: string, step: string, at: number): void {
    this.#addEvent(step, 'gate.opened', gate, at, null);
    const steps = this.#askedBy.get(gate) ?? new Set();
    this.#askedBy.set(gate, steps.add(step));
  }

  #addEvent(step: string, name: TraceEvent['name'], gate: string, at: number, decision: string | null): void {
    const events = this.#gateEvents.get(step) ?? [];
    this.#gateEvents.set(step, events);
    const attributes = { 'meow.gate.id': gate, ...(decision === null ? {} : { 'meow.gate.decision': decision }) };
    events.push({ name, at, attributes });
  }
}
