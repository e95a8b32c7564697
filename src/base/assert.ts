// Our own faults. A Bug is never the author's, the operator's or the world's, and nobody catches one to carry on.

export class Bug extends Error {
  override readonly name = 'Bug';
}

export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Bug(message);
}

/** The value, where its absence would be our fault. */
export function present<T>(value: T | null | undefined, message: string): T {
  if (value === null || value === undefined) throw new Bug(message);
  return value;
}

/** Closes a switch over a union: a new member becomes a compile error at each use. */
export function unreachable(value: never): never {
  throw new Bug(`unreachable: ${JSON.stringify(value)}`);
}
