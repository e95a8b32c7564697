// Inputs of the kernel: facts, named in the past tense. The journal records the time of each (K1).

import type { JsonMap } from '../base/json.ts';
import type { Outcome, Progress } from '../ir/effect.ts';
import type { Outputs } from '../ir/output.ts';
import type { Allowance, Budgets, Limits, RunRequest } from '../ir/program.ts';
import type { Fork } from './fork.ts';
import type { Extra, OthersSpending } from './spending.ts';

/** Of a run that several machines share: which of them drives it from here on. */
export type Taken = Readonly<{
  /** `boot` differs after each boot. */
  machine?: Readonly<{ id: string; boot: string }>;
  /** `from`: the machine that drove it before; null if none did. */
  take?: Readonly<{ id: string; from: string | null }>;
}>;

export type Input = Readonly<
  /** `fork`: the run that this one comes from, and the results that it may keep. */
  | ({ kind: 'run-requested'; request: RunRequest; programHash: string; fork?: Fork } & Taken)
  /** An engine resumed the run. `allowance` and `limits`: absent ones are unchanged. */
  | ({
      kind: 'run-resumed';
      retryFailed: boolean;
      allowance: Partial<Allowance> | null;
      limits?: Partial<Limits>;
      /** Those of the configuration. */
      budgets?: Budgets | null;
      /** Raises every budget of the run by so many dollars or tokens. */
      extra?: Partial<Extra>;
    } & Taken)
  | { kind: 'effect-finished'; effect: string; outcome: Outcome }
  | { kind: 'effect-progressed'; effect: string; progress: Progress }
  | { kind: 'deadline-passed'; timer: string }
  /** An agent reports that it has finished a step. `checkReport` decides whether that is valid. */
  | { kind: 'step-reported'; step: string; outputs: Outputs; notes: string | null; message: string | null }
  /** An agent reported a running step, and was told why the report is not valid. */
  | { kind: 'report-refused'; step: string; reason: string }
  | { kind: 'event-emitted'; event: EmittedEvent }
  /**
   * A waiting step received an event. It never receives an earlier one again. `asking`: id of the request, the same if
   * the next engine repeats it; null if unknown. `attempt`: the one that received it, by default the current one; the
   * next attempt does not have the event.
   */
  | { kind: 'event-received'; step: string; event: number; asking: string | null; attempt?: number }
  /** Something waits for a gate, on behalf of `step`. `approvers`: only these may decide; absent: any person. */
  | { kind: 'gate-asked'; gate: string; step: string; prompt: string | null; approvers?: readonly string[] }
  /** The wait on behalf of the step has ended. */
  | { kind: 'gate-expired'; gate: string; step: string }
  /**
   * `message`: its id, so that a repeated message takes effect once; null if it has none. `asking`: the one that was
   * decided, 0 before the gate was asked; absent: the present one.
   */
  | { kind: 'gate-decided'; gate: string; verdict: GateVerdict; message: string | null; asking?: number }
  /** A message that would have decided a gate was refused. `message`: the warning, one for each cause. */
  | { kind: 'verdict-refused'; message: string }
  /** A step that waited for a gate or an event was woken because the run is ending. */
  | { kind: 'wait-released'; step: string }
  /** `replaces`: a new engine stops the run of one that is gone. */
  | { kind: 'stop-requested'; by: string; force: boolean; replaces?: true }
  | { kind: 'pause-requested'; reason: string }
  /** What other runs have spent, read while no other run may start a turn. */
  | { kind: 'budgets-read'; others: OthersSpending }
>;

export interface EmittedEvent {
  /** Id of the message, so that a repeated message takes effect once. */
  readonly id: string;
  readonly type: string;
  readonly agent: string | null;
  readonly data: JsonMap;
}

export interface GateVerdict {
  readonly approved: boolean;
  readonly by: string;
  readonly notes: string | null;
  /** The answer to a question; null if none was given. */
  readonly answer: string | null;
  /** Absent in journals of earlier versions. */
  readonly proof?: VerdictProof;
  /** Where the person decided, such as `page`; absent: in a terminal. Nobody has proven it. */
  readonly via?: string;
}

/** What shows who decided: the key of a person, their signature, or the session of an agent. `time`: as signed. */
export type VerdictProof = Readonly<
  { kind: 'key'; time: string } | { kind: 'signature'; time: string; signature: string } | { kind: 'agent' }
>;
