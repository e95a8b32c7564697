// The errors that a face tells apart, besides UsageError (base/errors.ts).

import { type Result, UsageError } from '../base/errors.ts';
import type { GitProblem } from '../drivers/git/git.ts';

export { DiskFailure } from '../stores/errors.ts';

/** A workflow that is invalid in a way that has no place in its text: too large, in an unknown language. */
export class InvalidWorkflow extends Error {
  override readonly name = 'InvalidWorkflow';
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}

/** Throws what git reports as a UsageError. */
export function orThrow<T>(result: Result<T, GitProblem>): T {
  if (result.ok) return result.value;
  throw new UsageError(result.error.message, result.error.cure);
}
