// Facts that reached the kernel, in the past tense. Every one carries the moment it was taken in (rule K1).

import type { Outcome } from '../ir/effect.ts';
import type { RunRequest } from '../ir/program.ts';

export type Input =
  | { readonly kind: 'run-requested'; readonly request: RunRequest; readonly programHash: string }
  /** An engine took the run up again. */
  | { readonly kind: 'run-resumed'; readonly retryFailed: boolean }
  | { readonly kind: 'effect-finished'; readonly effect: string; readonly outcome: Outcome }
  | { readonly kind: 'deadline-passed'; readonly timer: string }
  | { readonly kind: 'gate-decided'; readonly gate: string; readonly verdict: GateVerdict }
  | { readonly kind: 'stop-requested'; readonly by: string; readonly force: boolean }
  | { readonly kind: 'pause-requested'; readonly reason: string };

export interface GateVerdict {
  readonly approved: boolean;
  readonly by: string;
  readonly notes: string | null;
}
