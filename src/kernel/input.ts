// Facts that reached the kernel, in the past tense. Every one carries the moment it was taken in (rule K1).

import type { Outcome, Progress } from '../ir/effect.ts';
import type { Outputs } from '../ir/output.ts';
import type { Allowance, RunRequest } from '../ir/program.ts';
import type { JsonMap } from '../base/json.ts';

export type Input =
  | { readonly kind: 'run-requested'; readonly request: RunRequest; readonly programHash: string }
  /** An engine took the run up again. `allowance`: what it does not name stays as it was. */
  | { readonly kind: 'run-resumed'; readonly retryFailed: boolean; readonly allowance: Partial<Allowance> | null }
  | { readonly kind: 'effect-finished'; readonly effect: string; readonly outcome: Outcome }
  | { readonly kind: 'effect-progressed'; readonly effect: string; readonly progress: Progress }
  | { readonly kind: 'deadline-passed'; readonly timer: string }
  /** An agent says that it has done what a step asked of it (`judgeReport` tells whether it may). */
  | {
      readonly kind: 'step-reported';
      readonly step: string;
      readonly outputs: Outputs;
      readonly notes: string | null;
      readonly message: string | null;
    }
  | { readonly kind: 'event-emitted'; readonly event: EmittedEvent }
  /** A step that waits for events has been handed one; it is not handed an earlier one again. */
  | {
      readonly kind: 'event-received';
      readonly step: string;
      readonly event: number;
      /** Tells one question for an event from the next, also where it is asked again of the next engine; null: no way to tell. */
      readonly asking: string | null;
      /** The one that has it. What an attempt that is over has received, the next one has not. Absent: the present one. */
      readonly attempt?: number;
    }
  /** Somebody waits for a gate. `step`: on behalf of this one. */
  | { readonly kind: 'gate-asked'; readonly gate: string; readonly step: string; readonly prompt: string | null }
  /** The one who waited on behalf of the step does so no longer. */
  | { readonly kind: 'gate-expired'; readonly gate: string; readonly step: string }
  | {
      readonly kind: 'gate-decided';
      readonly gate: string;
      readonly verdict: GateVerdict;
      /** The id of the message that brought it: sent again, it is heard once. Null where it has none. */
      readonly message: string | null;
    }
  /** A step that waited for a gate or an event was told to wait no longer, since the run is ending. */
  | { readonly kind: 'wait-released'; readonly step: string }
  | { readonly kind: 'stop-requested'; readonly by: string; readonly force: boolean }
  | { readonly kind: 'pause-requested'; readonly reason: string };

export interface EmittedEvent {
  /** Of the message that brought it: the same message is heard once. */
  readonly id: string;
  readonly type: string;
  readonly agent: string | null;
  readonly data: JsonMap;
}

export interface GateVerdict {
  readonly approved: boolean;
  readonly by: string;
  readonly notes: string | null;
  /** What a question was answered with; null where there was none. */
  readonly answer: string | null;
}
