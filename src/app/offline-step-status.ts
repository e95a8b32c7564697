// How a step stands, by the journal alone: for `meow step-status` without an engine. A bundle of its own, for it needs the
// kernel and the store; so what it finds, and what it refuses, is plain data.

import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { UsageError } from '../base/usage-error.ts';
import { findStep } from '../ipc/find-step.ts';
import { readRun, storeOf } from './runs.ts';

/** Null where there is no such step; an error is a sentence. */
export async function storedStepStatus(
  runs: string,
  id: string,
  step: string,
  asker: string | null,
): Promise<Result<string | null, string>> {
  try {
    const { state } = await readRun(storeOf({ runs }), id);
    return ok(findStep(state, step, asker)?.status ?? null);
  } catch (error) {
    if (error instanceof UsageError) return err(error.message);
    throw error;
  }
}
