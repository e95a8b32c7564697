// JSON as data: the only values that cross a boundary, live in a journal or reach a command.

export type Json = null | boolean | number | string | readonly Json[] | JsonMap;
export interface JsonMap {
  readonly [key: string]: Json;
}

export function isJsonMap(value: Json | undefined): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member of its own, never one that every object has: keys come from outside. */
export function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
