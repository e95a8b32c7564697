// Access to data from foreign programs: any value may be missing or of another type.

import { hasControlCharacters } from '../../../base/controls.ts';
import type { Json, JsonMap } from '../../../base/json.ts';
import { isJsonMap, own } from '../../../base/json.ts';

/** Null if the text is not a JSON object. */
export function parseMap(text: string): JsonMap | null {
  try {
    const value = JSON.parse(text) as Json;
    return isJsonMap(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Empty if absent. */
export function mapAt(map: JsonMap, key: string): JsonMap {
  const value = own(map, key);
  return isJsonMap(value) ? value : {};
}

export function mapsAt(map: JsonMap, key: string): readonly JsonMap[] {
  const value = own(map, key);
  return Array.isArray(value) ? (value as readonly Json[]).filter(isJsonMap) : [];
}

export function textAt(map: JsonMap, key: string): string | null {
  const value = own(map, key);
  return typeof value === 'string' ? value : null;
}

export function textsAt(map: JsonMap, key: string): readonly string[] {
  const value = own(map, key);
  return Array.isArray(value) ? (value as readonly Json[]).filter((item) => typeof item === 'string') : [];
}

/** A finite number, not negative. */
export function amountAt(map: JsonMap, key: string): number | null {
  const value = own(map, key);
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null;
}

/** Ids are short and without control characters. */
export function idAt(map: JsonMap, key: string): string | null {
  const value = textAt(map, key);
  return value !== null && value !== '' && value.length <= ID_MAX && !hasControlCharacters(value) ? value : null;
}

const ID_MAX = 200;

/** Null if absent or nested too deeply. */
export function valueAt(map: JsonMap, key: string): Json {
  const value = own(map, key) ?? null;
  return isNested(value, DEPTH_MAX) ? null : value;
}

const DEPTH_MAX = 200;

function isNested(value: Json, deeperThan: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return deeperThan === 0 || Object.values(value).some((inner: Json) => isNested(inner, deeperThan - 1));
}

/** Sum of the amounts that exist; null if none does. */
export function sumAt(map: JsonMap, keys: readonly string[]): number | null {
  const amounts = keys.flatMap((key) => amountAt(map, key) ?? []);
  return amounts.length === 0 ? null : amounts.reduce((sum, amount) => sum + amount, 0);
}
