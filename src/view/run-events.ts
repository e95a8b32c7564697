// Events of a Conductor run for external readers, derived only from the journal, so that the same journal always gives
// the same events.

import { isJsonMap, type Json, type JsonMap } from '../base/json.ts';
import { formatMoment } from '../base/time.ts';
import { errorType, type Failure } from '../ir/failure.ts';
import type { Program, Step } from '../ir/program.ts';
import type { Decision, JournalRecord } from '../kernel/decision.ts';
import { failureOutcome, outcomeOf, visitNumber } from './visits.ts';

export type RunEvent = JsonMap & {
  readonly timestamp: string;
  readonly run_id: string;
  readonly step_id: string | null;
  readonly event_type: EventType;
};

type EventType =
  | 'step_started'
  | 'step_completed'
  | 'step_failed'
  | 'artifact_recorded'
  | 'gate_requested'
  | 'gate_approved'
  | 'gate_rejected'
  | 'gate_timed_out'
  | 'rollback_completed'
  | 'route_selected'
  | 'policy_violation'
  | 'run_ended';

/** Call with records in journal order. A route's event follows once its target step is known. */
export class RunEvents {
  readonly #program: Program;
  readonly #runId: string;
  /** The visit that ended last, and its outcome. */
  #ended: { readonly visit: string; readonly outcome: string } | null = null;
  /** The requesting visit, by gate. */
  readonly #asked = new Map<string, string>();
  /** Frames and steps that perform a visit: folded into it. */
  readonly #inner = new Set<string>();
  /** Verdicts given before the request. */
  readonly #early = new Map<string, Verdict>();

  constructor(program: Program, runId: string) {
    this.#program = program;
    this.#runId = runId;
  }

