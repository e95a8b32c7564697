// What people are told of a run, from its records: gates and questions that open, usage limits, and how it ends. A notice is a fact
// that never changes, except that it is over once a person has decided.

import type { Program } from '../ir/program.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { applyRecord } from '../kernel/apply.ts';
import { initialState, type RunState } from '../kernel/state.ts';
import { gateCommand, openGates, resumeArguments, runFacts } from './status.ts';

export type NoticeKind = 'gate' | 'question' | 'failed' | 'done' | 'paused' | 'limit' | 'stuck';

export interface Notice {
  /** Unique in the run, and the same whenever it is computed. */
  readonly key: string;
  readonly kind: NoticeKind;
  readonly step: string | null;
  readonly gate: string | null;
  readonly text: string;
  /** In milliseconds since 1970. */
  readonly since: number;
  /** Decides or resumes; null if nothing has to be done. */
  readonly command: string | null;
  /** When it was decided, or the run went on; null if it waits for a person; Infinity if nobody has to decide. */
  readonly overAt: number | null;
}

type OpenNotice = { -readonly [Key in keyof Notice]: Notice[Key] };

/** The same from the records of a run that grows. */
export class Notices {
  readonly #state: RunState;
  readonly #all: OpenNotice[] = [];
  readonly #open = new Map<string, OpenNotice>();
  #seq = 0;

  constructor(program: Program) {
    this.#state = initialState(program);
  }

  get all(): readonly Notice[] {
    return this.#all;
  }

  get state(): RunState {
    return this.#state;
  }

  /** `records`: all of the run. Those that are known are skipped. */
  advance(records: readonly JournalRecord[]): void {
    for (const record of records.slice(this.#seq)) this.#note(record);
  }

  #note(record: JournalRecord): void {
    const { seq, at, decisions } = record;
    this.#seq = seq;
    applyRecord(this.#state, record);
    const run = this.#state.request?.id ?? '';
    for (const decision of decisions) {
      switch (decision.kind) {
        case 'run-resumed':
          this.#close('run', at);
          break;
        case 'step-failed-once':
        case 'step-parked': {
          const { step, failure } = decision;
          // Who has reported it tells people of it.
          if (failure.kind !== 'limit-reached' || (failure.waitingFor?.reportedBy ?? run) !== run) break;
          if (failure.waitingFor?.kind === 'quiet') break;
          const command = decision.kind === 'step-parked' ? `meow resume ${resumeArguments(run)}` : null;
          this.#add(`limit ${step}`, {
            key: `limit:${step}:${seq}`,
            kind: 'limit',
            step,
            gate: null,
            text: failure.message,
            since: at,
            command,
            overAt: null,
          });
          break;
        }
        case 'step-started':
        case 'step-retried':
          this.#close(`limit ${decision.step}`, at);
          break;
        case 'run-ended':
          if (decision.end !== 'stopped') this.#add('run', ended(this.#state, decision.end, seq, at));
          break;
        default:
          break;
      }
    }
    this.#noteGates(seq, at, run);
  }

  #noteGates(seq: number, at: number, run: string): void {
    if (this.#state.gates.size === 0) return;
    const open = new Map(openGates(this.#state).map((gate) => [`gate ${gate.id} ${gate.opened_at ?? ''}`, gate]));
    for (const name of this.#open.keys()) if (name.startsWith('gate ') && !open.has(name)) this.#close(name, at);
    for (const [name, gate] of open) {
      if (this.#open.has(name)) continue;
      this.#add(name, {
        key: `gate:${gate.id}:${seq}`,
        kind: gate.kind === 'approval' ? 'gate' : 'question',
        step: gate.step,
        gate: gate.id,
        text: gate.prompt ?? `gate ${gate.id} waits for a decision`,
        since: at,
        command: gateCommand(run, gate),
        overAt: null,
      });
    }
  }

  #add(name: string, notice: OpenNotice): void {
    this.#all.push(notice);
    this.#open.set(name, notice);
  }

  #close(name: string, at: number): void {
    const notice = this.#open.get(name);
    if (notice !== undefined) notice.overAt = at;
    this.#open.delete(name);
  }
}

function ended(state: RunState, kind: 'done' | 'failed' | 'paused', seq: number, at: number): OpenNotice {
  const { id, error, pause, source } = runFacts(state);
  const run = id ?? '';
  const text = {
    done: `${source} is done`,
    failed: error?.message ?? 'the run failed',
    paused: state.reason ?? 'the run is paused',
  }[kind];
  const resume = kind === 'done' ? null : `meow resume ${resumeArguments(run)}`;
  return {
    key: `${kind}:${seq}`,
    kind,
    step: kind === 'failed' ? (error?.step ?? null) : null,
    gate: null,
    text,
    since: at,
    command: pause?.command ?? resume,
    overAt: kind === 'done' ? Infinity : null,
  };
}
