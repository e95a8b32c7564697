// An error that the operator can fix (a flag, an id, a lock, a full disk): one line, and what to do next.

export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
