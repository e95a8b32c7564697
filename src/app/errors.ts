// The errors that a face tells apart, and how it reports those of the system. A UsageError is in base/.

export { DiskFailure } from '../stores/disk-failure.ts';
export { asUsageError, describeErrno } from '../stores/usage-errors.ts';

/** A workflow that is invalid in a way that has no place in its text: too large, in an unknown language. */
export class InvalidWorkflow extends Error {
  override readonly name = 'InvalidWorkflow';
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