  eventsOf({ at, decisions }: JournalRecord): readonly RunEvent[] {
    const events: RunEvent[] = [];
    const routes: RunEvent[] = [];
    const tell = (type: EventType, visit: string | null, more: JsonMap = {}): RunEvent => ({
      timestamp: formatMoment(at),
      run_id: this.#runId,
      step_id: visit === null ? null : stepOf(visit),
      event_type: type,
      ...(visit === null ? {} : { visit }),
      ...more,
    });
    for (const decision of endsFirst(decisions)) {
      if (this.#isInner(decision)) continue;
      switch (decision.kind) {
        case 'steps-added':
          for (const to of decision.steps) {
            if (this.#ended === null) continue;
            const { visit, outcome } = this.#ended;
            routes.push(tell('route_selected', visit, { outcome, next_step: stepOf(to) }));
          }
          this.#ended = null;
          break;
        case 'step-started':
          events.push(...routes.splice(0), tell('step_started', decision.step, { attempt: decision.attempt }));
          break;
        case 'gate-asked': {
          const { gate, step } = decision;
          events.push(tell('gate_requested', step, { gate }));
          events.push(tell('artifact_recorded', step, gateArtifact('gate_request', step)));
          const verdict = this.#early.get(gate);
          this.#early.delete(gate);
          if (verdict === undefined) this.#asked.set(gate, step);
          else events.push(tell(...verdictEvent(gate, step, verdict)));
          break;
        }
        case 'gate-decided': {
          const { gate, verdict } = decision;
          const visit = this.#asked.get(gate);
          this.#asked.delete(gate);
          if (visit === undefined) this.#early.set(gate, verdict);
          else events.push(tell(...verdictEvent(gate, visit, verdict)));
          break;
        }
        case 'step-done':
        case 'step-failed': {
          const { step } = decision;
          const failure = decision.kind === 'step-failed' ? decision.failure : null;
          const { outputs } = decision.kind === 'step-failed' ? decision.failure : decision;
          const definition = this.#definition(step);
          const outcome = endOutcome(definition, outputs, failure);
          for (const artifact of maps(outputs['artifacts'])) events.push(tell('artifact_recorded', step, artifact));
          for (const violation of maps(outputs['violations'])) events.push(tell('policy_violation', step, violation));
          if (failure === null && definition?.executor === 'rollback') {
            events.push(tell('rollback_completed', step, rollbackFacts(outputs)));
          }
          if (outcome === 'gate_timed_out') events.push(tell('gate_timed_out', step));
          if (outcome.startsWith('gate_')) {
            events.push(tell('artifact_recorded', step, gateArtifact('gate_outcome', step)));
          }
          if (failure === null) events.push(tell('step_completed', step, { outcome }));
          else {
            const error = { type: errorType(failure.kind), message: failure.message };
            events.push(tell('step_failed', step, { outcome, error }));
          }
          this.#ended = { visit: step, outcome };
          break;
        }
        case 'run-ended':
          // A paused run continues.
          if (decision.end !== 'paused') events.push(tell('run_ended', null, { status: decision.end }));
          break;
        default:
          break;
      }
    }
    return [...events, ...routes];
  }

  #isInner(decision: Decision): boolean {
    switch (decision.kind) {
      case 'frame-opened': {
        const { id, join, owner } = decision.frame;
        if (join !== 'answer' && !this.#inner.has(owner ?? '')) return false;
        this.#inner.add(id);
        return true;
      }
      case 'steps-added':
        if (!this.#inner.has(decision.frame)) return false;
        for (const step of decision.steps) this.#inner.add(step);
        return true;
      case 'step-started':
      case 'step-done':
      case 'step-failed':
        return this.#inner.has(decision.step);
      default:
        return false;
    }
  }

  #definition(visit: string): Step | undefined {
    for (const block of Object.values(this.#program.blocks)) {
      // A block that performs a step may have one of the same name.
      if (block.naming !== 'visit-last') continue;
      const found = block.steps.find(({ id }) => id === ownId(visit));
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

function endOutcome(definition: Step | undefined, outputs: JsonMap, failure: Failure | null): string {
  const status = failure === null ? 'done' : 'failed';
  const known = definition === undefined ? null : outcomeOf({ definition, status, failure, outputs });
  return known ?? (failure === null ? 'completed' : failureOutcome(failure));
}

/** Moves the end of a step before the frames opened after it: the kernel opens them first, but readers expect the end. */
function endsFirst(decisions: readonly Decision[]): readonly Decision[] {
  const ordered: Decision[] = [];
  for (const decision of decisions) {
    const isEnd = decision.kind === 'step-done' || decision.kind === 'step-failed';
    const before = ordered.findLastIndex(({ kind }) => kind !== 'frame-opened' && kind !== 'steps-added');
    ordered.splice(isEnd ? before + 1 : ordered.length, 0, decision);
  }
  return ordered;
}

type Verdict = Extract<Decision, { kind: 'gate-decided' }>['verdict'];

function verdictEvent(gate: string, visit: string, { approved, by, notes }: Verdict): [EventType, string, JsonMap] {
  return [approved ? 'gate_approved' : 'gate_rejected', visit, { gate, decided_by: by, notes }];
}

export function gateArtifact(role: 'gate_request' | 'gate_outcome', visit: string): JsonMap {
  const path = `artifacts/${stepOf(visit)}/${visitNumber(visit)}/${role}.json`;
  return { role, path, media_type: 'application/json', required: true };
}

function stepOf(visit: string): string {
  return visit.replace(/#\d+$/, '');
}

/** Without its parent steps or lane. */
function ownId(visit: string): string {
  return stepOf(visit).replace(/^.*\./, '');
}

function rollbackFacts({ target, before_diff, after_diff, undone_ref }: JsonMap): JsonMap {
  const facts = { target, before_diff, after_diff, undone_ref };
  return Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, value ?? null]));
}

function maps(value: Json | undefined): readonly JsonMap[] {
  return Array.isArray(value) ? (value as readonly Json[]).filter(isJsonMap) : [];
}
