// Errors, by whose fault they are. An expected failure is a value, a `Result`. What the operator can fix (a flag, an id, a
// lock, a full disk) is a `UsageError`. A defect of MEOW itself is a `Bug`, which nothing catches to continue.

export type Result<T, E> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: E };

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

export function err<E>(error: E): { readonly ok: false; readonly error: E } {
  return { ok: false, error };
}

/** Maps every item, or returns the first error. */
export function mapAll<T, U, E>(items: Iterable<T>, map: (item: T) => Result<U, E>): Result<readonly U[], E> {
  const values: U[] = [];
  for (const item of items) {
    const mapped = map(item);
    if (!mapped.ok) return mapped;
    values.push(mapped.value);
  }
  return ok(values);
}

export class Bug extends Error {
  override readonly name = 'Bug';
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Bug(message);
}

/** Returns the value. Its absence is a bug. */
export function present<T>(value: T | null | undefined, message: string): T {
  if (value === null || value === undefined) throw new Bug(message);
  return value;
}

/** Closes a switch over a union: a new member becomes a compile error at each use. */
export function unreachable(value: never): never {
  throw new Bug(`unreachable: ${JSON.stringify(value)}`);
}

export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly hint: string | null;

  constructor(message: string, hint: string | null = null) {
    super(message);
    this.hint = hint;
  }
}
