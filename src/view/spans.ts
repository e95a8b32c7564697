// When each attempt of a step ran and what it waited for, and when anything worked at all. A fold of all records of a run that
// can be asked about any moment: what began with a later record than the one shown is left out, and what ended with a later
// one is still open. Data only.

import type { Decision, JournalRecord } from '../kernel/decision.ts';

export interface Span {
  /** `attempt`; or it waits for a `person`, for its next attempt (`retry`), or until a usage limit is over (`limit`). */
  readonly kind: 'attempt' | 'person' | 'retry' | 'limit';
  readonly attempt: number;
  readonly from: number;
  /** Null while it is in progress. */
  readonly to: number | null;
  /** How the attempt ended; null if it is in progress, or is not an attempt. */
  readonly end: 'done' | 'failed' | 'lost' | 'stopped' | null;
}

export interface Interval {
  readonly from: number;
  /** Null while it is in progress. */
  readonly to: number | null;
}

interface Recorded {
  readonly kind: Span['kind'];
  readonly attempt: number;
  readonly gate: string | null;
  readonly from: number;
  readonly fromSeq: number;
  to: number | null;
  toSeq: number;
  end: Span['end'];
}

export class Spans {
  readonly #bySteps = new Map<string, Recorded[]>();
  /** Steps in whose attempt something works: an attempt that waits for a person does not. */
  readonly #working = new Set<string>();
  readonly #running = new Map<string, { readonly works: boolean; endedAt: number | null }>();
  readonly #busy: { from: number; fromSeq: number; to: number | null; toSeq: number }[] = [];
  /** Time never runs backwards in a picture. */
  #at = 0;

  note({ seq, at, decisions }: Pick<JournalRecord, 'seq' | 'at' | 'decisions'>): void {
    this.#at = Math.max(this.#at, at);
    for (const decision of decisions) this.#decided(decision, seq);
    this.#noteWork(seq);
  }

  /** As it was after the record `seq`. */
  of(step: string, seq: number): readonly Span[] {
    return (this.#bySteps.get(step) ?? []).flatMap((span) => {
      if (span.fromSeq > seq) return [];
      const { kind, attempt, from } = span;
      return span.toSeq > seq
        ? [{ kind, attempt, from, to: null, end: null }]
        : [{ kind, attempt, from, to: span.to, end: span.end }];
    });
  }

  /** When something worked, in order, as it was after the record `seq`. */
  busy(seq: number): readonly Interval[] {
    return this.#busy
      .filter(({ fromSeq }) => fromSeq <= seq)
      .map(({ from, to, toSeq }) => ({ from, to: toSeq > seq ? null : to }));
  }

  #decided(decision: Decision, seq: number): void {
    switch (decision.kind) {
      case 'step-started': {
        const { step, attempt, effect } = decision;
        this.#close(step, seq, null);
        this.#open(step, seq, { kind: 'attempt', attempt });
        const works = effect !== null && effect.kind !== 'gate';
        this.#running.set(step, { works, endedAt: null });
        if (works) this.#working.add(step);
        break;
      }
      case 'effect-ended': {
        const running = this.#running.get(decision.step);
        if (running !== undefined) running.endedAt = decision.endedAt;
        break;
      }
      case 'step-done':
        this.#end(decision.step, seq, 'done');
        break;
      case 'step-failed':
        this.#end(decision.step, seq, 'failed');
        break;
      case 'step-failed-once':
        this.#end(decision.step, seq, 'failed');
        this.#open(decision.step, seq, { kind: decision.failure.kind === 'limit-reached' ? 'limit' : 'retry' });
        break;
      case 'step-parked':
        this.#end(decision.step, seq, 'failed');
        this.#open(decision.step, seq, { kind: 'limit' });
        break;
      case 'step-retried':
        this.#close(decision.step, seq, null);
        break;
      case 'step-lost':
        this.#end(decision.step, seq, 'lost');
        break;
      case 'steps-skipped':
        for (const step of decision.steps) this.#end(step, seq, 'stopped');
        break;
      case 'gate-asked':
        this.#open(decision.step, seq, { kind: 'person', gate: decision.gate });
        this.#working.delete(decision.step);
        break;
      case 'step-progressed':
        // The agent no longer asks.
        if (decision.progress.dialog === null) this.#answered(decision.step, null, seq);
        break;
      case 'gate-expired':
        this.#answered(decision.step, decision.gate, seq);
        break;
      case 'gate-decided':
        for (const step of this.#bySteps.keys()) this.#answered(step, decision.gate, seq);
        break;
      case 'run-ended':
        // Nothing happens while no engine works on the run.
        for (const step of this.#running.keys()) this.#working.delete(step);
        break;
      default:
        break;
    }
  }

  #open(step: string, seq: number, span: Pick<Recorded, 'kind'> & Partial<Pick<Recorded, 'attempt' | 'gate'>>): void {
    const spans = this.#bySteps.get(step) ?? [];
    this.#bySteps.set(step, spans);
    const attempt = span.attempt ?? spans.at(-1)?.attempt ?? 0;
    const open = { to: null, toSeq: Number.POSITIVE_INFINITY, end: null };
    spans.push({ kind: span.kind, gate: span.gate ?? null, attempt, from: this.#at, fromSeq: seq, ...open });
  }

  /** The attempt, and whatever it waited for. */
  #end(step: string, seq: number, end: Exclude<Span['end'], null>): void {
    this.#working.delete(step);
    this.#close(step, seq, end);
    this.#running.delete(step);
  }

  #close(step: string, seq: number, end: Span['end']): void {
    const endedAt = this.#running.get(step)?.endedAt ?? null;
    for (const span of this.#bySteps.get(step)?.filter(({ to }) => to === null) ?? []) {
      span.to = Math.max(span.from, endedAt ?? this.#at);
      span.toSeq = seq;
      span.end = span.kind === 'attempt' ? end : null;
    }
  }

  /** `gate`: null stands for any. */
  #answered(step: string, gate: string | null, seq: number): void {
    const waits = (this.#bySteps.get(step) ?? []).filter(
      (span) => span.kind === 'person' && span.to === null && (gate === null || span.gate === gate),
    );
    if (waits.length === 0) return;
    for (const span of waits) {
      span.to = this.#at;
      span.toSeq = seq;
    }
    if (this.#running.get(step)?.works === true) this.#working.add(step);
  }

  #noteWork(seq: number): void {
    const last = this.#busy.at(-1);
    const isBusy = last !== undefined && last.to === null;
    if (this.#working.size > 0 && !isBusy) {
      this.#busy.push({ from: this.#at, fromSeq: seq, to: null, toSeq: Number.POSITIVE_INFINITY });
    } else if (this.#working.size === 0 && isBusy) {
      last.to = this.#at;
      last.toSeq = seq;
    }
  }
}
