// Assertions. A `Bug` is a defect of MEOW itself, never of the author, the operator or the environment; nothing catches
// it to continue.

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
