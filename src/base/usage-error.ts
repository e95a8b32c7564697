// The operator's mistake (a flag, an id, a lock), or a machine that will not let us work: one line, and what to do next.

export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
