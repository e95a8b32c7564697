// The status of a step from the journal, for `meow step-status` without an engine. It is a bundle of its own because it
// needs the kernel and a store, so its results are plain data.

import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { UsageError } from '../base/usage-error.ts';
import { findStep } from '../ipc/find-step.ts';
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
