// Shapes of JSON values from files that somebody else may have changed: a value either has the shape that its reader expects,
// or is treated as absent. Keys that a shape does not name are ignored.

/** Whether a value has the shape: neither more nor less than its type allows. */
export type Shape<in out T> = (value: unknown) => value is T;

export const isText: Shape<string> = (value) => typeof value === 'string';
export const isNumber: Shape<number> = (value) => typeof value === 'number';
export const isBoolean: Shape<boolean> = (value) => typeof value === 'boolean';

export function oneOf<const T extends string>(...values: readonly T[]): Shape<T> {
  return (value): value is T => values.some((each) => each === value);
}

export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value): value is T | null => value === null || shape(value);
}

/** For a key that may be absent. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value): value is T | undefined => value === undefined || shape(value);
}

export function listOf<T>(shape: Shape<T>): Shape<readonly T[]> {
  return (value): value is readonly T[] => Array.isArray(value) && value.every(shape);
}

export function mapOf<T>(shape: Shape<T>): Shape<Readonly<Record<string, T>>> {
  return (value): value is Readonly<Record<string, T>> => isObject(value) && Object.values(value).every(shape);
}

export function fields<T extends object>(shapes: { readonly [Key in keyof T]-?: Shape<T[Key]> }): Shape<T> {
  const all = Object.entries<Shape<unknown>>(shapes as Readonly<Record<string, Shape<unknown>>>);
  return (value): value is T =>
    isObject(value) && all.every(([key, shape]) => shape(Object.hasOwn(value, key) ? value[key] : undefined));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
