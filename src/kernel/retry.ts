// Whether a failed step is retried, and after what delay.

import type { FailureKind } from '../ir/failure.ts';
import { effectId, type StepState } from './state.ts';

const RETRY_DELAY_MAX_MS = 365 * 24 * 3_600_000;
/** Certain to fail again, or already retried in a child frame. */
const NOT_RETRYABLE: ReadonlySet<FailureKind> = new Set([
  'unresolved',
  'expansion-limit',
  'invalid-items',
  'template-not-found',
  'need-unmet',
  'unrouted',
  'child-failed',
  'rounds-exhausted',
  'gate-rejected',
]);

/** Milliseconds until the next attempt; null if a failure of that kind is not retried, or not any more. */
export function retryDelay(step: StepState, kind: FailureKind): number | null {
  const { attemptsMax, delayMs, backoff, jitter, kinds } = step.definition.retry;
  const isRetryable = kinds?.includes(kind) ?? !NOT_RETRYABLE.has(kind);
  if (!isRetryable || step.failures + 1 >= attemptsMax) return null;
  const factor =
    backoff === 'exponential' ? 2 ** Math.min(step.failures, 40) : backoff === 'linear' ? step.failures + 1 : 1;
  const jitterFactor = 1 + jitter * (2 * hashToUnit(effectId(step.id, step.attempt)) - 1);
  return Math.round(Math.min(delayMs * factor * jitterFactor, RETRY_DELAY_MAX_MS));
}

/** Deterministic pseudo-random number from 0 to 1 (K1). */
function hashToUnit(text: string): number {
  let hash = 2_166_136_261;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619);
  return (hash >>> 0) / 2 ** 32;
}
