// The status of a step from the journal, for `meow step-status` without an engine. It is a bundle of its own because it
// needs the kernel and a store, so its results are plain data.

import { err, ok, type Result, UsageError } from '../base/errors.ts';
import { findStep } from '../kernel/scope.ts';
import { readRun, storeOf } from './runs.ts';

/** Null if there is no such step; an error is a sentence. */
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
