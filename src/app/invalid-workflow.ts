// The error for a workflow that is invalid in a way that has no place in its text: too large, in an unknown language.

export class InvalidWorkflow extends Error {
  override readonly name = 'InvalidWorkflow';
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
