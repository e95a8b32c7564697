// Inputs of the kernel: facts, named in the past tense. The journal records the time of each (K1).

import type { Outcome, Progress } from '../ir/effect.ts';
import type { Outputs } from '../ir/output.ts';
import type { Allowance, RunRequest } from '../ir/program.ts';
import type { JsonMap } from '../base/json.ts';

export type Input =
  | { readonly kind: 'run-requested'; readonly request: RunRequest; readonly programHash: string }
  /** An engine resumed the run. `allowance`: absent limits are unchanged. */
  | { readonly kind: 'run-resumed'; readonly retryFailed: boolean; readonly allowance: Partial<Allowance> | null }
  | { readonly kind: 'effect-finished'; readonly effect: string; readonly outcome: Outcome }
  | { readonly kind: 'effect-progressed'; readonly effect: string; readonly progress: Progress }
  | { readonly kind: 'deadline-passed'; readonly timer: string }
  /** An agent reports that it has finished a step. `checkReport` decides whether that is valid. */
  | {
      readonly kind: 'step-reported';
      readonly step: string;
      readonly outputs: Outputs;
      readonly notes: string | null;
      readonly message: string | null;
    }
  | { readonly kind: 'event-emitted'; readonly event: EmittedEvent }
  /** A waiting step received an event. It never receives an earlier one again. */
  | {
      readonly kind: 'event-received';
      readonly step: string;
      readonly event: number;
      /** Id of the request, the same if it is repeated with the next engine; null if unknown. */
      readonly asking: string | null;
      /** The attempt that received it; the next attempt does not have it. Default: the current attempt. */
      readonly attempt?: number;
    }
  /** Something waits for a gate, on behalf of `step`. */
  | { readonly kind: 'gate-asked'; readonly gate: string; readonly step: string; readonly prompt: string | null }
  /** The wait on behalf of the step has ended. */
  | { readonly kind: 'gate-expired'; readonly gate: string; readonly step: string }
  | {
      readonly kind: 'gate-decided';
      readonly gate: string;
      readonly verdict: GateVerdict;
      /** Id of the message, so that a repeated message takes effect once; null if it has none. */
      readonly message: string | null;
    }
  /** A step that waited for a gate or an event was woken because the run is ending. */
  | { readonly kind: 'wait-released'; readonly step: string }
  | { readonly kind: 'stop-requested'; readonly by: string; readonly force: boolean }
  | { readonly kind: 'pause-requested'; readonly reason: string };

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
}
